#ifndef SURUS_CONNECTIONS_HANDLE_REQUEST_END_H
#define SURUS_CONNECTIONS_HANDLE_REQUEST_END_H

#include "base.h"

/* The request has ended: what it has begun on connections that others may use is ended, and it uses them no more.
 * `broken_off`: it has not come to its end. */
void surus_handles_end(surus_task *task, bool broken_off);
/* Its stack is left for good: nobody uses the connections again that it was using. */
void surus_handles_give_up(surus_task *task);
/* The isolate goes, with all of its objects. */
void surus_handles_forget(surus_isolate *isolate);

#endif
