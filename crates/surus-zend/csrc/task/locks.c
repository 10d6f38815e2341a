/* Locks of C libraries, between requests that share a thread.
 *
 * A request may be parked or pre-empted inside a call of a library that holds a lock: in a callback, or where the
 * library itself waits. For pthreads all requests of a process are one thread: the next one that takes the lock would
 * block that thread for ever or, if the lock is recursive, get it as if it already held it. So the executable exports
 * these functions. They record which task holds which lock; a task that needs a lock of a suspended task is parked
 * until that lock is released. Locks that other threads hold are waited for as usual.
 *
 * libc's internal locks do not pass through these functions; none is held while a hook of Surus runs. */
#include "task/locks.h"
#include "task/log.h"
#include "task/running.h"
#include "task/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#define EXPORTED __attribute__((visibility("default")))
#define QUICK static inline __attribute__((always_inline))

typedef int (*lock_function)(void *);

/* A function of libc, looked up at its first use: libraries take locks before Surus has started. */
#define LIBC(name) \
	({ \
		static lock_function found; \
		if (UNEXPECTED(!found)) { \
			found = (lock_function)dlsym(RTLD_NEXT, #name); \
		} \
		found; \
	})

/* Suspended tasks that hold locks. */
static surus_task *holders;
/* Tasks that wait for one of these locks. */
static surus_task *waiters;

/* Locks whose task has ended without releasing them, after a fatal error in a callback. Nobody will release them: the
 * next task that needs one gets it. The locks themselves are not accessed, since their memory may be freed. */
#define LOST 64
static void *lost[LOST];
static unsigned lost_count;

/* If there is no memory, the lock is not recorded and works as without Surus. */
static bool grow(surus_task *task)
{
	uint32_t room = task->lock_room ? task->lock_room * 2 : 8;
	void **grown = realloc(task->locks, room * sizeof *grown);
	if (grown) {
		task->locks = grown;
		task->lock_room = room;
	}
	return grown;
}

QUICK void note(surus_task *task, void *lock)
{
	if (EXPECTED(task->lock_count < task->lock_room) || grow(task)) {
		task->locks[task->lock_count++] = lock;
	}
}

static bool forget(surus_task *task, void *lock)
{
	for (uint32_t i = task->lock_count; i-- > 0;) {
		if (task->locks[i] == lock) {
			memmove(&task->locks[i], &task->locks[i + 1], (--task->lock_count - i) * sizeof *task->locks);
			return true;
		}
	}
	return false;
}

static bool is_held(void *lock)
{
	for (surus_task *task = holders; task; task = task->next_holder) {
		for (uint32_t i = 0; i < task->lock_count; i++) {
			if (task->locks[i] == lock) {
				return true;
			}
		}
	}
	return false;
}

static bool take_lost(void *lock)
{
	for (unsigned i = 0; i < lost_count; i++) {
		if (lost[i] == lock) {
			lost[i] = lost[--lost_count];
			return true;
		}
	}
	return false;
}

/* `lock` may be free now; NULL: any lock. */
static void released(const void *lock)
{
	for (const surus_task *task = waiters; task; task = task->next_waiter) {
		if (!lock || task->wanted == lock) {
			surus_rs_lock_is_released();
			return;
		}
	}
}

/* Waits until the lock is released. Where the engine cannot be left, the task is abandoned instead: the one that it
 * waits for could not go on. */
static void wait_for_release(surus_task *task, const void *lock, const void *caller)
{
	if (!surus_may_leave()) {
		Dl_info library;
		bool known = dladdr(caller, &library) && library.dli_fname;
		surus_logf(3, "%s: another request holds a lock that is wanted where the engine cannot wait: what ran cannot go on",
			known ? library.dli_fname : "a library");
		surus_task_abandon(task, SURUS_ABANDONED);
	}
	if (task->hard_cancel) {
		/* Such a task may be given up, which is not allowed for a task that waits. */
		surus_yield(SURUS_YIELDED);
		return;
	}
	task->wanted = lock;
	task->next_waiter = waiters;
	waiters = task;
	surus_rs_wait_for_lock();
	surus_task **at = &waiters;
	while (*at != task) {
		at = &(*at)->next_waiter;
	}
	*at = task->next_waiter;
}

/* Takes a lock while other tasks hold locks. `is_exclusive`: only one holder is allowed, but libc would not report
 * EBUSY to the same thread. */
static int take_among_others(surus_task *task, void *lock, lock_function wait, lock_function try, bool is_exclusive,
	const void *caller)
{
	for (;;) {
		bool waits = is_exclusive && is_held(lock);
		if (!waits) {
			int result = try(lock);
			if (result != EBUSY) {
				return result;
			}
			if (!is_held(lock)) {
				return take_lost(lock) ? 0 : wait(lock);
			}
		}
		wait_for_release(task, lock, caller);
	}
}

QUICK int take(void *lock, lock_function wait, lock_function try, bool is_exclusive)
{
	surus_task *task = surus_running;
	if (!task) {
		return wait(lock);
	}
	int result = EXPECTED(!holders && !lost_count)
		? wait(lock)
		: take_among_others(task, lock, wait, try, is_exclusive, __builtin_return_address(0));
	if (EXPECTED(result == 0)) {
		note(task, lock);
	}
	return result;
}

static int try_to_take(void *lock, lock_function try, bool is_exclusive)
{
	surus_task *task = surus_running;
	if (task && holders && is_exclusive && is_held(lock)) {
		return EBUSY;
	}
	int result = try(lock);
	if (task && result == 0) {
		note(task, lock);
	}
	return result;
}

static void forget_among_others(surus_task *task, void *lock)
{
	if (!forget(task, lock)) {
		take_lost(lock);
	}
	released(lock);
}

QUICK int release(void *lock, lock_function release)
{
	surus_task *task = surus_running;
	int result = release(lock);
	if (task) {
		uint32_t count = task->lock_count;
		if (EXPECTED(count && task->locks[count - 1] == lock && !waiters)) {
			task->lock_count = count - 1;
		} else {
			forget_among_others(task, lock);
		}
	}
	return result;
}

static int destroy(void *lock, lock_function destroy)
{
	if (surus_running) {
		while (forget(surus_running, lock)) {
		}
		take_lost(lock);
	}
	return destroy(lock);
}

/* ---- tasks ---- */

void surus_locks_leave(surus_task *task)
{
	task->next_holder = holders;
	holders = task;
}

void surus_locks_return(surus_task *task)
{
	for (surus_task **at = &holders; *at; at = &(*at)->next_holder) {
		if (*at == task) {
			*at = task->next_holder;
			return;
		}
	}
}

void surus_locks_end(surus_task *task)
{
	surus_locks_return(task);
	for (uint32_t i = 0; i < task->lock_count && lost_count < LOST; i++) {
		take_lost(task->locks[i]);
		lost[lost_count++] = task->locks[i];
	}
	task->lock_count = 0;
	released(NULL);
}

/* ---- exported functions ---- */

/* The function that waits for a lock, and the one that only tries. */
#define LOCKS(type, name, try, is_exclusive) \
	EXPORTED int name(type *lock) \
	{ \
		return take(lock, LIBC(name), LIBC(try), is_exclusive); \
	} \
	EXPORTED int try(type *lock) \
	{ \
		return try_to_take(lock, LIBC(try), is_exclusive); \
	}

LOCKS(pthread_mutex_t, pthread_mutex_lock, pthread_mutex_trylock, true)
LOCKS(pthread_rwlock_t, pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, false)
LOCKS(pthread_rwlock_t, pthread_rwlock_wrlock, pthread_rwlock_trywrlock, true)

EXPORTED int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return release(mutex, LIBC(pthread_mutex_unlock));
}

EXPORTED int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	return destroy(mutex, LIBC(pthread_mutex_destroy));
}

EXPORTED int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	return release(lock, LIBC(pthread_rwlock_unlock));
}

EXPORTED int pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
	return destroy(lock, LIBC(pthread_rwlock_destroy));
}

/* ---- sections ---- */

void surus_section_enter(void *key, const void *caller)
{
	surus_task *task = surus_running;
	if (task) {
		while (holders && is_held(key)) {
			wait_for_release(task, key, caller);
		}
		note(task, key);
	}
}

void surus_section_leave(void *key)
{
	surus_task *task = surus_running;
	if (task) {
		forget(task, key);
		released(key);
	}
}
