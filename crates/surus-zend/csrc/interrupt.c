/* Time slices, CPU limits and C stack overflow: what happens to PHP code that does not wait.
 *
 * A timer on the thread's own CPU clock ticks while the worker computes and never while it is idle. A tick sets
 * EG(vm_interrupt); the VM then calls the interrupt function at a place where the engine may be left.
 */
#include "internal.h"

#include "Zend/zend_atomic.h"

#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <dlfcn.h>
#include <sys/syscall.h>

#define TICK_SIGNAL (SIGRTMIN + 5)
#define ALT_STACK_SIZE (64 * 1024)
#define TICKS_PER_SLICE 2

volatile uint32_t surus_ticks;
static uint64_t tick_us;

void surus_task_abandon(surus_task *task);
static void (*next_interrupt)(zend_execute_data *);

static void on_tick(int signal)
{
	(void)signal;
	surus_ticks++;
	surus_task *task = surus_running;
	if (!task) {
		return;
	}
	task->ticks++;
	if (task->tick_limit && task->ticks > task->tick_limit) {
		zend_atomic_bool_store_ex(&EG(timed_out), true);
	}
	zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
}

static void on_interrupt(zend_execute_data *frame)
{
	if (next_interrupt) {
		next_interrupt(frame);
	}
	surus_task *task = surus_running;
	if (!task || EG(exception)) {
		return;
	}
	if ((task->switches || surus_ticks - task->resumed_at >= TICKS_PER_SLICE) && surus_can_park()) {
		surus_task_leave(SURUS_PREEMPTED);
	}
	if (task->switches) {
		task->switches--;
		zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
	}
	if (task->cancel != SURUS_CANCEL_NONE) {
		if (!task->unwinding) {
			surus_task_unwind(task);
		} else if (task->hard_cancel) {
			zend_error_noreturn(E_ERROR, "The request was ended: it did not finish in time after it had been cancelled");
		}
	}
}

void surus_interrupts_start(void)
{
	next_interrupt = zend_interrupt_function;
	zend_interrupt_function = on_interrupt;
}

/* PHP calls these for max_execution_time and set_time_limit(); its own are one timer per process. Like PHP's on Linux,
 * the limit counts CPU time, in our ticks. */
void zend_set_timeout(zend_long seconds, bool reset_signals)
{
	(void)reset_signals;
	EG(timeout_seconds) = seconds;
	surus_task *task = surus_running;
	if (task) {
		zend_atomic_bool_store_ex(&EG(timed_out), false);
		task->ticks = 0;
		uint64_t limit = seconds > 0 && tick_us ? (uint64_t)seconds * 1000000 / tick_us : 0;
		task->tick_limit = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
	}
}

void zend_unset_timeout(void)
{
	zend_atomic_bool_store_ex(&EG(timed_out), false);
	if (surus_running) {
		surus_running->tick_limit = 0;
	}
}

/* A fault in a task's guard page is a C stack overflow. The stack cannot be unwound, but it can be left for good:
 * nothing of other isolates is on it. Inside libc (an allocator's lock may be held) that is not safe, and the process
 * dies as it would have. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
	surus_task *task = surus_running;
	if (task && surus_stack_guards(&task->stack, info->si_addr)) {
		ucontext_t *machine = context;
#if defined(__x86_64__)
		void *at = (void *)machine->uc_mcontext.gregs[REG_RIP];
#else
		void *at = (void *)machine->uc_mcontext.pc;
#endif
		Dl_info where;
		bool in_libc = dladdr(at, &where) && where.dli_fname && (strstr(where.dli_fname, "/libc.so") || strstr(where.dli_fname, "/ld-linux"));
		if (!in_libc) {
			surus_task_abandon(task);
		}
		static const char message[] = "surus: C stack overflow inside libc, the worker ends\n";
		if (write(STDERR_FILENO, message, sizeof message - 1) < 0) {
			/* nothing can be done about it */
		}
	}
	struct sigaction plain = {.sa_handler = SIG_DFL};
	sigaction(signal, &plain, NULL);
	raise(signal);
}

void surus_interrupts_enter_worker(uint64_t slice_us)
{
	static char alternative[ALT_STACK_SIZE];
	stack_t stack = {.ss_sp = alternative, .ss_size = sizeof alternative};
	sigaltstack(&stack, NULL);

	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);

	tick_us = slice_us / TICKS_PER_SLICE;
	if (tick_us == 0) {
		tick_us = 1000;
	}
	struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART | SA_ONSTACK};
	sigaction(TICK_SIGNAL, &tick, NULL);
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = TICK_SIGNAL};
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	timer_t timer;
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0) {
		struct timespec period = {.tv_sec = (time_t)(tick_us / 1000000), .tv_nsec = (long)(tick_us % 1000000) * 1000};
		struct itimerspec when = {.it_interval = period, .it_value = period};
		timer_settime(timer, 0, &when, NULL);
	}
}
