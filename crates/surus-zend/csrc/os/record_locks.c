/* Locks of files: a task that waits for one parks.
 *
 * The file must be linked with `fcntl` and `fcntl64` exported, so that PHP and its extensions call these. */
#include "base.h"
#include "hidden/opcache_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

/* The holder of the lock may be a parked request of this process (OFD locks), and a lock of another process must not
 * block the other tasks: so the lock is requested again and again. */
static int wait_for_lock(int fd, int command, void *argument)
{
	for (unsigned tries = 0;; tries++) {
		int result = surus_real_fcntl(fd, command, argument);
		if (result == 0 || (errno != EAGAIN && errno != EACCES)) {
			return result;
		}
		if (!surus_rs_nap_for_lock(tries)) {
			errno = ENOLCK;
			return -1;
		}
	}
}

static int locked_fcntl(int fd, int command, void *argument)
{
	if ((command == F_SETLKW || command == F_OFD_SETLKW) && surus_can_park()) {
		return wait_for_lock(fd, command == F_SETLKW ? F_SETLK : F_OFD_SETLK, argument);
	}
	return surus_opcache_fcntl(fd, command, argument);
}

__attribute__((visibility("default"))) int fcntl(int fd, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	return locked_fcntl(fd, command, argument);
}

__attribute__((visibility("default"))) int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	return locked_fcntl(fd, command, argument);
}
