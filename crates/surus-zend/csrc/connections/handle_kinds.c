/* Which classes and functions of extensions use a connection, and how its state is found. An extension need not be
 * loaded: it is looked up by name. */
#include "connections/handle_kinds.h"
#include "connections/exchanges.h"
#include "connections/handle_endings.h"
#include "connections/handle_uses.h"
#include "connections/statements.h"
#include "persistent/libpq.h"
#include "persistent/memcached.h"
#include "persistent/mysql.h"
#include "persistent/session.h"

#include <dlfcn.h>

#include "Zend/zend_interfaces.h"
#include "ext/pdo/php_pdo_driver.h"
#include "ext/mysqli/php_mysqli_structs.h"
#include "ext/mysqlnd/mysqlnd.h"
#include "ext/mysqlnd/mysqlnd_connection.h"

/* libpq is loaded by extensions; Surus is not linked with it. `connection` is a PGconn. */
static const char *libpq_begun(const void *connection)
{
	static int (*status_of)(const void *connection);
	if (!status_of) {
		status_of = dlsym(RTLD_DEFAULT, "PQtransactionStatus");
	}
	switch (connection && status_of ? status_of(connection) : 0) {
		case 1:
			return surus_libpq_is_resetting(connection) ? NULL : "a query";
		case 2:
		case 3:
			return "a transaction";
		default:
			return NULL; /* it is idle, or broken */
	}
}

static const char *mysqlnd_begun(const MYSQLND_CONN_DATA *data)
{
	if (!data || !data->upsert_status) {
		return NULL;
	}
	enum_mysqlnd_connection_state state = GET_CONNECTION_STATE(&data->state);
	if (state == CONN_QUERY_SENT || state == CONN_SENDING_LOAD_DATA || state == CONN_FETCHING_DATA || state == CONN_NEXT_RESULT_PENDING) {
		return "a query whose answer it has not read to its end";
	}
	return state == CONN_READY && data->upsert_status->server_status & SERVER_STATUS_IN_TRANS ? "a transaction" : NULL;
}

static MYSQLND *pdo_mysqlnd(const pdo_dbh_t *dbh)
{
	bool is_mysql = dbh->driver && strcmp(dbh->driver->driver_name, "mysql") == 0;
	return is_mysql && surus_is_mysqlnd(*(void **)dbh->driver_data) ? *(MYSQLND **)dbh->driver_data : NULL;
}

static void close_results(const void *handle);
static void call(zend_object *object, const char *method);

static const void *pdo_handle(zend_object *object)
{
	return php_pdo_dbh_fetch_inner(object);
}

static const char *pdo_begun(zend_object *object)
{
	pdo_dbh_t *dbh = php_pdo_dbh_fetch_inner(object);
	if (!dbh->methods || !dbh->driver_data) {
		return NULL;
	}
	if (dbh->driver && strcmp(dbh->driver->driver_name, "pgsql") == 0) {
		return libpq_begun(*(void **)dbh->driver_data); /* PDO takes a broken one for one in a transaction */
	}
	const MYSQLND *mysqlnd = pdo_mysqlnd(dbh);
	if (mysqlnd) {
		return mysqlnd_begun(mysqlnd->data);
	}
	bool open = dbh->methods->in_transaction ? dbh->methods->in_transaction(dbh) : dbh->in_txn;
	return open ? "a transaction" : NULL;
}

static void pdo_end(zend_object *object)
{
	pdo_dbh_t *dbh = php_pdo_dbh_fetch_inner(object);
	MYSQLND *mysqlnd = pdo_mysqlnd(dbh);
	if (mysqlnd) {
		if (mysqlnd_begun(mysqlnd->data)) {
			close_results(dbh);
		}
		surus_mysqlnd_settle(mysqlnd);
	} else if (dbh->driver && strcmp(dbh->driver->driver_name, "pgsql") == 0) {
		surus_libpq_settle(*(void **)dbh->driver_data);
	}
	if (pdo_begun(object) && dbh->methods->rollback) {
		dbh->methods->rollback(dbh);
		dbh->in_txn = false;
	}
}

static const void *statement_handle(zend_object *object)
{
	return php_pdo_stmt_fetch_object(object)->dbh;
}

static const char *statement_begun(zend_object *object)
{
	zval *database = &php_pdo_stmt_fetch_object(object)->database_object_handle;
	return Z_TYPE_P(database) == IS_OBJECT ? pdo_begun(Z_OBJ_P(database)) : NULL;
}

