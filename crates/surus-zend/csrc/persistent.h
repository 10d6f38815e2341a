/* Connections that PHP keeps from request to request: pconnect, PDO::ATTR_PERSISTENT. Who used one leaves it clean. */
#ifndef SURUS_PERSISTENT_H
#define SURUS_PERSISTENT_H

#include "internal.h"

/* An entry of EG(persistent_list). */
typedef struct {
	zend_string *key;
	zend_resource *resource;
} surus_kept;

/* persistent.c: up to `max` entries of this type into `to`; the list may change afterwards. */
size_t surus_kept_of(int type, surus_kept *to, size_t max);
#define SURUS_MAX_KEPT 32
/* Milliseconds that a server may take to answer when nobody waits for it any more. */
#define SURUS_PATIENCE_MS 2000
/* Ends the connection: nobody uses it. */
void surus_kept_close(const surus_kept *kept);
/* Objects that live on use the connection: the isolate keeps it for them, and no request is given it. */
void surus_kept_adopt(const surus_kept *kept);
/* Calls `done` for each adopted one of this type; true: it is closed. */
void surus_kept_sweep(int type, bool (*done)(void *handle));
/* Whether the request that ends has been given this one. */
bool surus_kept_was_used(const surus_task *task, const void *handle);
void surus_kept_use(unsigned kind, const void *handle);
/* Something can be read from it, or it is closed: who is idle expects neither. */
bool surus_is_readable(int descriptor);

enum {
	SURUS_KEPT_PDO = 1,
	SURUS_KEPT_PGSQL = 2,
	SURUS_KEPT_MYSQLI = 4,
	SURUS_KEPT_REDIS = 8,
	SURUS_KEPT_MEMCACHED = 16,
	SURUS_KEPT_STREAM = 32
};

/* ---- persistent_pdo.c ---- */
void surus_pdo_start(void);
void surus_pdo_clean(surus_task *task);
/* Of any connection of PDO: 1 or 0, -1 where only its driver could. */
typedef struct _pdo_dbh_t surus_pdo_handle;
int surus_pdo_reset(surus_pdo_handle *handle);
int surus_pdo_is_alive(surus_pdo_handle *handle);

/* ---- persistent_dead.c ---- */
/* PDO asks this one whether it lives; one that does not is known from then on. */
void surus_pdo_ask_through_us(surus_pdo_handle *handle);
/* Those that PDO has forgotten meanwhile. */
void surus_pdo_close_dead(int type);

/* ---- persistent_libpq.c: connections of PDO and of pgsql ---- */
typedef struct pg_conn PGconn;
void surus_pgsql_start(void);
void surus_pgsql_clean(surus_task *task);
/* Before a list of persistent connections is closed: no closing waits. */
void surus_pgsql_before_close(HashTable *list);
bool surus_libpq_load(void);
/* Whether this is the connection that was last made ready by a driver. */
bool surus_libpq_was_seen(const void *candidate);
/* Begins the reset of an idle connection; false: it cannot be reset. Then its end: true when it is clean. */
bool surus_libpq_reset_begin(PGconn *connection);
bool surus_libpq_reset_end(PGconn *connection);
/* Whether it can be handed out; libpq knows it if not. */
bool surus_libpq_is_alive(PGconn *connection);

/* ---- persistent_mysql.c: connections of PDO and of mysqli ---- */
void surus_mysqli_start(void);
void surus_mysqli_clean(surus_task *task);
/* Of an object of mysqli. */
bool surus_mysqli_reset(zend_object *object);
/* Whether an idle connection of mysqlnd was closed, or has an answer for nobody. */
bool surus_mysqlnd_is_alive(void *connection);
/* Whether a pointer is one to a connection of mysqlnd. */
bool surus_is_mysqlnd(void *candidate);
/* Reads what is left of answers, if that comes soon; else closes the connection. */
void surus_mysqlnd_settle(void *connection);
/* Makes it what it was when it was opened; false: it cannot be. */
bool surus_mysqlnd_reset(void *connection, const char *user, const char *password);

/* ---- persistent_redis.c ---- */
void surus_redis_start(void);
void surus_redis_clean(surus_task *task);

/* ---- persistent_stream.c: pfsockopen() ---- */
void surus_streams_start(void);
void surus_streams_clean(surus_task *task);

/* ---- persistent_memcached.c ---- */
void surus_memcached_start(void);
void surus_memcached_clean(surus_task *task);
/* After a request that was cut off. */
void surus_memcached_close_sessions(void);
/* Of an object of Memcached: whether an answer is still to be fetched. */
bool surus_memcached_is_owed(const zend_object *object);
/* It connects anew when it is used next. */
void surus_memcached_reconnect(const zend_object *object);

/* Puts a function in the place of an internal function or method and returns what was there; NULL: there is none. */
zif_handler surus_replace(const char *class_name, const char *name, zif_handler with);

#endif
