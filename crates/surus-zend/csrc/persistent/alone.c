/* A request's persistent connections are for code that runs alone. PHP finds them by their names, so two tasks would get the
 * same one, or one that the other still opens. So a request that has had tasks gets ordinary connections, each closed with
 * its object. */
#include "persistent/alone.h"
#include "persistent/kept.h"
#include "task/running.h"
#include "task/state.h"

#include "ext/standard/streamsfuncs.h"

bool surus_may_keep(void)
{
	return !surus_running || !surus_has_jobs(surus_running);
}

/* Each is called like the one that makes an ordinary connection. */
#define PERSISTENT(X)                                                 \
	X(stream, NULL, "pfsockopen", "fsockopen")                        \
	X(redis, "redis", "pconnect", "connect")                          \
	X(redis_alias, "redis", "popen", "open")                          \
	X(odbc, NULL, "odbc_pconnect", "odbc_connect")                    \
	X(memcache, "memcache", "pconnect", "connect")                    \
	X(memcache_function, NULL, "memcache_pconnect", "memcache_connect") \
	X(amqp, "amqpconnection", "pconnect", "connect")                  \
	X(amqp_again, "amqpconnection", "preconnect", "reconnect")

#define AROUND(name, class_name, persistent, ordinary)                                                   \
	static zif_handler real_##name, ordinary_##name;                                                   \
	static ZEND_NAMED_FUNCTION(around_##name)                                                          \
	{                                                                                                  \
		(surus_may_keep() ? real_##name : ordinary_##name)(INTERNAL_FUNCTION_PARAM_PASSTHRU);          \
	}
PERSISTENT(AROUND)
#undef AROUND

static zif_handler real_client;

static ZEND_NAMED_FUNCTION(around_client)
{
	zval *flags = ZEND_NUM_ARGS() >= 4 ? ZEND_CALL_ARG(execute_data, 4) : NULL;
	if (!surus_may_keep() && flags && Z_TYPE_P(flags) == IS_LONG) {
		Z_LVAL_P(flags) &= ~(zend_long)PHP_STREAM_CLIENT_PERSISTENT;
	}
	real_client(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* pg_connect() returns the connection that it has returned before, unless it is told not to. */
static zif_handler real_pgsql;
static zend_function *ordinary_pgsql;

#define FORCE_NEW 2

static ZEND_NAMED_FUNCTION(around_pgsql)
{
	if (surus_may_keep() || !ordinary_pgsql || ZEND_NUM_ARGS() < 1 || ZEND_NUM_ARGS() > 2) {
		real_pgsql(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	zval arguments[2];
	const zval *flags = ZEND_NUM_ARGS() == 2 ? ZEND_CALL_ARG(execute_data, 2) : NULL;
	ZVAL_COPY_VALUE(&arguments[0], ZEND_CALL_ARG(execute_data, 1));
	ZVAL_LONG(&arguments[1], (flags && Z_TYPE_P(flags) == IS_LONG ? Z_LVAL_P(flags) : 0) | FORCE_NEW);
	zend_call_known_function(ordinary_pgsql, NULL, NULL, return_value, 2, arguments, NULL);
}

static zend_function *find(const char *class_name, const char *name)
{
	zend_class_entry *class = class_name ? zend_hash_str_find_ptr(CG(class_table), class_name, strlen(class_name)) : NULL;
	if (class_name && !class) {
		return NULL;
	}
	zend_function *found = zend_hash_str_find_ptr(class ? &class->function_table : CG(function_table), name, strlen(name));
	return found && found->type == ZEND_INTERNAL_FUNCTION ? found : NULL;
}

void surus_alone_start(void)
{
	zend_function *found;
#define STAND(name, class_name, persistent, ordinary)                                       \
	if ((found = find(class_name, ordinary)) && find(class_name, persistent)) {             \
		ordinary_##name = found->internal_function.handler;                                 \
		real_##name = surus_replace(class_name, persistent, around_##name);                 \
	}
	PERSISTENT(STAND)
#undef STAND
	real_client = surus_replace(NULL, "stream_socket_client", around_client);
	ordinary_pgsql = find(NULL, "pg_connect");
	if (ordinary_pgsql) {
		real_pgsql = surus_replace(NULL, "pg_pconnect", around_pgsql);
	}
}
