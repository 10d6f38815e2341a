/* Time slices and CPU limits, for PHP code that does not wait.
 *
 * A timer on the thread's own CPU clock ticks while the worker computes and never while it is idle. A tick sets
 * EG(vm_interrupt); the VM then calls the interrupt function at a place where the task may be switched.
 */
#include "task/interrupt.h"
#include "task/cancel.h"
#include "task/overflow.h"
#include "task/running.h"
#include "task/stall.h"
#include "task/state.h"

#include "Zend/zend_atomic.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#define TICK_SIGNAL (SIGRTMIN + 5)
#define TICKS_PER_SLICE 2

volatile uint32_t surus_ticks;
static uint64_t tick_us;

static void (*next_interrupt)(zend_execute_data *);

static void on_tick(int signal)
{
	(void)signal;
	surus_ticks++;
	surus_task *task = surus_running;
	if (!task) {
		return;
	}
	surus_request_of(task)->ticks++;
	zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
}

/* The VM checks for interrupts when it has already moved to the next instruction. If that one passes an argument and an
 * exception is thrown in its place, unwinding treats the argument as passed: it must be a value that can be freed. */
static void forget_next_argument(void)
{
	zend_execute_data *frame = EG(current_execute_data);
	const zend_op *next = EG(opline_before_exception);
	if (!frame || !frame->func || !ZEND_USER_CODE(frame->func->type) || !frame->call || !next
		|| frame->opline != EG(exception_op)) {
		return;
	}
	switch (next->opcode) {
		case ZEND_SEND_VAL:
		case ZEND_SEND_VAL_EX:
		case ZEND_SEND_VAR:
		case ZEND_SEND_VAR_EX:
		case ZEND_SEND_REF:
		case ZEND_SEND_VAR_NO_REF:
		case ZEND_SEND_VAR_NO_REF_EX:
		case ZEND_SEND_FUNC_ARG:
		case ZEND_SEND_USER:
			if (next->op2_type != IS_CONST) {
				ZVAL_UNDEF(ZEND_CALL_VAR(frame->call, next->result.var));
			}
			break;
	}
}

/* For a report, which Rust writes: where the stack ends in it, the worker would. */
#define REPORT_STACK ((size_t)64 * 1024)

static void on_interrupt(zend_execute_data *frame)
{
	if (next_interrupt) {
		next_interrupt(frame);
	}
	surus_task *task = surus_running;
	if (!task) {
		return;
	}
	if (surus_stack_left() >= REPORT_STACK) {
		surus_stall_report(); /* else at a later interrupt */
	}
	if (EG(exception)) {
		return;
	}
	surus_task *request = surus_request_of(task);
	if (request->tick_limit && request->ticks > request->tick_limit) {
		request->tick_limit = 0; /* shutdown functions have no limit, as ever */
		zend_timeout();
	}
	if (task->switches || surus_ticks - task->resumed_at >= TICKS_PER_SLICE) {
		surus_yield(SURUS_PREEMPTED);
	}
	if (task->switches) {
		task->switches--; /* engine/command_line.c asks for the next one */
	}
	bool ends = surus_must_end(task);
	if (task->doom == SURUS_DOOM_FATAL) {
		task->doom = SURUS_DOOM_MET;
		if (!SG(headers_sent) && SG(sapi_headers).http_response_code == 200) {
			SG(sapi_headers).http_response_code = 500;
		}
		zend_bailout();
	}
	if (ends && EG(exception)) {
		forget_next_argument();
	} else if (ends && task->hard_cancel
		&& (!task->was_stopped || request->ticks - task->stopped_at >= TICKS_PER_SLICE)) {
		/* Code that runs after it, like the next shutdown function, has a time slice: its first tick may come at
		 * once. */
		task->was_stopped = true;
		task->stopped_at = request->ticks;
		zend_error_noreturn(E_ERROR, "The request was ended: it did not finish in time after it had been cancelled");
	}
}

void surus_interrupts_start(void)
{
	surus_cancel_start();
	next_interrupt = zend_interrupt_function;
	zend_interrupt_function = on_interrupt;
}

/* PHP calls these for max_execution_time and set_time_limit(); PHP's versions use one timer per process. As in PHP on
 * Linux, the limit counts CPU time; here in ticks. */
void zend_set_timeout(zend_long seconds, bool reset_signals)
{
	(void)reset_signals;
	EG(timeout_seconds) = seconds;
	surus_task *task = surus_request_of(surus_running);
	if (task) {
		task->stopped_at -= task->ticks; /* the slice after a stop goes on */
		task->ticks = 0;
		uint64_t limit = seconds > 0 && tick_us ? (uint64_t)seconds * 1000000 / tick_us : 0;
		task->tick_limit = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
	}
}

void zend_unset_timeout(void)
{
	if (surus_running) {
		surus_request_of(surus_running)->tick_limit = 0;
	}
}

void surus_interrupts_enter_worker(uint64_t slice_us)
{
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
