/* Which classes and functions of extensions use a connection, and what is known of it. An extension need not be loaded,
 * and is asked for by name. */
#include "handles.h"
#include "libpq.h"

#include <dlfcn.h>

#include "Zend/zend_interfaces.h"
#include "ext/pdo/php_pdo_driver.h"
#include "ext/mysqli/php_mysqli_structs.h"

/* libpq comes with the extensions, and not with us. `connection` is one of its own. */
static const char *libpq_begun(const void *connection)
{
	static int (*status_of)(const void *connection);
	if (!status_of) {
		status_of = dlsym(RTLD_DEFAULT, "PQtransactionStatus");
	}
	switch (connection && status_of ? status_of(connection) : 0) {
		case 1:
			return "a query";
		case 2:
		case 3:
			return "a transaction";
		default:
			return NULL; /* it is idle, or broken */
	}
}

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
	bool open = dbh->methods->in_transaction ? dbh->methods->in_transaction(dbh) : dbh->in_txn;
	return open ? "a transaction" : NULL;
}

static void pdo_end(zend_object *object)
{
	pdo_dbh_t *dbh = php_pdo_dbh_fetch_inner(object);
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

/* What a mysqli object of any class has below it. */
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
	const MY_MYSQL *link = mysqli_resource(object);
	if (!link || !link->mysql || !link->mysql->data || !link->mysql->data->upsert_status) {
		return NULL;
	}
	return link->mysql->data->upsert_status->server_status & SERVER_STATUS_IN_TRANS ? "a transaction" : NULL;
}

static void mysqli_link_end(zend_object *object)
{
	const MY_MYSQL *link = mysqli_resource(object);
	mysqlnd_rollback(link->mysql, TRANS_COR_NO_OPT, NULL);
}

static const void *mysqli_statement_handle(zend_object *object)
{
	const MY_STMT *statement = mysqli_resource(object);
	return statement && statement->stmt && statement->stmt->data ? statement->stmt->data->conn : NULL;
}

static const void *mysqli_result_handle(zend_object *object)
{
	const MYSQL_RES *result = mysqli_resource(object);
	return result ? result->conn : NULL;
}

/* The first field of the extension's own struct. */
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
	/* It would wait for what is left of an answer, however long that takes. */
	surus_libpq_settle(pgsql_connection(object));
	if (run && clear && libpq_begun(pgsql_connection(object))) {
		clear(run(pgsql_connection(object), "ROLLBACK"));
	}
}

/* Commands that are collected, which another request's would be added to. */
static const char *redis_begun(zend_object *object)
{
	zval mode;
	ZVAL_UNDEF(&mode);
	zend_call_method_with_0_params(object, object->ce, NULL, "getmode", &mode);
	bool collects = Z_TYPE(mode) == IS_LONG && Z_LVAL(mode) != 0;
	zval_ptr_dtor(&mode);
	return collects ? "a transaction or a pipeline" : NULL;
}

static surus_handle_kind kinds[] = {
	{"pdo", pdo_handle, pdo_begun, pdo_end, false, false},
	{"pdostatement", statement_handle, statement_begun, NULL, true, false},
	{"mysqli", mysqli_link_handle, mysqli_link_begun, mysqli_link_end, false, false},
	{"mysqli_stmt", mysqli_statement_handle, NULL, NULL, true, false},
	{"mysqli_result", mysqli_result_handle, NULL, NULL, true, false},
	{"pgsql\\connection", NULL, pgsql_begun, pgsql_end, false, false},
	{"redis", NULL, redis_begun, NULL, false, false},
	{"rediscluster", NULL, redis_begun, NULL, false, false},
	{"redisarray", NULL, NULL, NULL, false, false},
	{"redissentinel", NULL, NULL, NULL, false, false},
	{"memcached", NULL, NULL, NULL, false, false},
	{"memcache", NULL, NULL, NULL, false, false},
	{"curlhandle", NULL, NULL, NULL, false, false},
	{"curlmultihandle", NULL, NULL, NULL, false, false},
	{"ldap\\connection", NULL, NULL, NULL, false, false},
	{"ftp\\connection", NULL, NULL, NULL, false, false},
	{"soapclient", NULL, NULL, NULL, false, false},
	{"sqlite3", NULL, NULL, NULL, false, false},
	{"sqlite3stmt", NULL, NULL, NULL, false, false},
	{"sqlite3result", NULL, NULL, NULL, false, false},
	{"amqpconnection", NULL, NULL, NULL, false, false},
	{"amqpchannel", NULL, NULL, NULL, false, false},
	{"amqpqueue", NULL, NULL, NULL, false, false},
	{"amqpexchange", NULL, NULL, NULL, false, false},
	{"mongodb\\driver\\manager", NULL, NULL, NULL, false, false},
	{"mongodb\\driver\\cursor", NULL, NULL, NULL, false, false},
	{"stomp", NULL, NULL, NULL, false, false},
	{"gearmanclient", NULL, NULL, NULL, false, false},
	{"gearmanworker", NULL, NULL, NULL, false, false},
	{"solrclient", NULL, NULL, NULL, false, false},
	{"oauth", NULL, NULL, NULL, false, false},
};

surus_handle_kind surus_stream_kind = {"stream", NULL, NULL, NULL, false, true};

#define KINDS (sizeof kinds / sizeof *kinds)

/* Extensions whose functions take such objects, as their first or second argument. */
static const char *const modules[] = {"curl", "ftp", "ldap", "mysqli", "pgsql"};

/* What reads from a stream, and what must not happen to it meanwhile: PHP keeps its buffer across the wait. */
static const char *const stream_functions[] = {"fclose", "feof", "fgetc", "fgetcsv", "fgets", "fpassthru", "fputs", "fread",
	"fscanf", "fwrite", "pclose", "stream_get_contents", "stream_get_line", "stream_socket_recvfrom", "stream_socket_sendto",
	"stream_socket_shutdown"};

/* Of the classes that are loaded. */
static struct { const zend_class_entry *class; surus_handle_kind *kind; } known[KINDS];
static size_t known_count;

surus_handle_kind *surus_handle_kind_of(const zend_object *object)
{
	const zend_class_entry *class = object->ce;
	while (class->type == ZEND_USER_CLASS && class->parent) {
		class = class->parent;
	}
	for (size_t i = 0; i < known_count; i++) {
		if (known[i].class == class) {
			return known[i].kind;
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

void surus_handle_functions(void (*visit)(zend_internal_function *function))
{
	zend_function *function;
	for (size_t i = 0; i < KINDS; i++) {
		zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), kinds[i].class, strlen(kinds[i].class));
		if (!class || class->type != ZEND_INTERNAL_CLASS) {
			continue;
		}
		known[known_count].class = class;
		known[known_count++].kind = &kinds[i];
		ZEND_HASH_MAP_FOREACH_PTR(&class->function_table, function) {
			visit(&function->internal_function);
		} ZEND_HASH_FOREACH_END();
	}
	for (size_t i = 0; i < sizeof stream_functions / sizeof *stream_functions; i++) {
		function = zend_hash_str_find_ptr(CG(function_table), stream_functions[i], strlen(stream_functions[i]));
		if (function && function->type == ZEND_INTERNAL_FUNCTION) {
			visit(&function->internal_function);
		}
	}
	ZEND_HASH_MAP_FOREACH_PTR(CG(function_table), function) {
		if (function->type == ZEND_INTERNAL_FUNCTION && is_of_module(&function->internal_function)) {
			visit(&function->internal_function);
		}
	} ZEND_HASH_FOREACH_END();
}
