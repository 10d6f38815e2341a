#ifndef SURUS_PERSISTENT_PGSQL_H
#define SURUS_PERSISTENT_PGSQL_H

#include "base.h"

/* Connections of PDO and of pgsql. */
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

#endif
