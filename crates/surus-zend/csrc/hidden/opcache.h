#ifndef SURUS_HIDDEN_OPCACHE_H
#define SURUS_HIDDEN_OPCACHE_H

#include "base.h"
#include "hidden/find.h"

/* Inside a scratch request. */
bool surus_find_opcache(surus_finder *finder);
void surus_opcache_entered(void);

#endif
