/* The running task: how it switches to the event loop, and whether it may. */
#include "task/running.h"
#include "hidden/engine.h"
#include "hidden/hidden.h"
#include "task/cancel.h"
#include "task/interrupt.h"
#include "task/locks.h"
#include "task/stack.h"
#include "task/state.h"

#include "Zend/zend_language_scanner.h"

#include <errno.h>

extern ZEND_API zend_php_scanner_globals language_scanner_globals;

__thread surus_task *surus_running;
surus_isolate *surus_entered;
bool surus_forked;

/* After this number of refused waits in a row a task yields. */
#define MANY_REFUSALS 100

static void *loop_sp; /* the event loop's stack while a task runs */

void surus_task_switch_to(surus_task *task)
{
	task->resumed_at = surus_ticks;
	surus_running = task;
	surus_stack_switch(&loop_sp, task->sp);
	surus_running = NULL;
}

void surus_task_end_locks(surus_task *task)
{
	if (task->lock_count) {
		surus_locks_end(task);
	}
}

void surus_task_leave(surus_event event)
{
	surus_task *task = surus_running;
	task->event = event;
	task->frame = EG(current_execute_data);
	/* errno belongs to the thread, and other tasks run on it meanwhile. */
	int kept = errno;
	if (event == SURUS_DONE) {
		surus_task_end_locks(task);
	} else if (task->lock_count) {
		surus_locks_leave(task);
		surus_stack_switch(&task->sp, loop_sp);
		surus_locks_return(task);
		errno = kept;
		return;
	}
	surus_stack_switch(&task->sp, loop_sp);
	errno = kept;
}

void surus_task_abandon(surus_task *task, surus_event event)
{
	task->event = event;
	task->frame = EG(current_execute_data);
	surus_task_end_locks(task);
	void *dead;
	surus_stack_switch(&dead, loop_sp);
}

void surus_task_cancel(surus_task *task, surus_cancel why)
{
	if (task->cancel == SURUS_CANCEL_NONE) {
		task->cancel = why;
	} else {
		task->hard_cancel = true;
	}
}

bool surus_task_is_ending(const surus_task *task)
{
	return task->cancel != SURUS_CANCEL_NONE;
}

/* Whether a call may park here at all: not in a section that holds a lock. */
static bool may_stop(const surus_task *task)
{
	return surus_hidden_may_park() && !(task->script && surus_forked);
}

/* PHP clears the first mark while it calls the handler of a warning; the scanner still has its text then. */
static bool is_compiling(void)
{
	return CG(in_compilation) || language_scanner_globals.yy_start;
}

static bool is_collecting(const surus_task *task)
{
	return surus_gc->gc_active && !task->isolate->collector_left;
}

/* Whether the task may switch to the event loop here. PHP forbids its Fibers to switch in destructors and while cycles
 * are collected. A task that has its isolate for itself may switch anywhere; one of several tasks in an isolate may not
 * while it compiles or collects cycles. */
static bool may_leave(const surus_task *task)
{
	/* Fibers share the compiler's state: one that is compiling finishes first. */
	bool shares = (task->fiber && !task->isolate->in_turn) || surus_has_jobs(task);
	return may_stop(task) && !(shares && (is_compiling() || is_collecting(task)));
}

bool surus_may_leave(void)
{
	return may_leave(surus_running);
}

bool surus_can_park(void)
{
	surus_task *task = surus_running;
	return task && (may_leave(task) || (may_stop(task) && task->cancel != SURUS_CANCEL_NONE));
}

/* Leaves a task that may be inside a destructor. PHP's mark for that is cleared meanwhile: it would restrict the
 * isolate's other tasks. */
static void leave_for(surus_event event)
{
	surus_task *task = surus_running;
	unsigned blocked = 0;
	while (surus_has_neighbours(task) && zend_fiber_switch_blocked()) {
		zend_fiber_switch_unblock();
		blocked++;
	}
	surus_task_leave(event);
	while (blocked-- > 0) {
		zend_fiber_switch_block();
	}
}

void surus_yield(surus_event event)
{
	if (may_leave(surus_running)) {
		leave_for(event);
	}
}

/* C code may repeat a refused call again and again. Other tasks must get their turn then, too. */
static surus_cancel refuse(surus_task *task)
{
	zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
	if (++task->refused >= MANY_REFUSALS) {
		surus_yield(SURUS_YIELDED);
	}
	return task->cancel != SURUS_CANCEL_NONE ? task->cancel : SURUS_CANCEL_JOB; /* that has ended the request */
}

surus_cancel surus_park(void)
{
	surus_task *task = surus_running;
	if (surus_must_end(task) || !may_leave(task)) {
		return refuse(task);
	}
	task->refused = 0;
	leave_for(SURUS_PARKED);
	return surus_must_end(task) ? refuse(task) : SURUS_CANCEL_NONE;
}

void surus_park_for_lock(void)
{
	leave_for(SURUS_PARKED);
}

bool surus_is_over(void)
{
	surus_task *task = surus_running;
	return task && (task->cancel != SURUS_CANCEL_NONE || task->doom != SURUS_DOOM_NONE) && surus_must_end(task);
}

surus_task *surus_running_task(void)
{
	return surus_running;
}

void *surus_current_exchange(void)
{
	return surus_running ? surus_running->exchange : NULL;
}

void surus_clear_marks(surus_isolate *isolate)
{
	while (zend_fiber_switch_blocked()) {
		zend_fiber_switch_unblock();
	}
	CG(in_compilation) = false;
	language_scanner_globals.yy_start = NULL;
	/* What an interrupted collector was working on must not be touched again: it stays marked as active, so that it
	 * never runs again. */
	isolate->collector_left = isolate->collector_left || surus_gc->gc_active;
	gc_protect(isolate->collector_left);
}
