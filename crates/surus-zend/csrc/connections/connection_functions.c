/* The engine's functions for Surus\Pool: resetting a connection, checking it without a query to the server, and tickets
 * with which one request waits for another. */
#include "connections/connection_functions.h"
#include "connections/handles.h"
#include "persistent/mysql.h"
#include "persistent/pdo.h"

#include "ext/pdo/php_pdo.h"
#include "ext/pdo/php_pdo_driver.h"

static bool is_of(const zval *object, const char *name)
{
	zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), name, strlen(name));
	return class && instanceof_function(Z_OBJCE_P(object), class);
}

/* Whether a request that has returned the connection to the pool still uses it. */
static bool is_used_by_another(const zval *object)
{
	if (surus_handle_claim(Z_OBJ_P(object), SURUS_USES)) {
		return false;
	}
	zend_clear_exception();
	return true;
}

/* Surus\Internal\reset_connection(object $connection): ?bool; null: the engine cannot reset it. */
static ZEND_FUNCTION(surus_reset_connection)
{
	zval *connection;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT(connection)
	ZEND_PARSE_PARAMETERS_END();
	if (is_used_by_another(connection)) {
		RETURN_FALSE;
	}
	if (is_of(connection, "pdo")) {
		int result = surus_pdo_reset(Z_PDO_DBH_P(connection));
		if (result >= 0) {
			RETURN_BOOL(result);
		}
	} else if (is_of(connection, "mysqli")) {
		RETURN_BOOL(surus_mysqli_reset(Z_OBJ_P(connection)));
	}
}

/* Surus\Internal\note_options(object $connection): void; options that cannot be read are as now after each reset. */
static ZEND_FUNCTION(surus_note_options)
{
	zval *connection;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT(connection)
	ZEND_PARSE_PARAMETERS_END();
	if (is_of(connection, "mysqli")) {
		surus_mysqli_note(Z_OBJ_P(connection));
	}
}

/* Surus\Internal\is_alive(object $connection): ?bool; null: only a query to the server can tell. */
static ZEND_FUNCTION(surus_is_alive)
{
	zval *connection;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT(connection)
	ZEND_PARSE_PARAMETERS_END();
	if (is_used_by_another(connection)) {
		RETURN_FALSE;
	}
	int result = is_of(connection, "pdo") ? surus_pdo_is_alive(Z_PDO_DBH_P(connection)) : -1;
	if (result >= 0) {
		RETURN_BOOL(result);
	}
}

/* Surus\Internal\request_number(): int; different for all requests in flight, 0 outside of requests. */
static ZEND_FUNCTION(surus_request_number)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG((zend_long)(uintptr_t)surus_current_exchange());
}

/* Surus\Internal\ticket(): int; a ticket for one wait. */
static ZEND_FUNCTION(surus_ticket)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG((zend_long)surus_rs_ticket());
}

/* Surus\Internal\wait_for_call(int $ticket, float $seconds): ?bool; whether it was called; null: waiting is impossible
 * here. */
static ZEND_FUNCTION(surus_wait_for_call)
{
	zend_long ticket;
	double seconds;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(ticket)
		Z_PARAM_DOUBLE(seconds)
	ZEND_PARSE_PARAMETERS_END();
	int result = surus_rs_wait_for_call((uint64_t)ticket, seconds);
	if (result >= 0) {
		RETURN_BOOL(result);
	}
}

/* Surus\Internal\call_ticket(int $ticket): void */
static ZEND_FUNCTION(surus_call_ticket)
{
	zend_long ticket;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(ticket)
	ZEND_PARSE_PARAMETERS_END();
	surus_rs_call_ticket((uint64_t)ticket);
}

/* Surus\Internal\note_pool(int $number, string $name, int $max, int $idle, int $inUse, int $waiting, int $resets, int $dropped, int
 * $closed): int; what a pool has done, for the status. With 0 it is a new one. Returns its number. */
static ZEND_FUNCTION(surus_note_pool)
{
	static const char kind[] = "Surus\\Pool";
	zend_long number, max, idle, in_use, waiting, resets, dropped, closed;
	zend_string *name;
	ZEND_PARSE_PARAMETERS_START(9, 9)
		Z_PARAM_LONG(number)
		Z_PARAM_STR(name)
		Z_PARAM_LONG(max)
		Z_PARAM_LONG(idle)
		Z_PARAM_LONG(in_use)
		Z_PARAM_LONG(waiting)
		Z_PARAM_LONG(resets)
		Z_PARAM_LONG(dropped)
		Z_PARAM_LONG(closed)
	ZEND_PARSE_PARAMETERS_END();
	surus_pool_figures figures = {
		.kind = {kind, sizeof kind - 1},
		.name = {ZSTR_VAL(name), ZSTR_LEN(name)},
		.max = (unsigned)max,
		.idle = (unsigned)idle,
		.in_use = (unsigned)in_use,
		.waiting = (unsigned)waiting,
		.resets = (uint64_t)resets,
		.dropped = (uint64_t)dropped,
		.closed = (uint64_t)closed,
	};
	RETURN_LONG((zend_long)surus_rs_note_pool((uint64_t)number, figures));
}

/* Surus\Internal\forget_pool(int $number): void */
static ZEND_FUNCTION(surus_forget_pool)
{
	zend_long number;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(number)
	ZEND_PARSE_PARAMETERS_END();
	surus_rs_forget_pool((uint64_t)number);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_note_pool, 0, 9, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, max, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, idle, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, inUse, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, waiting, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, resets, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, dropped, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, closed, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_forget_pool, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_connection, 0, 1, _IS_BOOL, 1)
	ZEND_ARG_TYPE_INFO(0, connection, IS_OBJECT, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_note, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, connection, IS_OBJECT, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_number, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_wait, 0, 2, _IS_BOOL, 1)
	ZEND_ARG_TYPE_INFO(0, ticket, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_call, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, ticket, IS_LONG, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_connection_functions[] = {
	ZEND_NS_NAMED_FE("Surus\\Internal", reset_connection, ZEND_FN(surus_reset_connection), arginfo_connection)
	ZEND_NS_NAMED_FE("Surus\\Internal", note_options, ZEND_FN(surus_note_options), arginfo_note)
	ZEND_NS_NAMED_FE("Surus\\Internal", is_alive, ZEND_FN(surus_is_alive), arginfo_connection)
	ZEND_NS_NAMED_FE("Surus\\Internal", note_pool, ZEND_FN(surus_note_pool), arginfo_note_pool)
	ZEND_NS_NAMED_FE("Surus\\Internal", forget_pool, ZEND_FN(surus_forget_pool), arginfo_forget_pool)
	ZEND_NS_NAMED_FE("Surus\\Internal", request_number, ZEND_FN(surus_request_number), arginfo_number)
	ZEND_NS_NAMED_FE("Surus\\Internal", ticket, ZEND_FN(surus_ticket), arginfo_number)
	ZEND_NS_NAMED_FE("Surus\\Internal", wait_for_call, ZEND_FN(surus_wait_for_call), arginfo_wait)
	ZEND_NS_NAMED_FE("Surus\\Internal", call_ticket, ZEND_FN(surus_call_ticket), arginfo_call)
	ZEND_FE_END
};
