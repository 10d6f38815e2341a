/* Abandoned stacks: C stack overflow, and PHP's hard memory limit. What was on such a stack is lost together with its
 * isolate; docs/internals/reliability.md describes the consequences. */
#include "task/overflow.h"
#include "hidden/hidden.h"
#include "task/running.h"
#include "task/stack.h"
#include "task/state.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ALT_STACK_SIZE (64 * 1024)

/* The engine's struct _zend_fiber_stack begins like this; one guard page lies below. */
typedef struct {
	char *pointer;
	size_t size;
} fiber_stack;

/* The stack of the running Fiber of PHP code; NULL when none runs. */
static const fiber_stack *running_fiber_stack(void)
{
	const zend_fiber_context *context = EG(current_fiber_context);
	return context ? (const fiber_stack *)context->stack : NULL;
}

/* Whether the task has used up its stack, or the stack of a Fiber of PHP code. */
static bool is_overflow(const surus_task *task, const void *address)
{
	if (surus_stack_guards(&task->stack, address)) {
		return true;
	}
	const fiber_stack *stack = running_fiber_stack();
	const char *at = address;
	return stack && at < stack->pointer && at >= stack->pointer - sysconf(_SC_PAGESIZE);
}

size_t surus_stack_left(void)
{
	surus_task *task = surus_running;
	const char *at = __builtin_frame_address(0);
	if (!task) {
		return SIZE_MAX;
	}
	if (at >= task->stack.base && at < task->stack.top) {
		return (size_t)(at - task->stack.base);
	}
	const fiber_stack *fiber = running_fiber_stack();
	return fiber && at >= fiber->pointer ? (size_t)(at - fiber->pointer) : SIZE_MAX;
}

/* For Surus' C code, and the libc functions that it calls. */
#define NEEDED_STACK ((size_t)16 * 1024)

void surus_need_stack(void)
{
	if (surus_stack_left() < NEEDED_STACK && !surus_running->script && surus_hidden_may_park()) {
		surus_task_abandon(surus_running, SURUS_ABANDONED);
	}
}

/* While it marks, the collector has removed references of other tasks: it must not run out of stack in that phase. */
#define COLLECTOR_STACK ((size_t)128 * 1024)
static int (*next_collect)(void);

static int collect_cycles(void)
{
	return surus_stack_left() < COLLECTOR_STACK ? 0 : next_collect();
}

/* Code that all requests of the process share and that may be in an inconsistent state: libc (an allocator's lock may
 * be held), the event loop, and PHP while it holds a lock of OPcache. */
static bool is_shared_code(void *at)
{
	Dl_info where, own;
	if (!surus_hidden_may_park() || !dladdr(at, &where) || !where.dli_fname) {
		return true;
	}
	dladdr((void *)is_shared_code, &own);
	return where.dli_fbase == own.dli_fbase || strstr(where.dli_fname, "/libc.so") || strstr(where.dli_fname, "/ld-linux");
}

/* A fault in a guard page is a C stack overflow. The stack cannot be unwound, but it can be abandoned: nothing of other
 * isolates is on it. Inside shared code that is not safe: there the process dies, as it would without this handler. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
	surus_task *task = surus_running;
	if (task && is_overflow(task, info->si_addr)) {
		ucontext_t *machine = context;
#if defined(__x86_64__)
		void *at = (void *)machine->uc_mcontext.gregs[REG_RIP];
#else
		void *at = (void *)machine->uc_mcontext.pc;
#endif
		if (!is_shared_code(at)) {
			surus_task_abandon(task, SURUS_ABANDONED);
		}
		static const char message[] = "surus: C stack overflow in code that all requests share: the worker ends\n";
		/* Only if the write cannot block, because nobody reads: the worker could not exit. */
		struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};
		struct timespec now = {0, 0};
		if (syscall(SYS_ppoll, &err, 1, &now, NULL, 0) > 0) {
			syscall(SYS_write, STDERR_FILENO, message, sizeof message - 1);
		}
	}
	struct sigaction plain = {.sa_handler = SIG_DFL};
	sigaction(signal, &plain, NULL);
	raise(signal);
}

/* The newest releases of PHP exit when C code that cannot be stopped at the memory limit has exceeded it by far
 * (`memory_hard_limit_percent`). This happens between two allocations: the stack can be abandoned, as after an
 * overflow. */
#define HARD_LIMIT_STATUS 137

/* Replaces libc's function. */
__attribute__((visibility("default"))) void _exit(int status)
{
	surus_task *task = surus_running;
	if (status == HARD_LIMIT_STATUS && task && !task->script && surus_hidden_may_park()) {
		surus_task_abandon(task, SURUS_EXHAUSTED);
	}
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

void surus_overflow_start(void)
{
	next_collect = gc_collect_cycles;
	gc_collect_cycles = collect_cycles;
}

void surus_overflow_enter_worker(void)
{
	static char alternative[ALT_STACK_SIZE];
	stack_t stack = {.ss_sp = alternative, .ss_size = sizeof alternative};
	sigaltstack(&stack, NULL);

	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
}
