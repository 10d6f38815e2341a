/* Persistent connections are cleaned as soon as the request that used one has ended and its response is complete, so
 * that locks and transactions end with it and the client does not wait. A request that has used none skips this. A
 * connection that cannot be cleaned is closed.
 *
 * Wrappers of PHP's functions (in persistent/) record which connections a request gets. They also check that an idle
 * one is still usable before a request gets it. */
#include "connections/cleaning.h"
#include "connections/persistent_stream.h"
#include "persistent/alone.h"
#include "connections/quiet.h"
#include "persistent/kept.h"
#include "persistent/memcached.h"
#include "persistent/mysql.h"
#include "persistent/pdo.h"
#include "persistent/pgsql.h"
#include "persistent/pool.h"
#include "persistent/redis.h"
#include "task/state.h"

void surus_persistent_start(void)
{
	surus_pdo_start();
	surus_pgsql_start();
	surus_mysqli_start();
	surus_redis_start();
	surus_streams_start();
	surus_memcached_start();
	surus_alone_start();
}

static void clean(surus_task *task)
{
	unsigned kinds = task->used.kinds;
	if (kinds & SURUS_KEPT_PDO) {
		surus_pdo_clean(task);
	}
	if (kinds & SURUS_KEPT_PGSQL) {
		surus_pgsql_clean(task);
	}
	if (kinds & SURUS_KEPT_MYSQLI) {
		surus_mysqli_clean(task);
	}
	if (kinds & SURUS_KEPT_REDIS) {
		surus_redis_clean(task);
	}
	if (kinds & SURUS_KEPT_MEMCACHED) {
		surus_memcached_clean(task);
	}
	if (kinds & SURUS_KEPT_STREAM) {
		surus_streams_clean(task);
	}
}

bool surus_persistent_end(surus_task *task)
{
	volatile bool was_cut = (task->cancel != SURUS_CANCEL_NONE || task->cut) && zend_hash_num_elements(&EG(persistent_list)) > 0;
	if (task->used.kinds == 0 && !was_cut) {
		surus_pool_leave(task, true);
		return true;
	}
	volatile bool whole = true, left = false;
	surus_quiet quiet;
	surus_quiet_begin(&quiet);
	if (task->exchange) {
		surus_rs_finish(task->exchange);
	}
	zend_try {
		clean(task);
		if (was_cut) {
			surus_memcached_close_sessions();
		}
		left = true;
		surus_pool_leave(task, true);
	} zend_catch {
		whole = false;
	} zend_end_try();
	surus_quiet_end(&quiet);
	if (!left) {
		surus_pool_leave(task, false);
	}
	memset(&task->used, 0, sizeof task->used);
	return whole;
}
