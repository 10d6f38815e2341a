/* C stacks of PHP's Fibers that nothing will resume any more. */
#ifndef SURUS_TASK_FIBER_STACKS_H
#define SURUS_TASK_FIBER_STACKS_H

#include "base.h"

/* At the end of a request that has had a fatal error: no Fiber's destructor runs then, which would have freed its stack. */
void surus_free_fiber_stacks(void);

#endif
