/* Programs that PHP starts, between fork() and exec().
 *
 * A worker catches signals such as SIGTERM. Until exec(), the child would catch them as well and go on: a script's
 * signal to a program that it has just started would be lost, and would wake the worker. */
#include "os/children.h"

#include <pthread.h>
#include <signal.h>

static __thread sigset_t before;

static void before_fork(void)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
}

static void in_parent(void)
{
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Ignored signals stay ignored, as after exec(). */
static void in_child(void)
{
	surus_rs_leave_registrations();
	for (int number = 1; number < NSIG; number++) {
		struct sigaction action;
		if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
			action = (struct sigaction){.sa_handler = SIG_DFL};
			sigaction(number, &action, NULL);
		}
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void surus_children_enter_worker(void)
{
	static bool is_done;
	if (!is_done) {
		pthread_atfork(before_fork, in_parent, in_child);
		is_done = true;
	}
}
