/* Handles: what objects of extensions stand for, a connection in most cases. */
#ifndef SURUS_CONNECTIONS_HANDLES_H
#define SURUS_CONNECTIONS_HANDLES_H

#include "base.h"
#include "connections/handle_kinds.h"

/* The frame in which a task is inside a call on a handle; NULL: it is not. */
const zend_execute_data *surus_use_in(surus_task *task, const void *handle);

/* The running request goes on with this object otherwise than by a function. False, with an exception: another one is in the way. */
bool surus_handle_claim(zend_object *object, surus_step step);

/* From now on functions that use a connection are entered through ours. */
void surus_handles_start(void);

#endif
