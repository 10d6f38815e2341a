#ifndef SURUS_CONNECTIONS_HANDLE_ENDINGS_H
#define SURUS_CONNECTIONS_HANDLE_ENDINGS_H

#include "base.h"
#include "connections/handle_kinds.h"

/* Intercepts the destruction of all objects of a kind, when the first one is used. */
void surus_watch_end(zend_object *object, surus_handle_kind *kind);
/* Frees objects whose destruction was delayed. */
void surus_free_waiting(surus_isolate *isolate);
void surus_forget_waiting(const surus_isolate *isolate);

/* Makes an object whose destruction is intercepted. */
zend_object *surus_handle_create(zend_class_entry *class);

#endif
