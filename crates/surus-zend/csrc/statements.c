/* Objects on which a request does more than one call before it has its answer: a statement that gets values, is executed
 * and read, a connection of Redis that watches keys. Requests that share one would execute each other's values and read
 * each other's rows.
 *
 * Who has begun is noted per object. Another request that comes in between gets an exception; one that comes when the
 * first has what it wanted takes over, and then it is the first that must not read any more. */
#include "handles.h"

#include "Zend/zend_interfaces.h"
#include "ext/mysqli/php_mysqli_structs.h"
#include "ext/pdo/php_pdo_driver.h"

typedef enum { OTHER, BIND, EXECUTE, READ, CLOSE } step;
typedef enum { IDLE, BOUND, EXECUTED, HAS_READ } phase;

static const struct { const char *class, *name; step step; } names[] = {
	{"pdostatement", "bindvalue", BIND}, {"pdostatement", "bindparam", BIND}, {"pdostatement", "execute", EXECUTE},
	{"pdostatement", "fetch", READ}, {"pdostatement", "fetchall", READ}, {"pdostatement", "fetchcolumn", READ},
	{"pdostatement", "fetchobject", READ}, {"pdostatement", "rowcount", READ}, {"pdostatement", "nextrowset", READ},
	{"pdostatement", "getiterator", READ}, {"pdostatement", "closecursor", CLOSE},
	{"mysqli_stmt", "bind_param", BIND}, {"mysqli_stmt", "send_long_data", BIND}, {"mysqli_stmt", "execute", EXECUTE},
	{"mysqli_stmt", "fetch", READ}, {"mysqli_stmt", "get_result", READ}, {"mysqli_stmt", "store_result", READ},
	{"mysqli_stmt", "next_result", READ}, {"mysqli_stmt", "free_result", CLOSE}, {"mysqli_stmt", "reset", CLOSE},
	{"sqlite3stmt", "bindvalue", BIND}, {"sqlite3stmt", "bindparam", BIND}, {"sqlite3stmt", "execute", EXECUTE},
	{"sqlite3stmt", "reset", CLOSE}, {"sqlite3stmt", "clear", CLOSE},
	{"redis", "watch", BIND}, {"redis", "unwatch", CLOSE}, {"redis", "exec", CLOSE}, {"redis", "discard", CLOSE},
};

#define NAMES (sizeof names / sizeof *names)
/* Of the same places: a function of another name may have the same. */
static zif_handler handlers[NAMES];

typedef struct {
	surus_isolate *isolate;
	surus_task *task; /* NULL: its request has ended */
	uint64_t request;
	phase phase;
} record;

/* By the object's address. */
static HashTable records;
static uint64_t last_request;

static zend_ulong key_of(const zend_object *object)
{
	return (zend_ulong)(uintptr_t)object >> 3;
}

static void free_record(zval *value)
{
	free(Z_PTR_P(value));
}

void surus_statements_start(void)
{
	zend_hash_init(&records, 16, NULL, free_record, true);
	for (size_t i = 0; i < NAMES; i++) {
		zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), names[i].class, strlen(names[i].class));
		zend_function *function = class ? zend_hash_str_find_ptr(&class->function_table, names[i].name, strlen(names[i].name)) : NULL;
		handlers[i] = function && function->type == ZEND_INTERNAL_FUNCTION ? function->internal_function.handler : NULL;
	}
}

static step step_of(zif_handler handler)
{
	for (size_t i = 0; i < NAMES; i++) {
		if (handlers[i] == handler) {
			return names[i].step;
		}
	}
	return OTHER;
}

static bool is_of(const zend_object *object, const char *class)
{
	return strcasecmp(surus_handle_kind_of(object)->class, class) == 0;
}

/* Whether an execution has rows that somebody comes for. */
static bool has_columns(zend_object *object)
{
	if (is_of(object, "pdostatement")) {
		return php_pdo_stmt_fetch_object(object)->column_count > 0;
	}
	if (is_of(object, "mysqli_stmt")) {
		MYSQLI_RESOURCE *resource = php_mysqli_fetch_object(object)->ptr;
		const MY_STMT *statement = resource && resource->status != MYSQLI_STATUS_UNKNOWN ? resource->ptr : NULL;
		return statement && statement->stmt && statement->stmt->data && statement->stmt->data->field_count > 0;
	}
	return false; /* its rows come by another object */
}

