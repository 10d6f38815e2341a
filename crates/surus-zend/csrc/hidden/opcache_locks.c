/* OPcache's file locks, counted per isolate.
 *
 * A request that may use shared memory holds a read lock on byte 1 of OPcache's lock file; OPcache restarts (wipes the
 * memory, after opcache_reset() or when it is full) only once nobody holds one. POSIX locks belong to the process: the
 * end of one isolate's request would release them for all, and F_GETLK does not report the process's own. So the lock
 * is released when the last isolate releases it, and F_GETLK also reports the isolates of this process.
 */
#include "hidden/opcache_locks.h"
#include "hidden/find.h"
#include "hidden/hidden.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#define USAGE_BYTE 1 /* ext/opcache/ZendAccelerator.c: accel_activate_add() */

static bool holds;       /* the entered isolate holds the usage lock: a region */
static unsigned holders; /* isolates of this process that do */
static int lock_file = -1;

typedef int (*fcntl_function)(int, int, ...);

int surus_real_fcntl(int fd, int command, void *argument)
{
	static fcntl_function next;
	if (!next) {
		next = (fcntl_function)dlsym(RTLD_NEXT, "fcntl");
	}
	return next(fd, command, argument);
}

static bool is_lock_file(int fd)
{
	if (lock_file < 0) {
		char link[64], target[256];
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		ssize_t length = readlink(link, target, sizeof target - 1);
		if (length > 0) {
			target[length] = '\0';
			if (strstr(target, "memfd:opcache_lock") || strstr(target, "/.ZendSem.")) {
				lock_file = fd;
			}
		}
	}
	return fd == lock_file;
}

static int usage_lock(int fd, int command, struct flock *lock)
{
	if (command == F_GETLK) {
		int result = surus_real_fcntl(fd, command, lock);
		if (result == 0 && lock->l_type == F_UNLCK && holders > 0) {
			lock->l_type = F_RDLCK;
			lock->l_pid = 0; /* OPcache kills whom it is told: nobody */
		}
		return result;
	}
	if (lock->l_type == F_UNLCK) {
		if (holds) {
			holds = false;
			holders--;
		}
		return holders > 0 ? 0 : surus_real_fcntl(fd, command, lock);
	}
	int result = surus_real_fcntl(fd, command, lock);
	if (result == 0 && !holds) {
		holds = true;
		holders++;
	}
	return result;
}

int surus_opcache_fcntl(int fd, int command, void *argument)
{
	if (command == F_SETLK || command == F_GETLK) {
		struct flock *lock = argument;
		bool usage = lock->l_start == USAGE_BYTE && lock->l_len == 1;
		bool everything = lock->l_start == 0 && lock->l_len == 0 && lock->l_type == F_UNLCK;
		if ((usage || everything) && lock->l_whence == SEEK_SET && is_lock_file(fd)) {
			return usage_lock(fd, command, lock);
		}
	}
	return surus_real_fcntl(fd, command, argument);
}

bool surus_find_opcache_lock(surus_finder *finder)
{
	return surus_found(finder, "opcache usage lock", &holds, sizeof holds, SURUS_INIT_ZERO);
}

void surus_opcache_lock_drop(void)
{
	if (holds) {
		holds = false;
		if (--holders == 0) {
			struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = USAGE_BYTE, .l_len = 1};
			surus_real_fcntl(lock_file, F_SETLK, &lock);
		}
	}
}
