#ifndef SURUS_CONNECTIONS_CLEANING_H
#define SURUS_CONNECTIONS_CLEANING_H

#include "base.h"

/* Wraps PHP's functions that return persistent connections. */
void surus_persistent_start(void);
/* Cleans those that the ended request has used. False: there was a fatal error. */
bool surus_persistent_end(surus_task *task);

#endif
