/* Handles: what objects of extensions represent, a connection in most cases. */
#ifndef SURUS_CONNECTIONS_HANDLES_H
#define SURUS_CONNECTIONS_HANDLES_H

#include "base.h"
#include "connections/handle_kinds.h"

/* The frame of a task that is a call on a handle; NULL: there is none. */
const zend_execute_data *surus_use_in(surus_task *task, const void *handle);

/* The running request uses this object, but not by calling a function. False, with an exception: another one is using
 * it. */
bool surus_handle_claim(zend_object *object, surus_step step);

/* Wraps the functions that use a connection. */
void surus_handles_start(void);

#endif
