/* Persistent connections to PostgreSQL, of PDO and of pg_pconnect(), whose resource is libpq's connection. They are
 * handled with libpq's functions.
 *
 * pgsql gives libpq a pointer to an object of the request, for notices of the server. The connection outlives the
 * object: when the object is freed, the pointer is cleared. */
#include "persistent/pgsql.h"
#include "persistent/kept.h"
#include "persistent/libpq.h"
#include "persistent/pool.h"
#include "persistent/session.h"

/* ---- notices ---- */

/* Per connection: the object that libpq points to, and the number of pgsql's objects. An entry stays after its
 * connection was closed; the next connection at this address reuses it. */
typedef struct notices {
	struct notices *next;
	const void *connection;
	const void *target;
	unsigned objects;
} notices;

static notices *all_notices;
static const void *last_seen;
static surus_pool_kind kind = {.label = "pgsql"};

static notices *notices_of(const void *connection, bool make)
{
	notices *found = all_notices;
	while (found && found->connection != connection) {
		found = found->next;
	}
	if (!found && make && (found = calloc(1, sizeof *found))) {
		found->connection = connection;
		found->next = all_notices;
		all_notices = found;
	}
	return found;
}

static void ignore(void *target, const char *message)
{
	(void)target;
	(void)message;
}

/* Replaces libpq's function. */
__attribute__((visibility("default"))) notice_processor PQsetNoticeProcessor(PGconn *connection, notice_processor processor, void *target)
{
	last_seen = connection;
	return surus_libpq_load() ? pq.PQsetNoticeProcessor(connection, processor, target) : NULL;
}

bool surus_libpq_was_seen(const void *candidate)
{
	return candidate && candidate == last_seen;
}

/* The handle of an object of PgSql\Connection; it begins with libpq's connection. */
static void *handle_of(const zend_object *object)
{
	return (char *)object - object->handlers->offset;
}

static PGconn *connection_of(const zend_object *object)
{
	return *(PGconn *const *)handle_of(object);
}

static void forget_target(const zend_object *object)
{
	const void *handle = handle_of(object);
	PGconn *connection = connection_of(object);
	notices *known = connection ? notices_of(connection, false) : NULL;
	if (!known) {
		return;
	}
	if (known->objects) {
		known->objects--;
	}
	if (known->target == handle) {
		known->target = NULL;
		pq.PQsetNoticeProcessor(connection, ignore, NULL);
	}
}

static zend_object_free_obj_t real_free;

static void around_free(zend_object *object)
{
	surus_libpq_settle(connection_of(object));
	forget_target(object);
	real_free(object);
}

static void watch_free(const zend_object *object)
{
	if (!real_free) {
		real_free = object->handlers->free_obj;
		((zend_object_handlers *)object->handlers)->free_obj = around_free;
	}
}

static void note_link(const zend_object *object, const surus_kept_list *before)
{
	const void *handle = handle_of(object);
	const void *connection = *(const void *const *)handle;
	/* It must be in the list: this verifies the layout each time. */
	if (!connection || !surus_kept_has(kind.type, connection) || !surus_libpq_load()) {
		return;
	}
	notices *known = notices_of(connection, true);
	if (!known) {
		return;
	}
	bool is_new = true;
	for (size_t i = 0; i < before->count; i++) {
		is_new = is_new && before->entries[i].resource->ptr != connection;
	}
	known->objects = is_new ? 1 : known->objects + 1;
	known->target = handle;
	surus_kept_use(SURUS_KEPT_PGSQL, connection);
}

static zif_handler real_pconnect;

