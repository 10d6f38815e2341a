/* What belongs to one request of a coroutine isolate and is swapped when another one of the isolate goes on. */
#ifndef SURUS_FIBER_STATE_H
#define SURUS_FIBER_STATE_H

#include "base.h"

/* Before a task runs: puts its state in place of whatever fiber of its isolate ran last. */
void surus_fiber_install(surus_task *task);
/* The state of a task's fiber, made when it first runs in a booted isolate. */
bool surus_fiber_state_make(surus_task *task);
void surus_fiber_state_free(surus_task *task);

/* At the end of a boot: what the running state is now, is what a fresh fiber of the isolate starts with. */
void surus_fiber_take_idle(surus_isolate *isolate);
void surus_fiber_drop_idle(surus_isolate *isolate);
/* At the end of a request: everything of the request ends as at php_request_shutdown, and the fiber is as fresh.
 * False if a fatal error was met on the way, however it was caught. */
bool surus_fiber_reset(surus_task *task);

#endif
