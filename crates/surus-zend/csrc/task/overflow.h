#ifndef SURUS_TASK_OVERFLOW_H
#define SURUS_TASK_OVERFLOW_H

#include "base.h"

void surus_overflow_start(void);
void surus_overflow_enter_worker(void);
/* The bytes that are left of the C stack that runs; SIZE_MAX on one that is not PHP's. */
size_t surus_stack_left(void);
/* Where PHP calls Surus at any depth: leaves the task for good if there is little left of its C stack, while it still
 * can be left. An overflow in our own code is the worker's end. */
void surus_need_stack(void);

#endif
