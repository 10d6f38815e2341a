/* OPcache's file locks, counted per isolate. */
#ifndef SURUS_HIDDEN_OPCACHE_LOCKS_H
#define SURUS_HIDDEN_OPCACHE_LOCKS_H

#include "base.h"
#include "hidden/find.h"

bool surus_find_opcache_lock(surus_finder *finder);
void surus_opcache_lock_drop(void);

/* libc's fcntl(), which os/record_locks.c replaces. */
int surus_real_fcntl(int fd, int command, void *argument);
/* The same, but a lock of OPcache belongs to the entered isolate. */
int surus_opcache_fcntl(int fd, int command, void *argument);

#endif
