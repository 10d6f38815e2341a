/* PHP's descriptors: their numbers, their count, and who inherits them.
 *
 * select() supports only descriptors below 1024. Surus' own are above, so PHP's are low; if PHP has more than a
 * thousand, its functions warn and omit the high ones from the wait, which then never ends. Here this throws an
 * exception. */
#include "os/descriptors.h"
#include "hidden/engine.h"
#include "task/running.h"
#include "task/state.h"

#include "ext/spl/spl_exceptions.h"
#include "main/php_network.h"
#include "Zend/zend_gc.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The frame whose call was refused: it still calls select() before the exception is handled. */
static const zend_execute_data *refused;

/* Replaces PHP's function, which is called when a descriptor is omitted from a set for select(). */
PHPAPI ZEND_COLD void _php_emit_fd_setsize_warning(int max_fd)
{
	surus_task *task = surus_running;
	if (!task || task->script) {
		void (*next)(int) = (void (*)(int))dlsym(RTLD_NEXT, "_php_emit_fd_setsize_warning");
		next(max_fd);
		return;
	}
	refused = EG(current_execute_data);
	if (!EG(exception)) {
		zend_throw_exception_ex(spl_ce_RuntimeException, 0,
			"Descriptor %d cannot be waited for: select() takes those below %d, and this process has more files and"
			" connections of PHP open at once", max_fd, FD_SETSIZE);
	}
}

bool surus_select_is_refused(void)
{
	return refused && EG(exception) && refused == EG(current_execute_data);
}

/* ---- count ----
 *
 * An object in a cycle keeps its file or connection open until PHP's collector runs, after 10,000 possible roots. Under
 * php-fpm the end of a request closes everything. In an application that goes on, the collector also runs when the
 * number of PHP's open descriptors has grown: at the end of a request, when no PHP code is on the stack. */

/* After this number of new descriptors the open ones are counted. */
#define GROWN 32

/* Descriptors that PHP code has opened since the last count. */
static unsigned made;
/* The number of open ones after the last collection, or the lowest count since. */
static int few = FD_SETSIZE;

void surus_descriptor_made(void)
{
	made += surus_running != NULL;
}

/* Counts PHP's descriptors, which are low. One poll() tells which numbers are not open; the cost does not depend on the
 * number of clients. */
static int count_open(void)
{
	static struct pollfd all[FD_SETSIZE];
	struct rlimit limit = {.rlim_cur = FD_SETSIZE};
	getrlimit(RLIMIT_NOFILE, &limit);
	nfds_t count = limit.rlim_cur < FD_SETSIZE ? (nfds_t)limit.rlim_cur : FD_SETSIZE;
	for (nfds_t i = 0; i < count; i++) {
		all[i] = (struct pollfd){.fd = (int)i};
	}
	if (poll(all, count, 0) < 0) {
		return few;
	}
	int open = 0;
	for (nfds_t i = 0; i < count; i++) {
		open += !(all[i].revents & POLLNVAL);
	}
	return open;
}

void surus_collect_descriptors(void)
{
	if (EXPECTED(made < GROWN)) {
		return;
	}
	made = 0;
	int open = count_open();
	few = MIN(few, open);
	if (open < few + GROWN + few / 4 || !surus_gc->gc_enabled || !surus_gc->num_roots) {
		return;
	}
	gc_collect_cycles();
	few = count_open();
}

/* ---- inheritance ----
 *
 * Programs inherit what is open in their process, and so what other requests have open: a lock of flock() would be held,
 * and a connection or a pipe not be at its end, until a program of somebody else has ended. What a program is to have
 * PHP duplicates for it. */
bool surus_descriptors_are_private(void)
{
	return surus_running && !surus_running->script;
}

static int private_flag(int flag)
{
	return surus_descriptors_are_private() ? flag : 0;
}

/* ---- libc's functions, to count and to mark. open() is in os/fifo.c, accept() in blocking/connect.rs. ---- */

#define EXPORTED __attribute__((visibility("default")))
#define LIBC(name) \
	({ \
		static __typeof__(&name) next; \
		if (UNEXPECTED(!next)) { \
			next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
		} \
		next; \
	})

EXPORTED int socket(int domain, int type, int protocol)
{
	surus_descriptor_made();
	int made_one = LIBC(socket)(domain, type | private_flag(SOCK_CLOEXEC), protocol);
	surus_rs_is_new(made_one);
	return made_one;
}

EXPORTED int socketpair(int domain, int type, int protocol, int pair[2])
{
	surus_descriptor_made();
	int result = LIBC(socketpair)(domain, type | private_flag(SOCK_CLOEXEC), protocol, pair);
	if (result == 0) {
		surus_rs_is_new(pair[0]);
		surus_rs_is_new(pair[1]);
	}
	return result;
}

EXPORTED int pipe(int pair[2])
{
	surus_descriptor_made();
	return LIBC(pipe)(pair);
}

/* The other end of a pipe of popen(), which PHP does not mark. */
EXPORTED FILE *popen(const char *command, const char *mode)
{
	char marked[8];
	surus_descriptor_made();
	if (surus_descriptors_are_private() && snprintf(marked, sizeof marked, "%se", mode) < (int)sizeof marked) {
		return LIBC(popen)(command, marked);
	}
	return LIBC(popen)(command, mode);
}

EXPORTED int mkstemp(char *name)
{
	surus_descriptor_made();
	return mkostemp(name, private_flag(O_CLOEXEC));
}

EXPORTED int mkstemp64(char *name)
{
	return mkstemp(name);
}
