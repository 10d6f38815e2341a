/* Timers of an application: declared while it boots. Rust says when one runs, as a request that nobody has sent. */
#ifndef SURUS_APP_TIMERS_H
#define SURUS_APP_TIMERS_H

#include "base.h"

extern const zend_function_entry surus_timer_functions[];

/* Runs the timer whose turn it is; false if this is a client's request. */
bool surus_call_timer(surus_task *task);

#endif
