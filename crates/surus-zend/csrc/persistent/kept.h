/* Connections that PHP keeps from request to request: pconnect, PDO::ATTR_PERSISTENT. */
#ifndef SURUS_PERSISTENT_KEPT_H
#define SURUS_PERSISTENT_KEPT_H

#include "base.h"

/* An entry of EG(persistent_list). */
typedef struct {
	zend_string *key;
	zend_resource *resource;
} surus_kept;

typedef struct {
	surus_kept *entries;
	size_t count;
} surus_kept_list;

/* Copies all entries of this type; the list of PHP may change afterwards. */
surus_kept_list surus_kept_of(int type);
void surus_kept_free(surus_kept_list *list);
bool surus_kept_has(int type, const void *handle);
/* The time that a server may take to answer after the request has ended, in milliseconds. */
#define SURUS_PATIENCE_MS 2000
/* Closes the connection, which nobody uses. */
void surus_kept_close(const surus_kept *kept);
/* Objects that outlive the request use the connection: the isolate keeps it for them, and no request gets it. */
void surus_kept_adopt(const surus_kept *kept);
/* Calls `done` for each adopted one of this type; if it returns true, the connection is closed. */
void surus_kept_sweep(int type, bool (*done)(void *handle));
/* Whether the request that ends has used this one. */
bool surus_kept_was_used(const surus_task *task, const void *handle);
void surus_kept_use(unsigned kind, const void *handle);
/* Whether it has input or is closed: for an idle connection both are unexpected. */
bool surus_is_readable(int descriptor);

/* Sets the timeout of a connection to SURUS_PATIENCE_MS while it is cleaned, whatever the application has set. */
typedef struct { php_stream *stream; struct timeval before; } surus_patience;
surus_patience surus_patience_begin(php_stream *stream);
/* Restores the application's timeout; `stream` is the connection's current stream, NULL if it was closed. */
void surus_patience_end(const surus_patience *patience, php_stream *stream);

enum {
	SURUS_KEPT_PDO = 1,
	SURUS_KEPT_PGSQL = 2,
	SURUS_KEPT_MYSQLI = 4,
	SURUS_KEPT_REDIS = 8,
	SURUS_KEPT_MEMCACHED = 16,
	SURUS_KEPT_STREAM = 32
};

/* Replaces the handler of an internal function or method and returns the old one; NULL: there is no such function. */
zif_handler surus_replace(const char *class_name, const char *name, zif_handler with);

#endif
