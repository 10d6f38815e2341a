/* Surus\Postgres: its functions in Surus\Internal. What waits is in Rust (src/callbacks/postgres.rs), the rest is PHP. */
#include "postgres/functions.h"
#include "postgres/parameters.h"
#include "postgres/rows.h"

/* Surus\Internal\postgres_client(string $connection, int $connections): int */
static ZEND_FUNCTION(postgres_client)
{
	zend_string *text;
	zend_long connections;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(text)
		Z_PARAM_LONG(connections)
	ZEND_PARSE_PARAMETERS_END();
	surus_str error;
	uint64_t number = surus_rs_postgres_client(surus_bytes_of(text), connections, &error);
	if (!number) {
		zend_value_error("%.*s", (int)error.len, error.ptr);
		RETURN_THROWS();
	}
	RETURN_LONG((zend_long)number);
}

/* Bytes that the memory limit leaves for the rows of an answer, which are not PHP's yet. */
static size_t room(void)
{
	zend_long limit = PG(memory_limit);
	size_t used = zend_memory_usage(false);
	if (limit <= 0) {
		return SIZE_MAX;
	}
	return used < (size_t)limit ? (size_t)limit - used : 0;
}

static void add_text(zval *to, const char *name, surus_str text)
{
	add_assoc_stringl(to, name, text.ptr, text.len);
}

/* Surus\Internal\PostgresFailure::throw() makes the exception. */
static void throw_failure(const surus_postgres_failure *failure)
{
	static const char class_name[] = "Surus\\Internal\\PostgresFailure";
	zend_string *name = zend_string_init(class_name, sizeof class_name - 1, false);
	zend_class_entry *class = zend_lookup_class(name);
	zend_string_release(name);
	zend_function *method = class ? zend_hash_str_find_ptr(&class->function_table, "throw", sizeof "throw" - 1) : NULL;
	if (!method) {
		if (!EG(exception)) {
			zend_throw_error(NULL, "%s is missing", class_name);
		}
		return;
	}
	zval fields, result;
	array_init(&fields);
	add_assoc_long(&fields, "kind", failure->kind);
	add_assoc_long(&fields, "position", failure->position);
	add_text(&fields, "message", failure->message);
	add_text(&fields, "state", failure->state);
	add_text(&fields, "detail", failure->detail);
	add_text(&fields, "hint", failure->hint);
	add_text(&fields, "constraint", failure->constraint);
	add_text(&fields, "table", failure->table);
	add_text(&fields, "column", failure->column);
	ZVAL_UNDEF(&result);
	zend_call_known_function(method, NULL, class, &result, 1, &fields, NULL);
	zval_ptr_dtor(&result);
	zval_ptr_dtor(&fields);
}

void surus_postgres_take(void *answer, zval *to, surus_postgres_shape shape, zend_class_entry *class)
{
	zend_try {
		surus_postgres_rows rows;
		surus_postgres_failure failure;
		switch (surus_rs_postgres_rows(answer, &rows, &failure)) {
			case SURUS_POSTGRES_ROWS:
				surus_postgres_build(to, answer, &rows, shape, class);
				break;
			case SURUS_POSTGRES_FAILED:
				throw_failure(&failure);
		}
	} zend_catch {
		surus_rs_postgres_free(answer);
		zend_bailout();
	} zend_end_try();
	surus_rs_postgres_free(answer);
}

/* Surus\Internal\postgres_query(int $client, int $transaction, string $sql, array $parameters, int $shape, ?string $class = null):
 * mixed */
static ZEND_FUNCTION(postgres_query)
{
	zend_long client, transaction, shape;
	zend_string *sql;
	HashTable *given;
	zend_class_entry *class = NULL;
	ZEND_PARSE_PARAMETERS_START(5, 6)
		Z_PARAM_LONG(client)
		Z_PARAM_LONG(transaction)
		Z_PARAM_STR(sql)
		Z_PARAM_ARRAY_HT(given)
		Z_PARAM_LONG(shape)
		Z_PARAM_OPTIONAL
		Z_PARAM_CLASS_OR_NULL(class)
	ZEND_PARSE_PARAMETERS_END();
	surus_postgres_parameters packed;
	if (surus_postgres_pack(&packed, given)) {
		surus_postgres_values values = {packed.values, packed.count};
		void *answer = surus_rs_postgres_query(surus_current_exchange(), (uint64_t)client, (uint64_t)transaction,
			surus_bytes_of(sql), values, room());
		surus_postgres_unpack(&packed);
		surus_postgres_take(answer, return_value, (surus_postgres_shape)shape, class);
	} else {
		surus_postgres_unpack(&packed);
	}
}

/* False: an exception. */
static bool add_lists(void *batch, HashTable *lists)
{
	zval *list;
	ZEND_HASH_FOREACH_VAL(lists, list) {
		ZVAL_DEREF(list);
		if (Z_TYPE_P(list) != IS_ARRAY) {
			zend_type_error("Each list of parameters is an array, %s given", zend_zval_type_name(list));
			return false;
		}
		surus_postgres_parameters packed;
		bool fits = surus_postgres_pack(&packed, Z_ARRVAL_P(list));
		if (fits) {
			surus_postgres_values values = {packed.values, packed.count};
			surus_rs_postgres_batch_add(batch, values);
		}
		surus_postgres_unpack(&packed);
		if (!fits) {
			return false;
		}
	} ZEND_HASH_FOREACH_END();
	return true;
}

