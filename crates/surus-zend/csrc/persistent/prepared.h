#ifndef SURUS_PERSISTENT_PREPARED_H
#define SURUS_PERSISTENT_PREPARED_H

#include "persistent/pgsql.h"

/* A reset whose answer was not read yet. */
typedef enum { SURUS_RESET_NONE, SURUS_RESET_ALL, SURUS_RESET_PARTS } surus_reset;
/* What is known of a session, until its connection is closed. */
typedef struct {
	surus_reset reset;
	bool has_check; /* the server has prepared session.c's question */
} surus_session;
/* NULL: nothing is known, or there is no memory. */
surus_session *surus_session_of(const PGconn *connection, bool make);
/* The number of statements that the server keeps for PDO. */
size_t surus_prepared_count(const PGconn *connection);
/* The request that has prepared statements is over: others may use them. */
void surus_prepared_release(PGconn *connection);
/* The server forgets all statements of the connection. */
void surus_prepared_forget(PGconn *connection);

#endif
