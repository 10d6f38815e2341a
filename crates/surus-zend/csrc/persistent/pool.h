#ifndef SURUS_PERSISTENT_POOL_H
#define SURUS_PERSISTENT_POOL_H

#include "persistent/kept.h"

/* A kind of persistent connections. */
typedef struct {
	int type;
	/* Who opens them, as the status calls it. */
	const char *label;
	/* Other entries of the list that go with this one; NULL: there are none. */
	surus_kept_list (*parts)(const zend_resource *of);
} surus_pool_kind;

/* The arguments by which PHP distinguishes databases and users; they may be NULL. */
#define SURUS_POOL_NAMES 8
typedef struct {
	const surus_pool_kind *kind;
	const zval *names[SURUS_POOL_NAMES];
	size_t count;
} surus_pool_name;

/* The name from the arguments `first` (from 1) to `last` of a call, as far as there are any. */
surus_pool_name surus_pool_name_of(const surus_pool_kind *kind, const zend_execute_data *execute_data, uint32_t first, uint32_t last);

/* To be called before PHP searches for a connection. In a coroutine application, where each request has its own list:
 * on return the list has an idle one, or a new one may be opened. False: none became free in time. In other modes
 * true. */
bool surus_pool_enter(const surus_pool_name *name);
/* To be called afterwards: `handle` is the connection that PHP has found or made; NULL: take the one of this kind in
 * the list that belongs to no other pool. */
void surus_pool_entered(const surus_pool_name *name, const void *handle);
/* None became free: throws an exception of this class; raises a warning if `class` is NULL. */
void surus_pool_timeout(const char *class);
/* When the request has ended. If `clean`, the connections in its list are clean and return to their pools. */
void surus_pool_leave(surus_task *task, bool clean);
/* Moves all idle connections into the list of the entered isolate, which is closed next. */
void surus_pool_end(surus_isolate *isolate);

#endif
