/* APCu's functions, over the store that all workers share: for scripts and libraries that use them where the extension is
 * not loaded. As with APCu, a time to live of 0 is no limit. */
#include "state/apcu.h"
#include "state/value.h"
#include "task/running.h"

/* How long a request waits in apcu_entry() for another one that makes the value. */
#define ENTRY_WAIT 10.0

static zend_string *whole(zend_string *key)
{
	return zend_string_concat2("a\0", 2, ZSTR_VAL(key), ZSTR_LEN(key));
}

static int64_t nanoseconds(zend_long ttl)
{
	return ttl > 0 && ttl < 9000000000 ? (int64_t)ttl * 1000000000 : INT64_MAX;
}

static bool fetch(zend_string *key, zval *value)
{
	zend_string *name = whole(key);
	surus_stored stored;
	bool found = surus_rs_store_read(surus_bytes_of(name), -1, &stored) && surus_value_load(&stored, value, NULL);
	zend_string_release(name);
	return found;
}

static bool store(zend_string *key, zval *value, zend_long ttl, int condition)
{
	surus_stored stored, unused = {.bytes = {"", 0}};
	zend_string *serialized;
	if (!surus_value_store(value, &stored, &serialized)) {
		return false;
	}
	zend_string *name = whole(key);
	int outcome = surus_rs_store_write(surus_bytes_of(name), &stored, nanoseconds(ttl), condition, &unused, -1);
	zend_string_release(name);
	if (serialized) {
		zend_string_release(serialized);
	}
	return outcome == SURUS_STORE_DONE;
}

static bool delete(zend_string *key)
{
	zend_string *name = whole(key);
	int outcome = surus_rs_store_remove(surus_bytes_of(name), -1);
	zend_string_release(name);
	return outcome == SURUS_STORE_DONE;
}

static bool exists(zend_string *key)
{
	zend_string *name = whole(key);
	surus_stored stored;
	bool found = surus_rs_store_read(surus_bytes_of(name), -1, &stored);
	zend_string_release(name);
	return found;
}

/* apcu_fetch(array|string $key, &$success = null): mixed */
static ZEND_FUNCTION(surus_apcu_fetch)
{
	HashTable *keys;
	zend_string *key;
	zval *success = NULL, *each;
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_ARRAY_HT_OR_STR(keys, key)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(success)
	ZEND_PARSE_PARAMETERS_END();
	bool found = true;
	if (key) {
		found = fetch(key, return_value);
		if (!found) {
			ZVAL_FALSE(return_value);
		}
	} else {
		array_init(return_value);
		ZEND_HASH_FOREACH_VAL(keys, each) {
			zval value;
			zend_string *name = zval_try_get_string(each);
			if (!name) {
				RETURN_THROWS();
			}
			if (fetch(name, &value)) {
				zend_symtable_update(Z_ARRVAL_P(return_value), name, &value);
			}
			zend_string_release(name);
		} ZEND_HASH_FOREACH_END();
	}
	if (success) {
		ZEND_TRY_ASSIGN_REF_BOOL(success, found);
	}
}

static void store_all(INTERNAL_FUNCTION_PARAMETERS, int condition)
{
	HashTable *values;
	zend_string *key;
	zval *value = NULL, *each;
	zend_long ttl = 0;
	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_ARRAY_HT_OR_STR(values, key)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(value)
		Z_PARAM_LONG(ttl)
	ZEND_PARSE_PARAMETERS_END();
	if (key) {
		if (!value) {
			zend_argument_value_error(2, "must be provided if argument #1 ($key) is a string");
			RETURN_THROWS();
		}
		RETURN_BOOL(store(key, value, ttl, condition));
	}
	/* Those that were not stored. */
	array_init(return_value);
	zend_ulong number;
	ZEND_HASH_FOREACH_KEY_VAL(values, number, key, each) {
		zend_string *name = key ? zend_string_copy(key) : zend_long_to_str((zend_long)number);
		if (!store(name, each, ttl, condition)) {
			zval failed;
			ZVAL_LONG(&failed, -1);
			zend_symtable_update(Z_ARRVAL_P(return_value), name, &failed);
		}
		zend_string_release(name);
	} ZEND_HASH_FOREACH_END();
}

/* apcu_store(array|string $key, mixed $value, int $ttl = 0): array|bool */
static ZEND_FUNCTION(surus_apcu_store)
{
	store_all(INTERNAL_FUNCTION_PARAM_PASSTHRU, SURUS_STORE_ALWAYS);
}

