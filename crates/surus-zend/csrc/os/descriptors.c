/* PHP's descriptors: how high they are, and how many.
 *
 * select() takes those below 1024 only. Surus keeps its own above, so PHP's are low; where PHP itself has more than a
 * thousand, its functions warn and leave the high ones out of the wait, which then never ends. Here that is an exception. */
#include "os/descriptors.h"
#include "hidden/engine.h"
#include "task/running.h"
#include "task/state.h"

#include "ext/spl/spl_exceptions.h"
#include "main/php_network.h"
#include "Zend/zend_gc.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The frame whose call was refused: it goes on to select() before the exception gets its turn. */
static const zend_execute_data *refused;

/* Stands before PHP's own: called where a set for select() is about to lack a descriptor. */
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

/* ---- how many ----
 *
 * An object in a cycle keeps its file or connection open until PHP's collector runs, which counts objects: 10,000 of them.
 * Under php-fpm a request's end closes everything. In an application that goes on, the collector also runs when what PHP
 * has open has grown: at the end of a request, below nobody's code. */

/* So many more than before are worth a look. */
#define GROWN 32

/* Descriptors that PHP code has been given since the last look. */
static unsigned made;
/* Those that were open after the last collection, or the fewest since. */
static int few = FD_SETSIZE;

void surus_descriptor_made(void)
{
	made += surus_running != NULL;
}

/* Of PHP's, which are low. The kernel says in one call which are none, however many clients there are. */
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

/* Each stands before libc's, to count. (open() is in os/fifo.c.) */
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
	return LIBC(socket)(domain, type, protocol);
}

EXPORTED int socketpair(int domain, int type, int protocol, int pair[2])
{
	surus_descriptor_made();
	return LIBC(socketpair)(domain, type, protocol, pair);
}

EXPORTED int pipe(int pair[2])
{
	surus_descriptor_made();
	return LIBC(pipe)(pair);
}
