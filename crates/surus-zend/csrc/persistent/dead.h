#ifndef SURUS_PERSISTENT_DEAD_H
#define SURUS_PERSISTENT_DEAD_H

#include "base.h"
#include "persistent/pdo.h"

/* The isolate is freed; connections that PDO has dropped in it are not closed. */
void surus_pdo_forget_dead(surus_isolate *isolate);

/* Wraps the check whether this connection is alive: a dead one is recorded. */
void surus_pdo_ask_through_us(surus_pdo_handle *handle);
/* Closes those that PDO has dropped meanwhile. */
void surus_pdo_close_dead(int type);

#endif
