#ifndef SURUS_TASK_RUNNING_H
#define SURUS_TASK_RUNNING_H

#include "base.h"

extern __thread surus_task *surus_running;
/* The isolate whose regions are swapped in. */
extern surus_isolate *surus_entered;
/* A child of pcntl_fork(): the event loop's descriptors are the parent's too, so nothing parks. */
extern bool surus_forked;
/* From the event loop: runs the task until it leaves. */
void surus_task_switch_to(surus_task *task);
/* The task has ended: it will never release the locks that it still holds. */
void surus_task_end_locks(surus_task *task);

/* Clears PHP's marks of being inside a destructor, the compiler or the collector of cycles: a task of the entered
 * isolate was abandoned there. */
void surus_clear_marks(surus_isolate *isolate);
/* Leaves the running task's stack for the event loop with `event`; returns when it is resumed. */
void surus_task_leave(surus_event event);
/* The same, for ever: `event` is SURUS_ABANDONED or SURUS_EXHAUSTED. Does not return. */
void surus_task_abandon(surus_task *task, surus_event event);
/* The same as surus_task_leave where the engine may be left; does nothing elsewhere. */
void surus_yield(surus_event event);
/* Whether the running task may be left now. */
bool surus_may_leave(void);

#endif