static ZEND_NAMED_FUNCTION(around_pconnect)
{
	const zval *text = ZEND_NUM_ARGS() == 1 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	bool pooled = text && Z_TYPE_P(text) == IS_STRING;
	surus_pool_name name = surus_pool_name_of(&kind, execute_data, 1, 1);
	if (pooled && !surus_pool_enter(&name)) {
		surus_pool_timeout(NULL);
		RETURN_FALSE;
	}
	surus_kept_list before = surus_kept_of(kind.type);
	for (size_t i = 0; i < before.count; i++) {
		const notices *known = notices_of(before.entries[i].resource->ptr, false);
		if (!known || !known->objects) {
			/* If it is dead, libpq now knows, and pg_pconnect() connects it again. */
			surus_libpq_is_alive(before.entries[i].resource->ptr);
		}
	}
	real_pconnect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		watch_free(Z_OBJ_P(return_value));
		note_link(Z_OBJ_P(return_value), &before);
		if (pooled && connection_of(Z_OBJ_P(return_value))) {
			surus_pool_entered(&name, connection_of(Z_OBJ_P(return_value)));
		}
	}
	surus_kept_free(&before);
}

static zif_handler real_connect;

static ZEND_NAMED_FUNCTION(around_connect)
{
	real_connect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		watch_free(Z_OBJ_P(return_value));
	}
}

static zif_handler real_close;

/* The object drops its connection; libpq must drop its pointer to the object. */
static ZEND_NAMED_FUNCTION(around_close)
{
	if (real_free && ZEND_NUM_ARGS() > 0 && Z_TYPE_P(ZEND_CALL_ARG(execute_data, 1)) == IS_OBJECT) {
		zend_object *object = Z_OBJ_P(ZEND_CALL_ARG(execute_data, 1));
		if (object->handlers->free_obj == around_free) {
			surus_libpq_settle(connection_of(object));
			forget_target(object);
		}
	}
	real_close(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void for_each_link(HashTable *list, void (*visit)(PGconn *connection))
{
	zend_resource *resource;
	if (!kind.type || !surus_libpq_load()) {
		return;
	}
	ZEND_HASH_FOREACH_PTR(list, resource) {
		if (resource->type == kind.type) {
			visit(resource->ptr);
		}
	} ZEND_HASH_FOREACH_END();
}

void surus_pgsql_before_close(HashTable *list)
{
	for_each_link(list, surus_libpq_sever);
}

/* At the end of a request pgsql reads what is left on each persistent connection. */
static zend_result (*real_end)(INIT_FUNC_ARGS);

/* The answer to a reset is not read by pgsql. */
static void settle(PGconn *connection)
{
	if (surus_libpq_reset_end(connection)) {
		surus_libpq_settle(connection);
	} else {
		surus_libpq_break(connection);
	}
}

static zend_result around_end(INIT_FUNC_ARGS)
{
	for_each_link(&EG(persistent_list), settle);
	return real_end(INIT_FUNC_ARGS_PASSTHRU);
}

void surus_pgsql_start(void)
{
	kind.type = zend_fetch_list_dtor_id("pgsql link persistent");
	if (kind.type) {
		zend_module_entry *module = zend_hash_str_find_ptr(&module_registry, "pgsql", sizeof "pgsql" - 1);
		if (module && module->request_shutdown_func) {
			real_end = module->request_shutdown_func;
			module->request_shutdown_func = around_end;
		}
		real_connect = surus_replace(NULL, "pg_connect", around_connect);
		real_pconnect = surus_replace(NULL, "pg_pconnect", around_pconnect);
		real_close = surus_replace(NULL, "pg_close", around_close);
	}
}

static bool has_no_object(void *connection)
{
	const notices *known = notices_of(connection, false);
	return !known || !known->objects;
}

void surus_pgsql_clean(surus_task *task)
{
	surus_kept_list kept = surus_kept_of(kind.type);
	surus_kept_sweep(kind.type, has_no_object);
	for (size_t i = 0; i < kept.count; i++) {
		surus_kept one = kept.entries[i];
		if (!surus_kept_was_used(task, one.resource->ptr)) {
			continue;
		}
		if (!has_no_object(one.resource->ptr)) {
			surus_kept_adopt(&one);
		} else if (!surus_libpq_reset_begin(one.resource->ptr)) {
			surus_libpq_sever(one.resource->ptr); /* pgsql would read it to its end */
			surus_kept_close(&one);
		}
	}
	surus_kept_free(&kept);
}
