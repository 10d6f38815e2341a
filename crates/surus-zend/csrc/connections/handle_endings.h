#ifndef SURUS_CONNECTIONS_HANDLE_ENDINGS_H
#define SURUS_CONNECTIONS_HANDLE_ENDINGS_H

#include "base.h"
#include "connections/handle_kinds.h"

/* Of all objects of a kind, once there is one. */
void surus_watch_end(zend_object *object, surus_handle_kind *kind);
/* Those whose end had to wait. */
void surus_free_waiting(surus_isolate *isolate);
void surus_forget_waiting(const surus_isolate *isolate);

/* Makes an object whose end is seen. */
zend_object *surus_handle_create(zend_class_entry *class);

#endif
