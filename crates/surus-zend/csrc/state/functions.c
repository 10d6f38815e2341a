/* Functions in Surus\Internal for Surus\Store and the caches. Keys are whole: with the prefix of what they belong to. */
#include "state/functions.h"
#include "state/value.h"
#include "task/running.h"

#include <math.h>

#define FOR_EVER INT64_MAX

/* Nanoseconds; what is more than some centuries is the same as no limit. */
static int64_t nanoseconds(double seconds, bool is_null)
{
	if (is_null || !(seconds < 9e9)) {
		return FOR_EVER;
	}
	return seconds > 0 ? (int64_t)(seconds * 1e9) : 0;
}

/* Surus\Internal\store_get(string $key, mixed $default = null, int $now = -1): mixed */
static ZEND_FUNCTION(surus_store_get)
{
	zend_string *key;
	zval *otherwise = NULL;
	zend_long now = -1;
	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_STR(key)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(otherwise)
		Z_PARAM_LONG(now)
	ZEND_PARSE_PARAMETERS_END();
	surus_stored stored;
	if (surus_rs_store_read(surus_bytes_of(key), now, &stored)) {
		zend_string *text;
		if (surus_value_load(&stored, return_value, &text)) {
			return;
		}
		if (!EG(exception)) {
			/* Unless another one has taken its place: the code of classes may have waited. One that has expired is none. */
			surus_stored none = {.kind = SURUS_VALUE_NULL, .bytes = {"", 0}};
			surus_rs_store_write(surus_bytes_of(key), &none, 0, SURUS_STORE_IF_SAME, &stored, now);
		}
		zend_string_release(text);
		if (EG(exception)) {
			RETURN_THROWS();
		}
	}
	if (otherwise) {
		RETURN_COPY(otherwise);
	}
}

/* Surus\Internal\store_set(string $key, mixed $value, ?float $seconds = null, int $condition = 0, mixed $expected = null,
 *     int $now = -1, bool $kept = false): int */
static ZEND_FUNCTION(surus_store_set)
{
	zend_string *key;
	zval *value, *expected = NULL;
	double seconds = 0;
	bool for_ever = true, kept = false;
	zend_long condition = SURUS_STORE_ALWAYS, now = -1;
	ZEND_PARSE_PARAMETERS_START(2, 7)
		Z_PARAM_STR(key)
		Z_PARAM_ZVAL(value)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE_OR_NULL(seconds, for_ever)
		Z_PARAM_LONG(condition)
		Z_PARAM_ZVAL(expected)
		Z_PARAM_LONG(now)
		Z_PARAM_BOOL(kept)
	ZEND_PARSE_PARAMETERS_END();
	surus_stored stored, same = {.bytes = {"", 0}};
	zend_string *serialized, *same_serialized = NULL;
	if (!surus_value_store(value, &stored, &serialized)) {
		RETURN_THROWS();
	}
	if (condition == SURUS_STORE_IF_SAME && expected && !surus_value_store(expected, &same, &same_serialized)) {
		if (serialized) {
			zend_string_release(serialized);
		}
		RETURN_THROWS();
	}
	stored.is_kept = kept;
	int result = surus_rs_store_write(surus_bytes_of(key), &stored, nanoseconds(seconds, for_ever), (int)condition, &same, now);
	if (serialized) {
		zend_string_release(serialized);
	}
	if (same_serialized) {
		zend_string_release(same_serialized);
	}
	RETURN_LONG(result);
}

/* Surus\Internal\store_delete(string $key, int $now = -1): int */
static ZEND_FUNCTION(surus_store_delete)
{
	zend_string *key;
	zend_long now = -1;
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_STR(key)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(now)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_LONG(surus_rs_store_remove(surus_bytes_of(key), now));
}

/* Surus\Internal\store_clear(string $prefix): bool */
static ZEND_FUNCTION(surus_store_clear)
{
	zend_string *prefix;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(prefix)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(surus_rs_store_clear(surus_bytes_of(prefix)));
}

/* Surus\Internal\store_touch(string $key, ?float $seconds): int */
static ZEND_FUNCTION(surus_store_touch)
{
	zend_string *key;
	double seconds = 0;
	bool for_ever;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(key)
		Z_PARAM_DOUBLE_OR_NULL(seconds, for_ever)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_LONG(surus_rs_store_touch(surus_bytes_of(key), nanoseconds(seconds, for_ever), -1));
}

