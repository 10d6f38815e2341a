#ifndef SURUS_PERSISTENT_MYSQL_H
#define SURUS_PERSISTENT_MYSQL_H

#include "base.h"

/* Connections of PDO and of mysqli. */
void surus_mysqli_start(void);
void surus_mysqli_clean(surus_task *task);
/* These two take an object of mysqli. */
/* Notes the options that a reset restores. */
void surus_mysqli_note(zend_object *object);
bool surus_mysqli_reset(zend_object *object);
/* False if the connection of mysqlnd is not idle, was closed, or has unread input. */
bool surus_mysqlnd_is_alive(void *connection);
/* Whether a pointer points to a connection of mysqlnd. */
bool surus_is_mysqlnd(void *candidate);
/* Reads the rest of answers, if it comes soon; otherwise closes the connection. */
void surus_mysqlnd_settle(void *connection);
/* Resets the connection to its initial state; false: this is impossible. */
bool surus_mysqlnd_reset(void *connection, const char *user, const char *password);

#endif
