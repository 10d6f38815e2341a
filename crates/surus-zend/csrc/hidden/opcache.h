#ifndef SURUS_HIDDEN_OPCACHE_H
#define SURUS_HIDDEN_OPCACHE_H

#include "base.h"
#include "hidden/find.h"

/* Inside a scratch request. */
bool surus_find_opcache(surus_finder *finder);
void surus_opcache_entered(void);
/* When the request begins, for OPcache: files that are newer are not cached, and those that were looked at lately are not looked at. */
void surus_opcache_set_time(time_t now);

#endif
