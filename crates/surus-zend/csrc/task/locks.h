#ifndef SURUS_TASK_LOCKS_H
#define SURUS_TASK_LOCKS_H

#include "base.h"

/* A task with locks stops running, goes on, has ended. */
void surus_locks_leave(surus_task *task);
void surus_locks_return(surus_task *task);
void surus_locks_end(surus_task *task);
/* Code that one task of the thread may be in at a time, more than once; `key` is its name. No task: nothing happens. */
void surus_section_enter(void *key, const void *caller);
void surus_section_leave(void *key);

#endif