/* Surus\Internal\store_step(string $key, int $by, int $initial, ?float $seconds, bool $kept, &$result): int */
static ZEND_FUNCTION(surus_store_step)
{
	zend_string *key;
	zend_long by, initial;
	double seconds = 0;
	bool for_ever, is_kept;
	zval *result;
	ZEND_PARSE_PARAMETERS_START(6, 6)
		Z_PARAM_STR(key)
		Z_PARAM_LONG(by)
		Z_PARAM_LONG(initial)
		Z_PARAM_DOUBLE_OR_NULL(seconds, for_ever)
		Z_PARAM_BOOL(is_kept)
		Z_PARAM_ZVAL(result)
	ZEND_PARSE_PARAMETERS_END();
	surus_store_step step = {
		.kind = SURUS_VALUE_INT,
		.is_kept = is_kept,
		.by = by,
		.initial = initial,
		.time = nanoseconds(seconds, for_ever),
	};
	int64_t number = 0;
	int outcome = surus_rs_store_step(surus_bytes_of(key), &step, -1, &number);
	ZEND_TRY_ASSIGN_REF_LONG(result, number);
	RETURN_LONG(outcome);
}

/* Surus\Internal\lock_take(string $name, float $seconds, &$number): int */
static ZEND_FUNCTION(surus_lock_take)
{
	zend_string *name;
	double seconds;
	zval *result;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(name)
		Z_PARAM_DOUBLE(seconds)
		Z_PARAM_ZVAL(result)
	ZEND_PARSE_PARAMETERS_END();
	void *exchange = surus_current_exchange();
	if (!exchange) {
		RETURN_LONG(SURUS_LOCK_UNAVAILABLE);
	}
	uint64_t number = 0;
	int outcome = surus_rs_lock(exchange, surus_bytes_of(name), seconds, &number);
	if (outcome == SURUS_LOCK_TAKEN) {
		ZEND_TRY_ASSIGN_REF_LONG(result, (zend_long)number);
	}
	RETURN_LONG(outcome);
}

/* Surus\Internal\lock_release(int $number): bool */
static ZEND_FUNCTION(surus_lock_release)
{
	zend_long number;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(number)
	ZEND_PARSE_PARAMETERS_END();
	void *exchange = surus_current_exchange();
	RETURN_BOOL(exchange && surus_rs_unlock(exchange, (uint64_t)number));
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_lock_take, 0, 3, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 0)
	ZEND_ARG_INFO(1, number)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_lock_release, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_store_get, 0, 1, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, default, IS_MIXED, 0, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, now, IS_LONG, 0, "-1")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_store_set, 0, 2, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, value, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, seconds, IS_DOUBLE, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, condition, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, expected, IS_MIXED, 0, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, now, IS_LONG, 0, "-1")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, kept, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_store_delete, 0, 1, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, now, IS_LONG, 0, "-1")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_store_clear, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, prefix, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_store_touch, 0, 2, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 1)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_store_step, 0, 6, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, by, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, initial, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 1)
	ZEND_ARG_TYPE_INFO(0, kept, _IS_BOOL, 0)
	ZEND_ARG_INFO(1, result)
ZEND_END_ARG_INFO()

const zend_function_entry surus_state_functions[] = {
	ZEND_NS_NAMED_FE("Surus\\Internal", store_get, ZEND_FN(surus_store_get), arginfo_store_get)
	ZEND_NS_NAMED_FE("Surus\\Internal", store_set, ZEND_FN(surus_store_set), arginfo_store_set)
	ZEND_NS_NAMED_FE("Surus\\Internal", store_delete, ZEND_FN(surus_store_delete), arginfo_store_delete)
	ZEND_NS_NAMED_FE("Surus\\Internal", store_clear, ZEND_FN(surus_store_clear), arginfo_store_clear)
	ZEND_NS_NAMED_FE("Surus\\Internal", store_touch, ZEND_FN(surus_store_touch), arginfo_store_touch)
	ZEND_NS_NAMED_FE("Surus\\Internal", store_step, ZEND_FN(surus_store_step), arginfo_store_step)
	ZEND_NS_NAMED_FE("Surus\\Internal", lock_take, ZEND_FN(surus_lock_take), arginfo_lock_take)
	ZEND_NS_NAMED_FE("Surus\\Internal", lock_release, ZEND_FN(surus_lock_release), arginfo_lock_release)
	ZEND_FE_END
};
