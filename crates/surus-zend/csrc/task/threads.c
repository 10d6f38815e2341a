/* Waiting for a thread that a library has made: on a condition variable, or for its end.
 *
 * Most such waits are short. A long one would block all tasks of this thread, and one of them may be the one that has
 * to signal. So the thread blocks for a millisecond, as in libc, then lets other tasks run and checks again from time
 * to time. POSIX allows spurious wakeups: the library checks its predicate and waits again. */
#include "base.h"
#include "task/running.h"
#include "task/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

#define SLICE_NS 1000000
#define SECOND_NS 1000000000

typedef int (*clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
typedef int (*timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int (*plain_wait)(pthread_cond_t *, pthread_mutex_t *);

/* The version that programs are linked with: libc has an older one of that name, with another layout. */
static void *find(const char *name)
{
	void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
	return found ? found : dlsym(RTLD_NEXT, name);
}

#define NEXT(type, name) \
	static type next; \
	if (UNEXPECTED(!next)) { \
		next = (type)find(#name); \
	}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static struct timespec slice_from_now(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	time.tv_nsec += SLICE_NS;
	if (time.tv_nsec >= SECOND_NS) {
		time.tv_nsec -= SECOND_NS;
		time.tv_sec++;
	}
	return time;
}

/* The clock of a condition variable cannot be queried. No machine has an uptime of thirty years. */
static clockid_t clock_of(const struct timespec *until)
{
	return until->tv_sec > SECOND_NS ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

/* Other tasks run while the mutex is unlocked. A signal in this time is missed: the caller checks its predicate. */
static int let_others_run(pthread_mutex_t *mutex)
{
	surus_task *task = surus_running;
	pthread_mutex_unlock(mutex);
	surus_rs_pause(task->naps++);
	return pthread_mutex_lock(mutex);
}

static bool waits_alone(void)
{
	return !surus_running || !surus_can_park();
}

/* `until`: NULL means no timeout. */
static int wait_on(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	NEXT(clockwait, pthread_cond_clockwait)
	struct timespec slice = slice_from_now(clock);
	bool ends = until && !is_before(&slice, until);
	int result = next(condition, mutex, clock, ends ? until : &slice);
	if (result != ETIMEDOUT) {
		surus_running->naps = 0;
		return result;
	}
	return ends ? result : let_others_run(mutex);
}

EXPORTED int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	NEXT(plain_wait, pthread_cond_wait)
	return waits_alone() ? next(condition, mutex) : wait_on(condition, mutex, CLOCK_MONOTONIC, NULL);
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
	NEXT(timedwait, pthread_cond_timedwait)
	return waits_alone() ? next(condition, mutex, until) : wait_on(condition, mutex, clock_of(until), until);
}

EXPORTED int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
	const struct timespec *until)
{
	NEXT(clockwait, pthread_cond_clockwait)
	return waits_alone() ? next(condition, mutex, clock, until) : wait_on(condition, mutex, clock, until);
}

EXPORTED int pthread_join(pthread_t thread, void **result)
{
	typedef int (*join)(pthread_t, void **);
	NEXT(join, pthread_join)
	if (waits_alone()) {
		return next(thread, result);
	}
	for (unsigned tries = 0;; tries++) {
		struct timespec slice = slice_from_now(CLOCK_REALTIME);
		int joined = pthread_timedjoin_np(thread, result, &slice);
		if (joined != ETIMEDOUT) {
			return joined;
		}
		surus_rs_pause(tries);
	}
}
