/* Persistent connections of PDO. PostgreSQL and MySQL are reset; connections of drivers without a reset are closed,
 * except SQLite's databases in memory, which are persistent because of their contents. */
#include "persistent/pdo.h"
#include "persistent/alone.h"
#include "persistent/dead.h"
#include "persistent/kept.h"
#include "persistent/mysql.h"
#include "persistent/pgsql.h"
#include "persistent/pool.h"
#include "persistent/session.h"

#include "ext/pdo/php_pdo.h"
#include "ext/pdo/php_pdo_driver.h"

static surus_pool_kind kind = {.label = "PDO"};
/* The driver's struct begins with its connection: used only after this was verified for one connection. */
static bool pgsql_proven, mysql_proven;

static bool is_driver(const pdo_dbh_t *dbh, const char *name)
{
	return dbh->driver && dbh->driver_data && strcmp(dbh->driver->driver_name, name) == 0;
}

static void *first_of(const pdo_dbh_t *dbh)
{
	return *(void **)dbh->driver_data;
}

static PGconn *libpq_of(const pdo_dbh_t *dbh)
{
	return pgsql_proven && is_driver(dbh, "pgsql") ? first_of(dbh) : NULL;
}

static void *mysqlnd_of(const pdo_dbh_t *dbh)
{
	if (!is_driver(dbh, "mysql")) {
		return NULL;
	}
	mysql_proven = mysql_proven || surus_is_mysqlnd(first_of(dbh));
	return mysql_proven ? first_of(dbh) : NULL;
}

/* The list has one reference, each object another one. */
static bool is_idle(const pdo_dbh_t *dbh)
{
	return dbh->refcount <= 1;
}

static bool is_idle_handle(void *handle)
{
	return is_idle(handle);
}

/* ---- before a request gets it ---- */

static const zval *persistent_option(const zend_execute_data *execute_data)
{
	if (ZEND_NUM_ARGS() < 4 || Z_TYPE_P(ZEND_CALL_ARG(execute_data, 4)) != IS_ARRAY) {
		return NULL;
	}
	zval *options = ZEND_CALL_ARG(execute_data, 4);
	zval *wanted = zend_hash_index_find(Z_ARRVAL_P(options), PDO_ATTR_PERSISTENT);
	if (!wanted || !zend_is_true(wanted)) {
		return NULL;
	}
	if (!surus_may_keep()) {
		SEPARATE_ARRAY(options);
		zend_hash_index_del(Z_ARRVAL_P(options), PDO_ATTR_PERSISTENT);
		return NULL;
	}
	return wanted;
}

/* For those that can be cleaned: PDO distinguishes them by source, user, password and the value of the option. */
static bool name_of(const zend_execute_data *execute_data, const zval *option, surus_pool_name *name)
{
	const zval *source = ZEND_CALL_ARG(execute_data, 1);
	*name = surus_pool_name_of(&kind, execute_data, 1, 3);
	name->names[name->count++] = Z_TYPE_P(option) == IS_STRING ? option : NULL;
	return Z_TYPE_P(source) == IS_STRING
		&& (zend_string_starts_with_literal(Z_STR_P(source), "pgsql:") || zend_string_starts_with_literal(Z_STR_P(source), "mysql:"));
}

/* Closes dead connections. PDO asks libpq, which does not know of the end before it has read all input. */
static void check_idle(void)
{
	surus_kept_list kept = surus_kept_of(kind.type);
	for (size_t i = 0; i < kept.count; i++) {
		pdo_dbh_t *dbh = kept.entries[i].resource->ptr;
		PGconn *connection = libpq_of(dbh);
		if (connection && is_idle(dbh) && !surus_libpq_is_alive(connection)) {
			surus_kept_close(&kept.entries[i]);
		}
	}
	surus_kept_free(&kept);
}

static void note_use(zend_object *object)
{
	pdo_dbh_t *dbh = php_pdo_dbh_fetch_inner(object);
	/* Until this is true, connections are closed after their use. */
	pgsql_proven = pgsql_proven || (dbh && is_driver(dbh, "pgsql") && surus_libpq_was_seen(first_of(dbh)));
	if (dbh && dbh->is_persistent) {
		surus_pdo_ask_through_us(dbh);
		surus_kept_use(SURUS_KEPT_PDO, dbh);
	}
}