/* The resource of a mysqli object of any class. */
static void *mysqli_resource(zend_object *object)
{
	MYSQLI_RESOURCE *resource = php_mysqli_fetch_object(object)->ptr;
	return resource && resource->status != MYSQLI_STATUS_UNKNOWN ? resource->ptr : NULL;
}

static const void *mysqli_link_handle(zend_object *object)
{
	const MY_MYSQL *link = mysqli_resource(object);
	return link && link->mysql ? link->mysql->data : NULL;
}

static const char *mysqli_link_begun(zend_object *object)
{
	return mysqlnd_begun(mysqli_link_handle(object));
}

static void mysqli_link_end(zend_object *object)
{
	const MY_MYSQL *link = mysqli_resource(object);
	close_results(mysqli_link_handle(object));
	surus_mysqlnd_settle(link->mysql);
	if (mysqli_link_begun(object)) {
		mysqlnd_rollback(link->mysql, TRANS_COR_NO_OPT, NULL);
	}
}

static const void *mysqli_statement_handle(zend_object *object)
{
	const MY_STMT *statement = mysqli_resource(object);
	return statement && statement->stmt && statement->stmt->data ? statement->stmt->data->conn : NULL;
}

static const char *mysqli_statement_begun(zend_object *object)
{
	return mysqlnd_begun(mysqli_statement_handle(object));
}

static const void *mysqli_result_handle(zend_object *object)
{
	const MYSQL_RES *result = mysqli_resource(object);
	return result ? result->conn : NULL;
}

static const char *mysqli_result_begun(zend_object *object)
{
	return mysqlnd_begun(mysqli_result_handle(object));
}

/* The first field of the extension's struct. */
static void *pgsql_connection(zend_object *object)
{
	return *(void **)((char *)object - object->handlers->offset);
}

static const char *pgsql_begun(zend_object *object)
{
	return libpq_begun(pgsql_connection(object));
}

static void pgsql_end(zend_object *object)
{
	void *(*run)(void *connection, const char *query) = dlsym(RTLD_DEFAULT, "PQexec");
	void (*clear)(void *result) = dlsym(RTLD_DEFAULT, "PQclear");
	/* PQexec would wait without limit for the rest of an answer. */
	surus_libpq_settle(pgsql_connection(object));
	if (run && clear && libpq_begun(pgsql_connection(object))) {
		clear(run(pgsql_connection(object), "ROLLBACK"));
	}
}

/* Whether commands are queued: another request's commands would be added to them. */
static const char *redis_begun(zend_object *object)
{
	zval mode;
	ZVAL_UNDEF(&mode);
	zend_call_method_with_0_params(object, object->ce, NULL, "getmode", &mode);
	bool collects = Z_TYPE(mode) == IS_LONG && Z_LVAL(mode) != 0;
	zval_ptr_dtor(&mode);
	return collects ? "a transaction or a pipeline" : NULL;
}

static void redis_end(zend_object *object)
{
	call(object, "discard");
}

static const char *memcached_begun(zend_object *object)
{
	return surus_memcached_is_owed(object) ? "a getDelayed() that it has not fetched to its end" : NULL;
}

static void memcached_end(zend_object *object)
{
	surus_memcached_reconnect(object);
}

/* The zval at the third word: for a statement its connection, for a result its statement. */
static const void *sqlite_parent(zend_object *object)
{
	const zval *parent = (const zval *)((const char *)object - object->handlers->offset + 2 * sizeof(void *));
	return Z_TYPE_P(parent) == IS_OBJECT ? Z_OBJ_P(parent) : NULL;
}

static const void *sqlite_connection_of_result(zend_object *object)
{
	const void *statement = sqlite_parent(object);
	return statement ? sqlite_parent((zend_object *)statement) : NULL;
}

/* The statement, if it was prepared and executed by calls: the one of SQLite3::query() belongs to its result only. */
static zend_object *sqlite_shared_statement(zend_object *object)
{
	const void *statement = sqlite_parent(object);
	return statement && surus_use_find(statement) ? (zend_object *)statement : NULL;
}

