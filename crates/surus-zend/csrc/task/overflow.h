#ifndef SURUS_TASK_OVERFLOW_H
#define SURUS_TASK_OVERFLOW_H

#include "base.h"

void surus_overflow_start(void);
void surus_overflow_enter_worker(void);
/* The free bytes of the running C stack; SIZE_MAX on a stack that is not PHP's. */
size_t surus_stack_left(void);
/* For functions that PHP may call at any stack depth: abandons the task if little of its C stack is left, while that is
 * still possible. An overflow in Surus' own code would end the worker. */
void surus_need_stack(void);

#endif
