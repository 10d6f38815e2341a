#ifndef SURUS_PERSISTENT_ALONE_H
#define SURUS_PERSISTENT_ALONE_H

#include "base.h"

/* Whether the running code may get a persistent connection: not in a request that has had tasks. */
bool surus_may_keep(void);
/* After all other wrappers of these functions. */
void surus_alone_start(void);

#endif