static surus_handle_kind kinds[] = {
	{.class = "pdo", .handle = pdo_handle, .begun = pdo_begun, .end = pdo_end},
	{.class = "pdostatement", .handle = statement_handle, .begun = statement_begun, .answers_to_free = true,
		.open = surus_statement_open, .leave = surus_statement_leave, .is_apart = true},
	{.class = "mysqli", .handle = mysqli_link_handle, .begun = mysqli_link_begun, .end = mysqli_link_end},
	{.class = "mysqli_stmt", .handle = mysqli_statement_handle, .begun = mysqli_statement_begun,
		.answers_to_free = true, .open = surus_mysqli_statement_open, .leave = surus_statement_leave, .is_apart = true},
	{.class = "mysqli_result", .handle = mysqli_result_handle, .begun = mysqli_result_begun, .answers_to_free = true},
	{.class = "pgsql\\connection", .begun = pgsql_begun, .end = pgsql_end},
	{.class = "redis", .makes_handlers = true, .begun = redis_begun, .end = redis_end, .open = surus_watch_open,
		.leave = surus_watch_leave},
	{.class = "rediscluster", .makes_handlers = true, .begun = redis_begun, .end = redis_end},
	{.class = "redisarray"},
	{.class = "redissentinel"},
	{.class = "memcached", .begun = memcached_begun, .end = memcached_end, .mend = memcached_end},
	{.class = "memcache"},
	{.class = "curlhandle", .open = surus_curl_open},
	{.class = "curlmultihandle"},
	{.class = "ldap\\connection"},
	{.class = "ftp\\connection"},
	{.class = "soapclient"},
	{.class = "sqlite3"},
	{.class = "sqlite3stmt", .handle = sqlite_parent, .open = surus_sqlite_statement_open, .leave = surus_sqlite_statement_leave,
		.is_apart = true},
	{.class = "sqlite3result", .handle = sqlite_connection_of_result, .open = surus_sqlite_statement_open, .is_apart = true,
		.part_of = sqlite_shared_statement},
	{.class = "amqpconnection"},
	{.class = "amqpchannel"},
	{.class = "amqpqueue"},
	{.class = "amqpexchange"},
	{.class = "mongodb\\driver\\manager"},
	{.class = "mongodb\\driver\\cursor"},
	{.class = "stomp"},
	{.class = "gearmanclient"},
	{.class = "gearmanworker"},
	{.class = "solrclient"},
	{.class = "oauth"},
	{.class = "socket", .open = surus_socket_open, .leave = surus_socket_leave, .wants = surus_socket_wants, .close = surus_socket_close,
		.is_of_all = surus_socket_is_of_all, .is_socket = true},
	{.class = "splfileobject"},
};

surus_handle_kind surus_stream_kind
	= {.class = "stream", .is_watched = true, .open = surus_stream_open, .leave = surus_stream_leave,
		.wants = surus_stream_wants, .close = surus_stream_close};

#define KINDS (sizeof kinds / sizeof *kinds)

static void call(zend_object *object, const char *method)
{
	zval result;
	ZVAL_UNDEF(&result);
	zend_call_method(object, object->ce, NULL, method, strlen(method), &result, 0, NULL, NULL);
	zval_ptr_dtor(&result);
}

/* Closes the objects from which rows are read: only they know the number of rows left. Their request has ended. */
static void close_results(const void *handle)
{
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		surus_handle_kind *kind = IS_OBJ_VALID(object) ? surus_handle_kind_of(object) : NULL;
		if (!kind || !kind->answers_to_free || surus_handle_of(kind, object) != handle) {
			continue;
		}
		if (kind->handle == statement_handle) {
			call(object, "closecursor");
		} else if (kind->handle == mysqli_statement_handle) {
			call(object, "free_result");
		} else if (((const MYSQL_RES *)mysqli_resource(object))->unbuf) {
			call(object, "free");
		}
	}
}

/* Extensions whose functions take such objects as their first or second argument. */
static const char *const modules[] = {"curl", "ftp", "ldap", "mysqli", "pgsql"};

/* Functions that read from a stream or a socket or write to it, and functions that must not run while such a call
 * waits: PHP holds pointers to the stream's buffer meanwhile. */
