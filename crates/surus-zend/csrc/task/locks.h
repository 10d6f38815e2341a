#ifndef SURUS_TASK_LOCKS_H
#define SURUS_TASK_LOCKS_H

#include "base.h"

/* A task with locks is suspended; is resumed; has ended. */
void surus_locks_leave(surus_task *task);
void surus_locks_return(surus_task *task);
void surus_locks_end(surus_task *task);
/* A section that one task of the thread may be in at a time; this task may enter it more than once. `key` identifies
 * it. Without a running task nothing happens. */
void surus_section_enter(void *key, const void *caller);
void surus_section_leave(void *key);

#endif
