/* Sessions with PostgreSQL: reset between their users. */
#ifndef SURUS_PERSISTENT_SESSION_H
#define SURUS_PERSISTENT_SESSION_H

#include "persistent/pgsql.h"

/* Begins the reset of an idle connection; false: it cannot be reset. The server resets it even if nobody reads its answer. */
bool surus_libpq_reset_begin(PGconn *connection);
/* Completes a reset, if one has begun: true if the connection is clean. Waits for the server, SURUS_PATIENCE_MS at most. */
bool surus_libpq_reset_end(PGconn *connection);
bool surus_libpq_is_resetting(const PGconn *connection);
/* Whether the connection can be used: it is clean, and the server has not closed it. If not, libpq's status says so. */
bool surus_libpq_is_alive(PGconn *connection);

#endif