static void take_each(void *batch, HashTable *lists, surus_postgres_shape shape, HashTable *to)
{
	zend_ulong index;
	zend_string *key;
	ZEND_HASH_FOREACH_KEY(lists, index, key) {
		zval result;
		ZVAL_NULL(&result);
		void *answer = surus_rs_postgres_batch_next(batch);
		if (!answer) {
			return;
		}
		surus_postgres_take(answer, &result, shape, NULL);
		if (key) {
			zend_hash_add(to, key, &result);
		} else {
			zend_hash_index_add(to, index, &result);
		}
		if (EG(exception)) {
			return;
		}
	} ZEND_HASH_FOREACH_END();
}

/* Surus\Internal\postgres_each(int $client, int $transaction, string $sql, array $lists, int $shape): array. What the statement
 * returns for each list of parameters, with its key. */
static ZEND_FUNCTION(postgres_each)
{
	zend_long client, transaction, shape;
	zend_string *sql;
	HashTable *lists;
	ZEND_PARSE_PARAMETERS_START(5, 5)
		Z_PARAM_LONG(client)
		Z_PARAM_LONG(transaction)
		Z_PARAM_STR(sql)
		Z_PARAM_ARRAY_HT(lists)
		Z_PARAM_LONG(shape)
	ZEND_PARSE_PARAMETERS_END();
	array_init_size(return_value, zend_hash_num_elements(lists));
	void *batch = surus_rs_postgres_batch(surus_current_exchange(), (uint64_t)client, (uint64_t)transaction, surus_bytes_of(sql), room());
	zend_try {
		if (add_lists(batch, lists)) {
			take_each(batch, lists, (surus_postgres_shape)shape, Z_ARRVAL_P(return_value));
		}
	} zend_catch {
		surus_rs_postgres_batch_free(batch);
		zend_bailout();
	} zend_end_try();
	surus_rs_postgres_batch_free(batch);
}

/* Surus\Internal\postgres_begin(int $client, string $sql): int. The transaction's number; 0: it has none. */
static ZEND_FUNCTION(postgres_begin)
{
	zend_long client;
	zend_string *sql;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(client)
		Z_PARAM_STR(sql)
	ZEND_PARSE_PARAMETERS_END();
	uint64_t number;
	void *answer = surus_rs_postgres_begin(surus_current_exchange(), (uint64_t)client, surus_bytes_of(sql), &number);
	zval affected;
	ZVAL_NULL(&affected);
	surus_postgres_take(answer, &affected, SURUS_SHAPE_AFFECTED, NULL);
	RETURN_LONG((zend_long)number);
}

/* Surus\Internal\postgres_end(int $transaction, bool $commit): bool. False: it was rolled back in spite of that. */
static ZEND_FUNCTION(postgres_end)
{
	zend_long transaction;
	bool commit;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(transaction)
		Z_PARAM_BOOL(commit)
	ZEND_PARSE_PARAMETERS_END();
	surus_str sql = commit ? (surus_str){"COMMIT", 6} : (surus_str){"ROLLBACK", 8};
	void *answer = surus_rs_postgres_end(surus_current_exchange(), (uint64_t)transaction, sql);
	surus_postgres_rows rows;
	surus_postgres_failure failure;
	bool committed = surus_rs_postgres_rows(answer, &rows, &failure) == SURUS_POSTGRES_ROWS && !rows.rolled_back;
	surus_postgres_take(answer, return_value, SURUS_SHAPE_AFFECTED, NULL);
	RETURN_BOOL(committed);
}

/* Surus\Internal\postgres_cut(int $transaction): void */
static ZEND_FUNCTION(postgres_cut)
{
	zend_long transaction;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(transaction)
	ZEND_PARSE_PARAMETERS_END();
	surus_rs_postgres_cut(surus_current_exchange(), (uint64_t)transaction);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_client, 0, 2, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, connection, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, connections, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_query, 0, 5, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, client, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, transaction, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, sql, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, parameters, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, shape, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, class, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_each, 0, 5, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, client, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, transaction, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, sql, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, lists, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, shape, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_begin, 0, 2, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, client, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, sql, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_end, 0, 2, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, transaction, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, commit, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_postgres_cut, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, transaction, IS_LONG, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_postgres_functions[] = {
	ZEND_NS_FE("Surus\\Internal", postgres_client, arginfo_postgres_client)
	ZEND_NS_FE("Surus\\Internal", postgres_query, arginfo_postgres_query)
	ZEND_NS_FE("Surus\\Internal", postgres_each, arginfo_postgres_each)
	ZEND_NS_FE("Surus\\Internal", postgres_begin, arginfo_postgres_begin)
	ZEND_NS_FE("Surus\\Internal", postgres_end, arginfo_postgres_end)
	ZEND_NS_FE("Surus\\Internal", postgres_cut, arginfo_postgres_cut)
	ZEND_FE_END
};
