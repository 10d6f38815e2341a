#ifndef SURUS_PERSISTENT_MYSQL_OPTIONS_H
#define SURUS_PERSISTENT_MYSQL_OPTIONS_H

#include "base.h"

#include "ext/mysqlnd/mysqlnd.h"

/* Options of the client, which no reset of the session changes: LOAD DATA LOCAL, native numbers, commands that run after
 * a reset. Notes those that the connection has now. */
void surus_mysqlnd_note_options(MYSQLND_CONN_DATA *data);
/* Restores those that were noted last, if any were. */
void surus_mysqlnd_restore_options(MYSQLND_CONN_DATA *data);

#endif