/* What another request has begun and waits for elsewhere; NULL: nothing that this step disturbs. */
static const char *begun(const record *known, zend_object *object, step now)
{
	bool is_redis = is_of(object, "redis");
	if (known->phase == IDLE || (now == OTHER && !is_redis)) {
		return NULL;
	}
	if (known->phase == BOUND) {
		return is_redis ? "a WATCH" : "a statement that it has not executed yet";
	}
	if (now == READ) {
		return "a statement of its own on it";
	}
	return known->phase == EXECUTED && has_columns(object) ? "a statement whose rows it has not fetched yet" : NULL;
}

static void note(surus_task *task, zend_object *object, step now)
{
	static const phase after[] = {[BIND] = BOUND, [EXECUTE] = EXECUTED, [READ] = HAS_READ, [CLOSE] = IDLE};
	record *known = zend_hash_index_find_ptr(&records, key_of(object));
	if (!known) {
		record fresh = {.phase = IDLE};
		known = zend_hash_index_update_mem(&records, key_of(object), &fresh, sizeof fresh);
	}
	*known = (record){task->isolate, task, task->request_number, after[now]};
	task->uses_statements = true;
}

bool surus_statement_step(surus_task *task, zend_object *object, zif_handler handler)
{
	step now = step_of(handler);
	const record *known = zend_hash_index_find_ptr(&records, key_of(object));
	if (!task->request_number) {
		task->request_number = ++last_request;
	}
	if (known && known->request != task->request_number) {
		const char *what = known->task ? begun(known, object, now) : NULL;
		if (what) {
			surus_throw_in_use(ZSTR_VAL(object->ce->name), known->task, NULL, what);
			return false;
		}
		if (!known->task && known->phase != IDLE && now == READ) {
			surus_throw_executed_since(ZSTR_VAL(object->ce->name));
			return false;
		}
	}
	if (now != OTHER) {
		note(task, object, now);
	}
	return true;
}

/* Its rows are nobody's now. */
static void close_object(zend_object *object, phase phase)
{
	zval result;
	ZVAL_UNDEF(&result);
	const char *method = is_of(object, "pdostatement") ? "closecursor" : is_of(object, "mysqli_stmt") ? "free_result"
		: is_of(object, "redis") ? "unwatch" : NULL;
	bool is_open = is_of(object, "redis") ? phase == BOUND : phase == EXECUTED || phase == HAS_READ;
	if (!method || !is_open) {
		return;
	}
	GC_ADDREF(object);
	zend_try {
		zend_call_method(object, object->ce, NULL, method, strlen(method), &result, 0, NULL, NULL);
	} zend_end_try();
	zval_ptr_dtor(&result);
	OBJ_RELEASE(object);
}

void surus_statements_end(surus_task *task)
{
	if (!task->uses_statements) {
		task->request_number = 0;
		return;
	}
	zend_ulong key;
	record *known;
again:
	/* Each time from the start: a call may wait, and others use the table meanwhile. */
	ZEND_HASH_FOREACH_NUM_KEY_PTR(&records, key, known) {
		if (known->task == task) {
			phase phase = known->phase;
			known->task = NULL;
			close_object((zend_object *)(uintptr_t)(key << 3), phase);
			goto again;
		}
	} ZEND_HASH_FOREACH_END();
	task->uses_statements = false;
	task->request_number = 0;
}

void surus_statement_forget(const zend_object *object)
{
	zend_hash_index_del(&records, key_of(object));
}

void surus_statements_forget(const surus_isolate *isolate)
{
	zend_ulong key;
	record *known;
	ZEND_HASH_FOREACH_NUM_KEY_PTR(&records, key, known) {
		if (known->isolate == isolate) {
			zend_hash_index_del(&records, key);
		}
	} ZEND_HASH_FOREACH_END();
}

void surus_statements_give_up(const surus_task *task)
{
	record *known;
	ZEND_HASH_FOREACH_PTR(&records, known) {
		if (known->task == task) {
			known->task = NULL;
		}
	} ZEND_HASH_FOREACH_END();
}
