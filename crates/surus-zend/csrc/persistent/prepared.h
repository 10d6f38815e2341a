#ifndef SURUS_PERSISTENT_PREPARED_H
#define SURUS_PERSISTENT_PREPARED_H

#include "persistent/pgsql.h"

/* The request that has prepared statements is over: others may use them. */
void surus_prepared_release(PGconn *connection);
/* The server forgets all statements of the connection. */
void surus_prepared_forget(PGconn *connection);

#endif
