/* open() of a FIFO waits until its other end is opened: perhaps by a request of this process, which is impossible while
 * the thread blocks in open(). So the task parks: the FIFO is opened without waiting, and checked again and again until
 * the other end is open.
 *
 * This needs a stat() before each open() that could wait: 0.4 us. */
#include "base.h"
#include "os/descriptors.h"
#include "task/running.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

typedef int (*open_function)(const char *, int, ...);

static bool could_wait(int flags)
{
	int other = flags & (O_NONBLOCK | O_DIRECTORY | O_PATH);
	bool is_new = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	return (flags & O_ACCMODE) != O_RDWR && !other && !is_new && surus_running && surus_can_park();
}

static bool is_fifo(const char *path)
{
	struct stat status;
	int error = errno;
	bool is = stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
	errno = error;
	return is;
}

/* Whether a FIFO that is open for reading has, or has had since then, a writer. Nothing is read. */
static bool has_writer(int fd)
{
	struct pollfd state = {.fd = fd, .events = POLLIN};
	if (poll(&state, 1, 0) != 0) {
		return true;
	}
	/* It is empty. tee() from it tells whether data may still come (EAGAIN) or not (0). */
	int copy[2];
	if (pipe2(copy, O_CLOEXEC) != 0) {
		return true;
	}
	bool has = tee(fd, copy[1], 1, SPLICE_F_NONBLOCK) != 0;
	close(copy[0]);
	close(copy[1]);
	return has;
}

static int open_fifo(open_function next, const char *path, int flags, mode_t mode)
{
	bool reads = (flags & O_ACCMODE) == O_RDONLY;
	int fd = -1, before = errno;
	for (unsigned tries = 0;; tries++) {
		if (fd < 0) {
			fd = next(path, flags | O_NONBLOCK, mode);
			if (fd >= 0) {
				surus_rs_wake_partners();
			} else if (reads || errno != ENXIO) {
				return -1;
			}
		}
		if (fd >= 0 && (!reads || has_writer(fd))) {
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
			errno = before;
			return fd;
		}
		if (!surus_rs_nap_for_partner(tries)) {
			if (fd >= 0) {
				close(fd);
			}
			errno = ECANCELED;
			return -1;
		}
	}
}

static int open_any(open_function next, const char *path, int flags, mode_t mode)
{
	surus_descriptor_made();
	flags |= surus_descriptors_are_private() ? O_CLOEXEC : 0;
	if (could_wait(flags) && is_fifo(path)) {
		return open_fifo(next, path, flags, mode);
	}
	return next(path, flags, mode);
}

static open_function libc_open(void)
{
	static open_function next;
	if (UNEXPECTED(!next)) {
		next = (open_function)dlsym(RTLD_NEXT, "open");
	}
	return next;
}

/* On Linux for 64 bits the two are the same. */
#define MODE_OF(flags) \
	({ \
		mode_t mode = 0; \
		if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) { \
			va_list arguments; \
			va_start(arguments, flags); \
			mode = va_arg(arguments, mode_t); \
			va_end(arguments); \
		} \
		mode; \
	})

EXPORTED int open(const char *path, int flags, ...)
{
	return open_any(libc_open(), path, flags, MODE_OF(flags));
}

EXPORTED int open64(const char *path, int flags, ...)
{
	return open_any(libc_open(), path, flags, MODE_OF(flags));
}

/* Fortified builds call these two. */
EXPORTED int __open_2(const char *path, int flags)
{
	return open_any(libc_open(), path, flags, 0);
}

EXPORTED int __open64_2(const char *path, int flags)
{
	return open_any(libc_open(), path, flags, 0);
}
