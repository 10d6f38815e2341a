/* The state of one request of a coroutine isolate, which is swapped when another request of the isolate runs. */
#ifndef SURUS_FIBER_STATE_H
#define SURUS_FIBER_STATE_H

#include "base.h"

/* Before a task runs: installs its state in place of that of the fiber that ran last in its isolate. */
void surus_fiber_install(surus_task *task);
/* The state of a task's fiber, made when it first runs in a booted isolate. */
bool surus_fiber_state_make(surus_task *task);
void surus_fiber_state_free(surus_task *task);
/* At the start of a request: gives it copies of what the application has made at boot and requests may change. */
void surus_fiber_begin(surus_task *task);

/* Moves the shutdown functions of the boot to the fiber, which is installed. */
void surus_fiber_take_shutdown_functions(surus_task *task);

/* At the end of a boot: takes the current state as the one with which fresh fibers of the isolate start. */
void surus_fiber_take_idle(surus_isolate *isolate);
void surus_fiber_drop_idle(surus_isolate *isolate);
/* At the end of a request: ends everything of the request like php_request_shutdown; then the fiber is like a fresh
 * one. False if there was a fatal error, even one that was caught. */
bool surus_fiber_reset(surus_task *task);

#endif
