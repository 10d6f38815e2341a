#ifndef SURUS_CONNECTIONS_CLEANING_H
#define SURUS_CONNECTIONS_CLEANING_H

#include "base.h"

/* Functions that stand before those of PHP which give out persistent connections. */
void surus_persistent_start(void);
/* Cleans those that the ended request was given. False: there was a fatal error. */
bool surus_persistent_end(surus_task *task);

#endif
