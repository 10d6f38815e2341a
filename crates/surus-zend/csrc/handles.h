/* Handles: what objects of extensions stand for, a connection in most cases. Shared by handle_kinds.c and handles.c. */
#ifndef SURUS_HANDLES_H
#define SURUS_HANDLES_H

#include "internal.h"

typedef struct {
	const char *class; /* lower case */
	/* What is below the object: other objects may stand for the same. NULL: the object stands for itself. */
	const void *(*handle)(zend_object *object);
	/* What a request has begun on it and not ended, for a message; NULL: nothing. Nobody is inside a call on it. */
	const char *(*begun)(zend_object *object);
	/* Ends that, once its request has ended. */
	void (*end)(zend_object *object);
	bool answers_to_free; /* freeing the object talks to the server */
	bool is_watched;      /* handles.c stands before the end of its objects */
} surus_handle_kind;

/* Of streams, which are no objects. */
extern surus_handle_kind surus_stream_kind;
/* NULL: it stands for no connection. */
surus_handle_kind *surus_handle_kind_of(const zend_object *object);
/* NULL while there is none. */
static inline const void *surus_handle_of(surus_handle_kind *kind, zend_object *object)
{
	return kind->handle ? kind->handle(object) : object;
}

/* Calls `visit` with each function that uses a handle. After startup. */
void surus_handle_functions(void (*visit)(zend_internal_function *function));

/* connection_in_use.c */
/* Throws a Surus\ConnectionInUse: `class` is what is used; the running request wants what the task uses, in its frame `use` or by having begun
 * something; NULL for a task that was given up. */
void surus_throw_in_use(const char *class, surus_task *task, const zend_execute_data *use, const char *begun);
/* A request has ended without ending what it had begun. */
void surus_log_unended(surus_task *task, const zend_class_entry *class, const char *begun);

#endif