/* `real` makes the object that `object` points to. */
static void open_persistent(INTERNAL_FUNCTION_PARAMETERS, zif_handler real, const zval *option, const zval *object)
{
	surus_pool_name name;
	bool pooled = name_of(execute_data, option, &name);
	if (pooled && !surus_pool_enter(&name)) {
		surus_pool_timeout("pdoexception");
		return;
	}
	check_idle();
	real(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	surus_pdo_close_dead(kind.type);
	if (Z_TYPE_P(object) != IS_OBJECT) {
		return;
	}
	note_use(Z_OBJ_P(object));
	const pdo_dbh_t *dbh = php_pdo_dbh_fetch_inner(Z_OBJ_P(object));
	if (pooled && dbh) {
		surus_pool_entered(&name, dbh);
	}
}

static zif_handler real_construct;

static ZEND_NAMED_FUNCTION(around_construct)
{
	const zval *option = persistent_option(execute_data);
	if (option) {
		open_persistent(INTERNAL_FUNCTION_PARAM_PASSTHRU, real_construct, option, ZEND_THIS);
		return;
	}
	real_construct(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	note_use(Z_OBJ_P(ZEND_THIS));
}

/* PDO::connect() of PHP 8.4. */
static zif_handler real_connect;

static ZEND_NAMED_FUNCTION(around_connect)
{
	const zval *option = persistent_option(execute_data);
	if (option) {
		open_persistent(INTERNAL_FUNCTION_PARAM_PASSTHRU, real_connect, option, return_value);
		return;
	}
	real_connect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		note_use(Z_OBJ_P(return_value));
	}
}

void surus_pdo_start(void)
{
	kind.type = zend_fetch_list_dtor_id("PDO persistent database");
	if (kind.type) {
		real_construct = surus_replace("pdo", "__construct", around_construct);
		real_connect = surus_replace("pdo", "connect", around_connect);
	}
}

/* ---- after its use ---- */

/* Resets attributes, which belong to the request that has set them; the constructor sets some of them again. */
static void forget_attributes(pdo_dbh_t *dbh)
{
	dbh->in_txn = false;
	dbh->auto_commit = 1;
	dbh->desired_case = PDO_CASE_NATURAL;
	dbh->oracle_nulls = 0;
	dbh->stringify = 0;
	dbh->default_fetch_type = PDO_FETCH_BOTH;
	dbh->error_mode = PDO_ERRMODE_EXCEPTION;
	memcpy(dbh->error_code, PDO_ERR_NONE, sizeof PDO_ERR_NONE);
	static const struct { const char *driver; zend_long attribute, value; } own[] = {
		{"pgsql", PDO_ATTR_EMULATE_PREPARES, false}, {"pgsql", PDO_ATTR_DRIVER_SPECIFIC, false}, /* DISABLE_PREPARES */
		{"pgsql", PDO_ATTR_PREFETCH, true}, /* PHP 8.5 */
		{"mysql", PDO_ATTR_EMULATE_PREPARES, true}, {"mysql", PDO_ATTR_DRIVER_SPECIFIC, true}, /* USE_BUFFERED_QUERY */
		{"mysql", PDO_ATTR_FETCH_TABLE_NAMES, false}, {"mysql", PDO_ATTR_DEFAULT_STR_PARAM, PDO_PARAM_STR_CHAR},
	};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		if (is_driver(dbh, own[i].driver) && dbh->methods->set_attribute) {
			zval value;
			ZVAL_LONG(&value, own[i].value);
			dbh->methods->set_attribute(dbh, own[i].attribute, &value);
		}
	}
}

static bool is_in_memory(const pdo_dbh_t *dbh)
{
	return is_driver(dbh, "sqlite") && dbh->data_source
		&& (!*dbh->data_source || strstr(dbh->data_source, ":memory:") || strstr(dbh->data_source, "mode=memory"));
}

/* Objects that refer to each other (an entity manager and its parts) are freed by the collector of cycles. Without a
 * collection here, the next requests would open many new connections before it runs. */
static void collect_users(const surus_task *task)
{
	surus_kept_list kept = surus_kept_of(kind.type);
	bool is_held = false;
	for (size_t i = 0; i < kept.count; i++) {
		const void *handle = kept.entries[i].resource->ptr;
		is_held = is_held || (surus_kept_was_used(task, handle) && !is_idle(handle));
	}
	surus_kept_free(&kept);
	if (is_held) {
		zend_gc_collect_cycles();
	}
}

/* Whether it is clean, or will be before it is used. */
static bool reset(pdo_dbh_t *dbh)
{
	PGconn *connection = libpq_of(dbh);
	void *mysqlnd = mysqlnd_of(dbh);
	bool good = connection ? surus_libpq_reset_begin(connection)
		: mysqlnd ? surus_mysqlnd_reset(mysqlnd, dbh->username, dbh->password)
		: is_in_memory(dbh);
	if (good) {
		forget_attributes(dbh);
	}
	return good;
}

void surus_pdo_clean(surus_task *task)
{
	collect_users(task);
	surus_kept_list kept = surus_kept_of(kind.type);
	surus_kept_sweep(kind.type, is_idle_handle);
	for (size_t i = 0; i < kept.count; i++) {
		surus_kept one = kept.entries[i];
		pdo_dbh_t *dbh = one.resource->ptr;
		if (!surus_kept_was_used(task, dbh)) {
			continue;
		}
		if (!is_idle(dbh)) {
			surus_kept_adopt(&one);
		} else if (!reset(dbh)) {
			surus_kept_close(&one);
		}
	}
	surus_kept_free(&kept);
}

/* ---- for pools of the application ---- */

int surus_pdo_reset(pdo_dbh_t *dbh)
{
	return libpq_of(dbh) || mysqlnd_of(dbh) ? reset(dbh) : -1;
}

int surus_pdo_is_alive(pdo_dbh_t *dbh)
{
	PGconn *connection = libpq_of(dbh);
	void *mysqlnd = mysqlnd_of(dbh);
	return connection ? surus_libpq_is_alive(connection) : mysqlnd ? surus_mysqlnd_is_alive(mysqlnd) : -1;
}
