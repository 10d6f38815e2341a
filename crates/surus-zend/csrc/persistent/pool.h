#ifndef SURUS_PERSISTENT_POOL_H
#define SURUS_PERSISTENT_POOL_H

#include "persistent/kept.h"

/* A kind of persistent connections. */
typedef struct {
	int type;
	/* Other entries of the list that go with this one, up to `max`; NULL: there are none. */
	size_t (*parts)(const zend_resource *of, surus_kept *to, size_t max);
} surus_pool_kind;

/* What PHP tells one database and user from another by: arguments, which may be NULL. */
#define SURUS_POOL_NAMES 8
typedef struct {
	const surus_pool_kind *kind;
	const zval *names[SURUS_POOL_NAMES];
	size_t count;
} surus_pool_name;

/* The name with the arguments `first` (from 1) to `last` of a call, where it has them. */
surus_pool_name surus_pool_name_of(const surus_pool_kind *kind, const zend_execute_data *execute_data, uint32_t first, uint32_t last);

/* Where requests have their lists of persistent connections for themselves (a coroutine application): before PHP looks for
 * one. When this returns, the list has one that was idle, or there is room for another one. False: none became free in
 * time. Anywhere else true. */
bool surus_pool_enter(const surus_pool_name *name);
/* After PHP has: `handle` is what it has found or made; NULL: what the list has of this kind that no other pool has. */
void surus_pool_entered(const surus_pool_name *name, const void *handle);
/* None became free: throws an exception of this class; of none: a warning. */
void surus_pool_timeout(const char *class);
/* The request has ended. Those of its connections that are in its list are clean if `clean`: the next ones get them. */
void surus_pool_leave(surus_task *task, bool clean);
/* Into the list of the entered isolate, which is closed next. */
void surus_pool_end(surus_isolate *isolate);

#endif