static const struct { const char *name; surus_step step; } line_functions[] = {
	{"closedir", SURUS_CLOSES}, {"fclose", SURUS_CLOSES}, {"feof", SURUS_USES}, {"fflush", SURUS_USES}, {"fgetc", SURUS_READS},
	{"fgetcsv", SURUS_READS}, {"fgets", SURUS_READS}, {"flock", SURUS_USES}, {"fpassthru", SURUS_READS},
	{"fprintf", SURUS_ASKS}, {"fputcsv", SURUS_ASKS}, {"fputs", SURUS_ASKS}, {"fread", SURUS_READS}, {"fscanf", SURUS_READS},
	{"fseek", SURUS_USES}, {"fstat", SURUS_USES}, {"ftruncate", SURUS_USES}, {"fwrite", SURUS_ASKS}, {"pclose", SURUS_CLOSES},
	{"readdir", SURUS_USES}, {"rewind", SURUS_USES}, {"rewinddir", SURUS_USES}, {"stream_copy_to_stream", SURUS_READS},
	{"stream_filter_append", SURUS_USES}, {"stream_filter_prepend", SURUS_USES}, {"stream_filter_remove", SURUS_USES},
	{"stream_get_contents", SURUS_READS}, {"stream_get_line", SURUS_READS}, {"stream_set_read_buffer", SURUS_USES},
	{"stream_socket_enable_crypto", SURUS_USES}, {"stream_socket_recvfrom", SURUS_READS},
	{"stream_socket_sendto", SURUS_ASKS}, {"stream_socket_shutdown", SURUS_USES}, {"vfprintf", SURUS_ASKS},
	{"socket_close", SURUS_CLOSES}, {"socket_read", SURUS_READS}, {"socket_recv", SURUS_READS},
	{"socket_recvfrom", SURUS_READS}, {"socket_recvmsg", SURUS_READS}, {"socket_send", SURUS_ASKS},
	{"socket_sendmsg", SURUS_ASKS}, {"socket_sendto", SURUS_ASKS}, {"socket_shutdown", SURUS_USES},
	{"socket_write", SURUS_ASKS},
};

/* The kinds whose classes are loaded. */
static struct { const zend_class_entry *class; surus_handle_kind *kind; } known[KINDS];
static size_t known_count;

surus_handle_kind *surus_handle_kind_of_class(const zend_class_entry *class)
{
	for (; class; class = class->parent) {
		for (size_t i = 0; i < known_count; i++) {
			if (known[i].class == class) {
				return known[i].kind;
			}
		}
	}
	return NULL;
}

static bool is_of_module(const zend_internal_function *function)
{
	for (size_t i = 0; function->module && i < sizeof modules / sizeof *modules; i++) {
		if (strcmp(function->module->name, modules[i]) == 0) {
			return true;
		}
	}
	return false;
}

static void visit_class(zend_class_entry *class, surus_handle_kind *kind, surus_handle_visit visit)
{
	zend_function *function;
	ZEND_HASH_MAP_FOREACH_PTR(&class->function_table, function) {
		surus_step step = kind->open ? surus_statement_step(function->internal_function.handler) : SURUS_USES;
		visit(&function->internal_function, SURUS_BY_OBJECT, kind, step);
	} ZEND_HASH_FOREACH_END();
}

void surus_handle_functions(surus_handle_visit visit)
{
	zend_function *function;
	surus_statements_start();
	/* Methods and functions may have the same handler. */
	ZEND_HASH_MAP_FOREACH_PTR(CG(function_table), function) {
		if (function->type == ZEND_INTERNAL_FUNCTION && is_of_module(&function->internal_function)) {
			surus_step step = surus_statement_step(function->internal_function.handler);
			visit(&function->internal_function, SURUS_BY_ARGUMENT, NULL, step);
		}
	} ZEND_HASH_FOREACH_END();
	for (size_t i = 0; i < KINDS; i++) {
		zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), kinds[i].class, strlen(kinds[i].class));
		if (!class || class->type != ZEND_INTERNAL_CLASS) {
			continue;
		}
		known[known_count].class = class;
		known[known_count++].kind = &kinds[i];
		if (kinds[i].makes_handlers && class->create_object) {
			kinds[i].create = class->create_object;
			class->create_object = surus_handle_create;
		}
		visit_class(class, &kinds[i], visit);
	}
	/* Extension classes that extend one of these, like Pdo\Pgsql of PHP 8.4, have copies of its functions. */
	zend_class_entry *class;
	ZEND_HASH_MAP_FOREACH_PTR(CG(class_table), class) {
		surus_handle_kind *kind = class->type == ZEND_INTERNAL_CLASS && class->parent ? surus_handle_kind_of_class(class) : NULL;
		if (kind) {
			visit_class(class, kind, visit);
		}
	} ZEND_HASH_FOREACH_END();
	for (size_t i = 0; i < sizeof line_functions / sizeof *line_functions; i++) {
		const char *name = line_functions[i].name;
		bool is_socket = strncmp(name, "socket_", 7) == 0;
		function = zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
		if (function && function->type == ZEND_INTERNAL_FUNCTION) {
			visit(&function->internal_function, is_socket ? SURUS_BY_SOCKET : SURUS_BY_RESOURCE, NULL, line_functions[i].step);
		}
	}
}
