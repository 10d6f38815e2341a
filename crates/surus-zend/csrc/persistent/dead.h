#ifndef SURUS_PERSISTENT_DEAD_H
#define SURUS_PERSISTENT_DEAD_H

#include "base.h"
#include "persistent/pdo.h"

/* The isolate goes; connections that PDO has forgotten in it are not closed. */
void surus_pdo_forget_dead(surus_isolate *isolate);

/* PDO asks this one whether it lives; one that does not is known from then on. */
void surus_pdo_ask_through_us(surus_pdo_handle *handle);
/* Those that PDO has forgotten meanwhile. */
void surus_pdo_close_dead(int type);

#endif
