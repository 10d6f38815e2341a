/* OPcache's file locks, made to count isolates. */
#ifndef SURUS_OPCACHE_LOCKS_H
#define SURUS_OPCACHE_LOCKS_H

/* libc's fcntl(), which os/record_locks.c stands before. */
int surus_real_fcntl(int fd, int command, void *argument);
/* The same, where a lock of OPcache's is one of the entered isolate. */
int surus_opcache_fcntl(int fd, int command, void *argument);

#endif