/* apcu_add(array|string $key, mixed $value, int $ttl = 0): array|bool */
static ZEND_FUNCTION(surus_apcu_add)
{
	store_all(INTERNAL_FUNCTION_PARAM_PASSTHRU, SURUS_STORE_IF_ABSENT);
}

static void step(INTERNAL_FUNCTION_PARAMETERS, bool down)
{
	zend_string *key;
	zend_long by = 1, ttl = 0;
	zval *success = NULL;
	ZEND_PARSE_PARAMETERS_START(1, 4)
		Z_PARAM_STR(key)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(by)
		Z_PARAM_ZVAL(success)
		Z_PARAM_LONG(ttl)
	ZEND_PARSE_PARAMETERS_END();
	surus_store_step step = {
		.kind = SURUS_VALUE_INT,
		.by = down ? (zend_long)(0 - (zend_ulong)by) : by,
		.time = nanoseconds(ttl),
	};
	zend_string *name = whole(key);
	int64_t number;
	bool done = surus_rs_store_step(surus_bytes_of(name), &step, -1, &number) == SURUS_STORE_DONE;
	zend_string_release(name);
	if (success) {
		ZEND_TRY_ASSIGN_REF_BOOL(success, done);
	}
	if (!done) {
		RETURN_FALSE;
	}
	RETURN_LONG(number);
}

/* apcu_inc(string $key, int $step = 1, &$success = null, int $ttl = 0): int|false */
static ZEND_FUNCTION(surus_apcu_inc)
{
	step(INTERNAL_FUNCTION_PARAM_PASSTHRU, false);
}

/* apcu_dec(string $key, int $step = 1, &$success = null, int $ttl = 0): int|false */
static ZEND_FUNCTION(surus_apcu_dec)
{
	step(INTERNAL_FUNCTION_PARAM_PASSTHRU, true);
}

/* apcu_cas(string $key, int $old, int $new): bool. A number that is there keeps no time to live, other than with APCu. */
static ZEND_FUNCTION(surus_apcu_cas)
{
	zend_string *key;
	zend_long old, new;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(key)
		Z_PARAM_LONG(old)
		Z_PARAM_LONG(new)
	ZEND_PARSE_PARAMETERS_END();
	surus_stored expected = {.kind = SURUS_VALUE_INT, .number = old, .bytes = {"", 0}};
	surus_stored stored = {.kind = SURUS_VALUE_INT, .number = new, .bytes = {"", 0}};
	zend_string *name = whole(key);
	int outcome = surus_rs_store_write(surus_bytes_of(name), &stored, INT64_MAX, SURUS_STORE_IF_SAME, &expected, -1);
	zend_string_release(name);
	RETURN_BOOL(outcome == SURUS_STORE_DONE);
}

/* For each key: whether, or those that are not. */
static void each_key(INTERNAL_FUNCTION_PARAMETERS, bool (*act)(zend_string *), bool lists_done)
{
	HashTable *keys;
	zend_string *key;
	zval *each;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ARRAY_HT_OR_STR(keys, key)
	ZEND_PARSE_PARAMETERS_END();
	if (key) {
		RETURN_BOOL(act(key));
	}
	array_init(return_value);
	ZEND_HASH_FOREACH_VAL(keys, each) {
		zend_string *name = zval_try_get_string(each);
		if (!name) {
			RETURN_THROWS();
		}
		bool done = act(name);
		if (lists_done && done) {
			zval yes;
			ZVAL_TRUE(&yes);
			zend_symtable_update(Z_ARRVAL_P(return_value), name, &yes);
		} else if (!lists_done && !done) {
			add_next_index_str(return_value, zend_string_copy(name));
		}
		zend_string_release(name);
	} ZEND_HASH_FOREACH_END();
}

/* apcu_delete(array|string $key): array|bool; those that could not be deleted */
static ZEND_FUNCTION(surus_apcu_delete)
{
	each_key(INTERNAL_FUNCTION_PARAM_PASSTHRU, delete, false);
}

/* apcu_exists(array|string $key): array|bool; those that exist */
static ZEND_FUNCTION(surus_apcu_exists)
{
	each_key(INTERNAL_FUNCTION_PARAM_PASSTHRU, exists, true);
}

