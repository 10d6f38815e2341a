/* Critical sections of the runtime libraries of languages, between requests that share a thread.
 *
 * A request may be parked inside one: in a pthread_once() routine, in the initializer of a C++ static, or in a parallel
 * region of OpenMP, where ImageMagick reports its progress to PHP, under a lock that GCC's runtime builds on a futex.
 * The runtime also keeps the thread's region in a thread-local variable: two regions must not alternate on a thread. So
 * one task is in such a section at a time, and other tasks of the thread are parked until it has left; see
 * task/locks.c. Other threads, such as those of a region, have no task and are not affected.
 *
 * __cxa_guard_*: Itanium C++ ABI, 3.3.3. GOMP_*: the interface that GCC compiles `#pragma omp` to, libgomp_g.h. */
#include "base.h"
#include "task/locks.h"
#include "task/log.h"

#include <dlfcn.h>
#include <pthread.h>

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* The next function of that name. A library that was loaded with RTLD_LOCAL is not searched: `library` is, then. */
static void *find(const char *name, const char *library)
{
	void *found = dlsym(RTLD_NEXT, name);
	if (!found) {
		void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
		found = handle ? dlsym(handle, name) : NULL;
	}
	if (!found) {
		surus_logf(1, "%s has no %s, which a library calls", library, name);
		abort();
	}
	return found;
}

#define NEXT(name, library, ...) \
	static void (*next)(__VA_ARGS__); \
	if (UNEXPECTED(!next)) { \
		next = (void (*)(__VA_ARGS__))find(#name, library); \
	}

/* ---- once ---- */

EXPORTED int pthread_once(pthread_once_t *control, void (*routine)(void))
{
	static int (*next)(pthread_once_t *, void (*)(void));
	if (UNEXPECTED(!next)) {
		next = (int (*)(pthread_once_t *, void (*)(void)))dlsym(RTLD_NEXT, "pthread_once");
	}
	surus_section_enter(control, CALLER);
	int result = next(control, routine);
	surus_section_leave(control);
	return result;
}

#define CXX "libstdc++.so.6"

EXPORTED int __cxa_guard_acquire(void *guard)
{
	static int (*next)(void *);
	if (UNEXPECTED(!next)) {
		next = (int (*)(void *))find("__cxa_guard_acquire", CXX);
	}
	surus_section_enter(guard, CALLER);
	int is_mine = next(guard);
	if (!is_mine) {
		surus_section_leave(guard);
	}
	return is_mine;
}

EXPORTED void __cxa_guard_release(void *guard)
{
	NEXT(__cxa_guard_release, CXX, void *)
	next(guard);
	surus_section_leave(guard);
}

EXPORTED void __cxa_guard_abort(void *guard)
{
	NEXT(__cxa_guard_abort, CXX, void *)
	next(guard);
	surus_section_leave(guard);
}

/* ---- OpenMP ---- */

#define OPENMP "libgomp.so.1"

/* The key of all regions: the thread is in one at a time. */
static char region;

#define REGION(name, types, arguments) \
	EXPORTED void name types \
	{ \
		static void (*next) types; \
		if (UNEXPECTED(!next)) { \
			next = (void (*) types)find(#name, OPENMP); \
		} \
		surus_section_enter(&region, CALLER); \
		next arguments; \
		surus_section_leave(&region); \
	}

typedef void (*body)(void *);

REGION(GOMP_parallel, (body run, void *data, unsigned threads, unsigned flags), (run, data, threads, flags))
REGION(GOMP_parallel_sections, (body run, void *data, unsigned threads, unsigned count, unsigned flags),
	(run, data, threads, count, flags))

#define LOOP(name) \
	REGION(name, (body run, void *data, unsigned threads, long start, long end, long step, long chunk, unsigned flags), \
		(run, data, threads, start, end, step, chunk, flags))
#define LOOP_WITHOUT_CHUNK(name) \
	REGION(name, (body run, void *data, unsigned threads, long start, long end, long step, unsigned flags), \
		(run, data, threads, start, end, step, flags))

LOOP(GOMP_parallel_loop_static)
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)
LOOP_WITHOUT_CHUNK(GOMP_parallel_loop_runtime)
LOOP_WITHOUT_CHUNK(GOMP_parallel_loop_nonmonotonic_runtime)
LOOP_WITHOUT_CHUNK(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* `critical` without a name, with a name, and locks that a program makes. */
static char unnamed;

EXPORTED void GOMP_critical_start(void)
{
	NEXT(GOMP_critical_start, OPENMP, void)
	surus_section_enter(&unnamed, CALLER);
	next();
}

EXPORTED void GOMP_critical_end(void)
{
	NEXT(GOMP_critical_end, OPENMP, void)
	next();
	surus_section_leave(&unnamed);
}

EXPORTED void GOMP_critical_name_start(void **name)
{
	NEXT(GOMP_critical_name_start, OPENMP, void **)
	surus_section_enter(name, CALLER);
	next(name);
}

EXPORTED void GOMP_critical_name_end(void **name)
{
	NEXT(GOMP_critical_name_end, OPENMP, void **)
	next(name);
	surus_section_leave(name);
}

EXPORTED void omp_set_lock(void *lock)
{
	NEXT(omp_set_lock, OPENMP, void *)
	surus_section_enter(lock, CALLER);
	next(lock);
}

EXPORTED void omp_unset_lock(void *lock)
{
	NEXT(omp_unset_lock, OPENMP, void *)
	next(lock);
	surus_section_leave(lock);
}
