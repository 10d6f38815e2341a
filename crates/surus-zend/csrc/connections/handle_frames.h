#ifndef SURUS_CONNECTIONS_HANDLE_FRAMES_H
#define SURUS_CONNECTIONS_HANDLE_FRAMES_H

#include "base.h"
#include "connections/handle_kinds.h"

/* The handle that a call uses. */
typedef struct {
	const void *handle;
	zend_object *object;
	surus_handle_kind *kind;
	int number;
	bool is_kept; /* a persistent stream: it outlives its request in all modes */
} surus_used_handle;

/* The stream of a resource; of a filter, the stream that it is part of. */
bool surus_used_resource(const zval *value, surus_used_handle *what);
/* The handle of an object; a socket that is also a stream has the stream's. */
bool surus_used_object(zend_object *object, surus_used_handle *what);
/* The handle that a frame uses, of functions without a wrapper, too. */
bool surus_used_in_frame(const zend_execute_data *frame, surus_used_handle *what);

#endif
