#ifndef SURUS_PERSISTENT_DEAD_H
#define SURUS_PERSISTENT_DEAD_H

#include "base.h"
#include "persistent/pdo.h"

/* The list of connections of the entered isolate is about to be destroyed: with those that PDO has dropped in a request that
 * has then ended with a fatal error, or was cut. */
void surus_pdo_list_dead(void);
/* The isolate is freed; what is left of it is not closed, as its memory may be in any state. */
void surus_pdo_forget_dead(surus_isolate *isolate);

/* Wraps the check whether this connection is alive: a dead one is recorded. */
void surus_pdo_ask_through_us(surus_pdo_handle *handle);
/* Closes those that PDO has dropped meanwhile. */
void surus_pdo_close_dead(int type);

#endif
