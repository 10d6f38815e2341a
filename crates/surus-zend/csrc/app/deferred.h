/* Surus\defer(): what a request does after its response has been sent. */
#ifndef SURUS_APP_DEFERRED_H
#define SURUS_APP_DEFERRED_H

#include "base.h"

extern const zend_function_entry surus_deferred_functions[];

/* The code of a classic request or of a script has ended: so do its jobs, and what was deferred runs. */
void surus_deferred_end_code(surus_task *task);
/* Sends the response, then runs what was deferred, which may have tasks and defer more. After the code of the request, its
 * shutdown functions and the end of its output buffers. */
void surus_deferred_run(surus_task *task);
/* After a fatal error of the request: none of it runs, which is logged. */
void surus_deferred_drop(surus_task *task);

#endif
