/* Objects on which a request makes several calls before it has its answer: a statement to which values are bound, which
 * is executed and read; a Redis connection that watches keys; a curl handle whose options are set. Requests that share
 * one would execute each other's values and read each other's rows.
 *
 * Another request that uses the object in between gets an exception. After the first one has got its answer, another
 * one may take over, and then the first one must not read any more. */
#include "connections/statements.h"
#include "connections/handle_kinds.h"

#include "Zend/zend_interfaces.h"
#include "ext/mysqli/php_mysqli_structs.h"
#include "ext/pdo/php_pdo_driver.h"

static const struct { const char *class, *name; surus_step step; } names[] = {
	{"pdostatement", "bindvalue", SURUS_PREPARES}, {"pdostatement", "bindparam", SURUS_PREPARES},
	{"pdostatement", "execute", SURUS_ASKS}, {"pdostatement", "fetch", SURUS_READS}, {"pdostatement", "fetchall", SURUS_READS},
	{"pdostatement", "fetchcolumn", SURUS_READS}, {"pdostatement", "fetchobject", SURUS_READS},
	{"pdostatement", "rowcount", SURUS_READS}, {"pdostatement", "nextrowset", SURUS_READS},
	{"pdostatement", "getiterator", SURUS_READS}, {"pdostatement", "closecursor", SURUS_CLOSES},
	{"mysqli_stmt", "bind_param", SURUS_PREPARES}, {"mysqli_stmt", "send_long_data", SURUS_PREPARES},
	{"mysqli_stmt", "execute", SURUS_ASKS}, {"mysqli_stmt", "fetch", SURUS_READS}, {"mysqli_stmt", "get_result", SURUS_READS},
	{"mysqli_stmt", "store_result", SURUS_READS}, {"mysqli_stmt", "next_result", SURUS_READS},
	{"mysqli_stmt", "free_result", SURUS_CLOSES}, {"mysqli_stmt", "reset", SURUS_CLOSES},
	{"sqlite3stmt", "bindvalue", SURUS_PREPARES}, {"sqlite3stmt", "bindparam", SURUS_PREPARES},
	{"sqlite3stmt", "execute", SURUS_ASKS}, {"sqlite3stmt", "reset", SURUS_CLOSES}, {"sqlite3stmt", "clear", SURUS_CLOSES},
	{"sqlite3result", "fetcharray", SURUS_READS}, {"sqlite3result", "reset", SURUS_READS}, {"sqlite3result", "finalize", SURUS_READS},
	{"sqlite3result", "columntype", SURUS_READS}, {"sqlite3result", "fetchall", SURUS_READS},
	{"redis", "watch", SURUS_PREPARES}, {"redis", "unwatch", SURUS_CLOSES}, {"redis", "exec", SURUS_CLOSES},
	{"redis", "discard", SURUS_CLOSES},
	{NULL, "curl_setopt", SURUS_PREPARES}, {NULL, "curl_setopt_array", SURUS_PREPARES}, {NULL, "curl_exec", SURUS_CLOSES},
	{NULL, "curl_reset", SURUS_CLOSES},
};

#define NAMES (sizeof names / sizeof *names)
/* The handlers of `names`, by index: functions with other names may have the same handler. */
static zif_handler handlers[NAMES];

void surus_statements_start(void)
{
	for (size_t i = 0; i < NAMES; i++) {
		zend_class_entry *class = names[i].class ? zend_hash_str_find_ptr(CG(class_table), names[i].class, strlen(names[i].class)) : NULL;
		HashTable *functions = class ? &class->function_table : names[i].class ? NULL : CG(function_table);
		zend_function *function = functions ? zend_hash_str_find_ptr(functions, names[i].name, strlen(names[i].name)) : NULL;
		handlers[i] = function && function->type == ZEND_INTERNAL_FUNCTION ? function->internal_function.handler : NULL;
	}
}

surus_step surus_statement_step(zif_handler handler)
{
	for (size_t i = 0; i < NAMES; i++) {
		if (handlers[i] == handler) {
			return names[i].step;
		}
	}
	return SURUS_USES;
}

/* `has_rows`: the execution has rows that must be fetched. */
static const char *open_statement(surus_phase phase, surus_step now, bool has_rows)
{
	if (phase == SURUS_IDLE || now == SURUS_USES) {
		return NULL;
	}
	if (phase == SURUS_PREPARED) {
		return "a statement that it has not executed yet";
	}
	if (now == SURUS_READS) {
		return "a statement of its own on it";
	}
	return phase == SURUS_ASKED && has_rows ? "a statement whose rows it has not fetched yet" : NULL;
}

const char *surus_statement_open(const surus_use *use, surus_step now)
{
	return open_statement(use->phase, now, php_pdo_stmt_fetch_object(use->object)->column_count > 0);
}

const char *surus_mysqli_statement_open(const surus_use *use, surus_step now)
{
	MYSQLI_RESOURCE *resource = php_mysqli_fetch_object(use->object)->ptr;
	const MY_STMT *statement = resource && resource->status != MYSQLI_STATUS_UNKNOWN ? resource->ptr : NULL;
	bool is_there = statement && statement->stmt && statement->stmt->data;
	return open_statement(use->phase, now, is_there && statement->stmt->data->field_count > 0);
}

/* Its rows are read from another object. */
const char *surus_sqlite_statement_open(const surus_use *use, surus_step now)
{
	return open_statement(use->phase, now, false);
}

/* Options are set before the transfer that uses them. */
const char *surus_curl_open(const surus_use *use, surus_step now)
{
	return use->phase == SURUS_PREPARED && now != SURUS_USES ? "a transfer (its options are set)" : NULL;
}

const char *surus_watch_open(const surus_use *use, surus_step now)
{
	(void)now;
	return use->phase == SURUS_PREPARED ? "a WATCH" : NULL;
}

static void call(zend_object *object, const char *method)
{
	zval result;
	ZVAL_UNDEF(&result);
	GC_ADDREF(object);
	zend_try {
		zend_call_method(object, object->ce, NULL, method, strlen(method), &result, 0, NULL, NULL);
	} zend_end_try();
	zval_ptr_dtor(&result);
	OBJ_RELEASE(object);
}

/* Its rows are dropped; a request that goes on reading gets an exception. */
bool surus_statement_leave(surus_use *use, surus_phase phase, bool broken_off)
{
	(void)broken_off;
	bool is_mysqli = strcmp(use->kind->class, "mysqli_stmt") == 0;
	if (phase == SURUS_ASKED || phase == SURUS_HEARD) {
		call(use->object, is_mysqli ? "free_result" : "closecursor");
	}
	return true;
}

/* Rows that are not read to the end keep a lock on the file. */
bool surus_sqlite_statement_leave(surus_use *use, surus_phase phase, bool broken_off)
{
	(void)broken_off;
	if (phase == SURUS_ASKED || phase == SURUS_HEARD) {
		call(use->object, "reset");
	}
	return true;
}

bool surus_watch_leave(surus_use *use, surus_phase phase, bool broken_off)
{
	(void)broken_off;
	if (phase == SURUS_PREPARED) {
		call(use->object, "unwatch");
	}
	return false;
}
