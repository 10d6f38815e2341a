/* What an application does without a client: its timers, declared while it boots, and Surus\background(). Rust says when one
 * runs, as a request that nobody has sent. */
#ifndef SURUS_APP_TIMERS_H
#define SURUS_APP_TIMERS_H

#include "base.h"

extern const zend_function_entry surus_timer_functions[];

/* Runs what has its turn; false if this is a client's request. */
bool surus_call_timer(surus_task *task);

#endif
