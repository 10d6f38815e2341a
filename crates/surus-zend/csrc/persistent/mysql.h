#ifndef SURUS_PERSISTENT_MYSQL_H
#define SURUS_PERSISTENT_MYSQL_H

#include "base.h"

/* Connections of PDO and of mysqli. */
void surus_mysqli_start(void);
void surus_mysqli_clean(surus_task *task);
/* Of an object of mysqli. */
/* MYSQLI_OPT_INT_AND_FLOAT_NATIVE, which can be set only; NULL: it has none. */
bool *surus_mysqli_native_numbers(zend_object *object);
bool surus_mysqli_reset(zend_object *object);
/* Whether an idle connection of mysqlnd was closed, or has an answer for nobody. */
bool surus_mysqlnd_is_alive(void *connection);
/* Whether a pointer is one to a connection of mysqlnd. */
bool surus_is_mysqlnd(void *candidate);
/* Reads what is left of answers, if that comes soon; else closes the connection. */
void surus_mysqlnd_settle(void *connection);
/* Makes it what it was when it was opened; false: it cannot be. */
bool surus_mysqlnd_reset(void *connection, const char *user, const char *password);

#endif
