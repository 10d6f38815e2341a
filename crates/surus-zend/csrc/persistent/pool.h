#ifndef SURUS_PERSISTENT_POOL_H
#define SURUS_PERSISTENT_POOL_H

#include "base.h"

/* Where requests have their lists of persistent connections for themselves (a coroutine application): before PHP looks for
 * one of `type` to what `names` says. When this returns, the list has one that was idle, or there is room for another one.
 * False: none became free in time. Anywhere else true. */
bool surus_pool_enter(int type, const zend_string *const *names, size_t count);
/* After PHP has: `handle` is what it has found or made, NULL if nothing. */
void surus_pool_entered(int type, const zend_string *const *names, size_t count, const void *handle);
/* What the exception or warning says when none became free. */
zend_string *surus_pool_timeout_message(void);
/* The request has ended. Those of its connections that are in its list are clean if `clean`: the next ones get them. */
void surus_pool_leave(surus_task *task, bool clean);
/* Into the list of the entered isolate, which is closed next. */
void surus_pool_end(surus_isolate *isolate);

#endif
