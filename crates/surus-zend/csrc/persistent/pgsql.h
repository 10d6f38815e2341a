#ifndef SURUS_PERSISTENT_PGSQL_H
#define SURUS_PERSISTENT_PGSQL_H

#include "base.h"

/* Connections of PDO and of pgsql. */
typedef struct pg_conn PGconn;
void surus_pgsql_start(void);
void surus_pgsql_clean(surus_task *task);
/* Before a list of persistent connections is closed: ensures that closing does not wait. */
void surus_pgsql_before_close(HashTable *list);
bool surus_libpq_load(void);
/* Whether this is the last connection that a driver has set up. */
bool surus_libpq_was_seen(const void *candidate);

#endif
