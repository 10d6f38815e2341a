/* Surus\Postgres: what comes piece by piece, COPY and notifications. */
#include "postgres/flows.h"
#include "postgres/functions.h"

/* Returns the number of what has begun, or throws why it has not. */
static void return_number(uint64_t number, void *answer, zval *return_value)
{
	if (answer) {
		surus_postgres_take(answer, return_value, SURUS_SHAPE_AFFECTED, NULL);
	} else {
		ZVAL_LONG(return_value, (zend_long)number);
	}
}

/* Surus\Internal\postgres_copy(int $transaction, string $sql, bool $toServer): int. Its number. */
static ZEND_FUNCTION(postgres_copy)
{
	zend_long transaction;
	zend_string *sql;
	bool to_server;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_LONG(transaction)
		Z_PARAM_STR(sql)
		Z_PARAM_BOOL(to_server)
	ZEND_PARSE_PARAMETERS_END();
	void *answer;
	uint64_t number = surus_rs_postgres_copy(surus_current_exchange(), (uint64_t)transaction, surus_bytes_of(sql), to_server, &answer);
	return_number(number, answer, return_value);
}

/* Surus\Internal\postgres_copy_put(int $copy, string $piece): bool. False: no more are taken. */
static ZEND_FUNCTION(postgres_copy_put)
{
	zend_long copy;
	zend_string *piece;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(copy)
		Z_PARAM_STR(piece)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(surus_rs_postgres_copy_put(surus_current_exchange(), (uint64_t)copy, surus_bytes_of(piece)));
}

/* Surus\Internal\postgres_copy_take(int $copy): ?string. Null: there are no more. */
static ZEND_FUNCTION(postgres_copy_take)
{
	zend_long copy;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(copy)
	ZEND_PARSE_PARAMETERS_END();
	surus_str piece;
	if (surus_rs_postgres_copy_take(surus_current_exchange(), (uint64_t)copy, &piece)) {
		RETURN_STRINGL(piece.ptr, piece.len);
	}
}

/* Surus\Internal\postgres_copy_end(int $copy, bool $isGood): int. The number of rows. */
static ZEND_FUNCTION(postgres_copy_end)
{
	zend_long copy;
	bool is_good;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(copy)
		Z_PARAM_BOOL(is_good)
	ZEND_PARSE_PARAMETERS_END();
	ZVAL_LONG(return_value, 0);
	void *answer = surus_rs_postgres_copy_end(surus_current_exchange(), (uint64_t)copy, is_good);
	if (answer) {
		surus_postgres_take(answer, return_value, SURUS_SHAPE_AFFECTED, NULL);
	}
}

/* Surus\Internal\postgres_listen(int $client, string $channel): int. The listener's number. */
static ZEND_FUNCTION(postgres_listen)
{
	zend_long client;
	zend_string *channel;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(client)
		Z_PARAM_STR(channel)
	ZEND_PARSE_PARAMETERS_END();
	void *answer;
	uint64_t number = surus_rs_postgres_listen(surus_current_exchange(), (uint64_t)client, surus_bytes_of(channel), &answer);
	return_number(number, answer, return_value);
}

/* Surus\Internal\postgres_notification(int $listener): ?array. [payload, process, missed]; null: the code must end. */
static ZEND_FUNCTION(postgres_notification)
{
	zend_long listener;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(listener)
	ZEND_PARSE_PARAMETERS_END();
	surus_postgres_notification found;
	if (!surus_rs_postgres_notification(surus_current_exchange(), (uint64_t)listener, &found)) {
		return;
	}
	array_init_size(return_value, 3);
	add_next_index_stringl(return_value, found.payload.ptr, found.payload.len);
	add_next_index_long(return_value, found.process);
	add_next_index_bool(return_value, found.missed);
}

/* Surus\Internal\postgres_unlisten(int $listener): void */
static ZEND_FUNCTION(postgres_unlisten)
{
	zend_long listener;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(listener)
	ZEND_PARSE_PARAMETERS_END();
	surus_rs_postgres_unlisten(surus_current_exchange(), (uint64_t)listener);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_copy, 0, 3, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, transaction, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, sql, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, toServer, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_copy_put, 0, 2, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, copy, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, piece, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_copy_take, 0, 1, IS_STRING, 1)
	ZEND_ARG_TYPE_INFO(0, copy, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_copy_end, 0, 2, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, copy, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, isGood, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_listen, 0, 2, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, client, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_notification, 0, 1, IS_ARRAY, 1)
	ZEND_ARG_TYPE_INFO(0, listener, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_unlisten, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, listener, IS_LONG, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_postgres_flows[] = {
	ZEND_NS_FE("Surus\\Internal", postgres_copy, arginfo_postgres_copy)
	ZEND_NS_FE("Surus\\Internal", postgres_copy_put, arginfo_postgres_copy_put)
	ZEND_NS_FE("Surus\\Internal", postgres_copy_take, arginfo_postgres_copy_take)
	ZEND_NS_FE("Surus\\Internal", postgres_copy_end, arginfo_postgres_copy_end)
	ZEND_NS_FE("Surus\\Internal", postgres_listen, arginfo_postgres_listen)
	ZEND_NS_FE("Surus\\Internal", postgres_notification, arginfo_postgres_notification)
	ZEND_NS_FE("Surus\\Internal", postgres_unlisten, arginfo_postgres_unlisten)
	ZEND_FE_END
};
