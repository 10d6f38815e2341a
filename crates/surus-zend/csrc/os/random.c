/* getrandom(), and the system call of this name, from a buffer. PHP seeds the random numbers of each request that asks for one: a system call of a request.
 *
 * The bytes are the kernel's. Each is given out once and wiped then; the buffer is empty in the child of a fork
 * (MADV_WIPEONFORK), so that no two processes get the same bytes. Long reads, and those with flags, go to the kernel. */
#include "base.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>

#define SIZE 4096
#define LONGEST 64

typedef struct {
	size_t left;
	unsigned char bytes[SIZE - sizeof(size_t)];
} reserve;

static __thread reserve *own;
static __thread bool is_refused;

static ssize_t from_kernel(void *to, size_t size, unsigned flags)
{
	static ssize_t (*next)(void *, size_t, unsigned);
	if (UNEXPECTED(!next)) {
		next = (ssize_t(*)(void *, size_t, unsigned))dlsym(RTLD_NEXT, "getrandom");
	}
	return next(to, size, flags);
}

/* Only of threads that run PHP: they live as long as the process. */
static reserve *make(void)
{
	void *page = mmap(NULL, sizeof(reserve), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		return NULL;
	}
	if (madvise(page, sizeof(reserve), MADV_WIPEONFORK) != 0) {
		munmap(page, sizeof(reserve));
		return NULL;
	}
	/* Not in core dumps. */
	madvise(page, sizeof(reserve), MADV_DONTDUMP);
	return page;
}

static bool fill(reserve *to)
{
	int before = errno;
	if (from_kernel(to->bytes, sizeof to->bytes, 0) != (ssize_t)sizeof to->bytes) {
		errno = before;
		return false;
	}
	to->left = sizeof to->bytes;
	return true;
}

/* Replaces libc's function. */
__attribute__((visibility("default"))) ssize_t getrandom(void *to, size_t size, unsigned flags)
{
	if (size == 0 || size > LONGEST || flags != 0 || !surus_can_park() || is_refused) {
		return from_kernel(to, size, flags);
	}
	if (UNEXPECTED(!own) && !(own = make())) {
		is_refused = true;
		return from_kernel(to, size, flags);
	}
	if (own->left < size && !fill(own)) {
		return from_kernel(to, size, flags);
	}
	unsigned char *from = own->bytes + own->left - size;
	own->left -= size;
	memcpy(to, from, size);
	explicit_bzero(from, size);
	return (ssize_t)size;
}

/* Replaces libc's function, through which PHP 8.2 asks. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long given[6];
	va_list arguments;
	va_start(arguments, number);
	for (size_t i = 0; i < 6; i++) {
		given[i] = va_arg(arguments, long); /* libc reads six as well */
	}
	va_end(arguments);
	if (number == SYS_getrandom) {
		return getrandom((void *)given[0], (size_t)given[1], (unsigned)given[2]);
	}
	if (UNEXPECTED(!next)) {
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	}
	return next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