/* apcu_entry(string $key, callable $callback, int $ttl = 0): mixed. One request at a time makes the value of a key. */
static ZEND_FUNCTION(surus_apcu_entry)
{
	zend_string *key;
	zend_fcall_info callback;
	zend_fcall_info_cache cache;
	zend_long ttl = 0;
	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(key)
		Z_PARAM_FUNC(callback, cache)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(ttl)
	ZEND_PARSE_PARAMETERS_END();
	if (fetch(key, return_value) || EG(exception)) {
		return;
	}
	/* What it leaves locked by a fatal error ends with the request. */
	void *exchange = surus_current_exchange();
	uint64_t lock = 0;
	zend_string *name = whole(key);
	int outcome = exchange ? surus_rs_lock(exchange, surus_bytes_of(name), ENTRY_WAIT, &lock) : SURUS_LOCK_UNAVAILABLE;
	zend_string_release(name);
	if (outcome == SURUS_LOCK_CUT) {
		return;
	}
	if (outcome != SURUS_LOCK_TAKEN || !fetch(key, return_value)) {
		zval argument;
		ZVAL_STR(&argument, key);
		callback.retval = return_value;
		callback.params = &argument;
		callback.param_count = 1;
		if (zend_call_function(&callback, &cache) == SUCCESS && !EG(exception)) {
			store(key, return_value, ttl, SURUS_STORE_ALWAYS);
		}
	}
	if (outcome == SURUS_LOCK_TAKEN) {
		surus_rs_unlock(exchange, lock);
	}
}

/* apcu_clear_cache(): bool */
static ZEND_FUNCTION(surus_apcu_clear_cache)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(surus_rs_store_clear((surus_str){"a\0", 2}));
}

/* apcu_enabled(): bool */
static ZEND_FUNCTION(surus_apcu_enabled)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_TRUE;
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_fetch, 0, 0, 1)
	ZEND_ARG_INFO(0, key)
	ZEND_ARG_INFO_WITH_DEFAULT_VALUE(1, success, "null")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_store, 0, 0, 1)
	ZEND_ARG_INFO(0, key)
	ZEND_ARG_INFO(0, value)
	ZEND_ARG_INFO_WITH_DEFAULT_VALUE(0, ttl, "0")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_step, 0, 0, 1)
	ZEND_ARG_INFO(0, key)
	ZEND_ARG_INFO_WITH_DEFAULT_VALUE(0, step, "1")
	ZEND_ARG_INFO_WITH_DEFAULT_VALUE(1, success, "null")
	ZEND_ARG_INFO_WITH_DEFAULT_VALUE(0, ttl, "0")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_cas, 0, 0, 3)
	ZEND_ARG_INFO(0, key)
	ZEND_ARG_INFO(0, old)
	ZEND_ARG_INFO(0, new)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_key, 0, 0, 1)
	ZEND_ARG_INFO(0, key)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_entry, 0, 0, 2)
	ZEND_ARG_INFO(0, key)
	ZEND_ARG_INFO(0, callback)
	ZEND_ARG_INFO_WITH_DEFAULT_VALUE(0, ttl, "0")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_none, 0, 0, 0)
ZEND_END_ARG_INFO()

static const zend_function_entry functions[] = {
	ZEND_NAMED_FE(apcu_fetch, ZEND_FN(surus_apcu_fetch), arginfo_fetch)
	ZEND_NAMED_FE(apcu_store, ZEND_FN(surus_apcu_store), arginfo_store)
	ZEND_NAMED_FE(apcu_add, ZEND_FN(surus_apcu_add), arginfo_store)
	ZEND_NAMED_FE(apcu_inc, ZEND_FN(surus_apcu_inc), arginfo_step)
	ZEND_NAMED_FE(apcu_dec, ZEND_FN(surus_apcu_dec), arginfo_step)
	ZEND_NAMED_FE(apcu_cas, ZEND_FN(surus_apcu_cas), arginfo_cas)
	ZEND_NAMED_FE(apcu_delete, ZEND_FN(surus_apcu_delete), arginfo_key)
	ZEND_NAMED_FE(apcu_exists, ZEND_FN(surus_apcu_exists), arginfo_key)
	ZEND_NAMED_FE(apcu_entry, ZEND_FN(surus_apcu_entry), arginfo_entry)
	ZEND_NAMED_FE(apcu_clear_cache, ZEND_FN(surus_apcu_clear_cache), arginfo_none)
	ZEND_NAMED_FE(apcu_enabled, ZEND_FN(surus_apcu_enabled), arginfo_none)
	ZEND_FE_END
};

void surus_apcu_start(void)
{
	if (!zend_hash_str_exists(CG(function_table), "apcu_fetch", sizeof "apcu_fetch" - 1)) {
		zend_register_functions(NULL, functions, NULL, MODULE_PERSISTENT);
	}
}
