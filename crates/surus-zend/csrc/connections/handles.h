/* Handles: what objects of extensions stand for, a connection in most cases. */
#ifndef SURUS_CONNECTIONS_HANDLES_H
#define SURUS_CONNECTIONS_HANDLES_H

#include "base.h"

/* The frame in which a task is inside a call on a handle; NULL: it is not. */
const zend_execute_data *surus_use_in(surus_task *task, const void *handle);

/* From now on functions that use a connection are entered through ours. */
void surus_handles_start(void);

#endif
