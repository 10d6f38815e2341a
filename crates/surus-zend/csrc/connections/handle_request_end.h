#ifndef SURUS_CONNECTIONS_HANDLE_REQUEST_END_H
#define SURUS_CONNECTIONS_HANDLE_REQUEST_END_H

#include "base.h"

/* The request has ended: everything that it has begun on connections that others may use is ended, and its rows are
 * freed. `broken_off`: it did not run to its end. */
void surus_handles_end(surus_task *task, bool broken_off);
/* The request goes on alone: what its jobs have begun is its own, and is guarded no more. */
void surus_handles_forget_jobs(surus_task *task);
/* The task is freed: no row may point to it. */
void surus_handles_forget_task(surus_task *task);
/* The task was abandoned: the connections that it was using are not used again. */
void surus_handles_give_up(surus_task *task);
/* The isolate is freed, with all of its objects. */
void surus_handles_forget(surus_isolate *isolate);

#endif
