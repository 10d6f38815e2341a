/* Tasks: stacks that run PHP, one piece of work after another. The event loop resumes a task; the task leaves when it
 * parks, is pre-empted or done. A task never resumes another. */
#include "internal.h"
#include "fiber_state.h"
#include "hidden.h"

surus_task *surus_running;

static void *loop_sp; /* the event loop's stack while a task runs */

static void task_main(void *argument)
{
	surus_task *task = argument;
	for (;;) {
		switch (task->work) {
			case SURUS_RUN_CLASSIC:
				task->outcome = surus_run_classic(task);
				break;
			case SURUS_RUN_BOOT:
				task->outcome = surus_run_boot(task);
				break;
			case SURUS_RUN_CALL:
				task->outcome = surus_run_call(task);
				break;
			case SURUS_RUN_UNBOOT:
				task->outcome = surus_run_unboot(task);
				break;
			case SURUS_RUN_SCRIPT:
				task->outcome = surus_run_script(task);
				break;
		}
		surus_task_leave(SURUS_DONE);
	}
}

surus_task *surus_task_new(surus_isolate *isolate, size_t stack_size)
{
	surus_task *task = calloc(1, sizeof *task);
	if (!task || !surus_stack_map(&task->stack, stack_size)) {
		free(task);
		return NULL;
	}
	task->isolate = isolate;
	task->sp = surus_stack_prepare(&task->stack, task_main, task);
	return task;
}

void surus_task_free(surus_task *task)
{
	if (task->fiber) {
		surus_fiber_state_free(task);
	}
	surus_stack_unmap(&task->stack);
	free(task);
}

void surus_task_assign(surus_task *task, surus_work work, void *exchange)
{
	task->work = work;
	task->exchange = exchange;
	task->outcome = SURUS_OK;
	task->cancel = SURUS_CANCEL_NONE;
	task->unwinding = false;
	task->hard_cancel = false;
	task->built_superglobals = 0;
	task->ticks = 0;
	task->tick_limit = 0;
}

surus_event surus_task_resume(surus_task *task)
{
	surus_isolate_enter(task->isolate);
	surus_fiber_install(task);
	task->resumed_at = surus_ticks;
	surus_running = task;
	surus_stack_switch(&loop_sp, task->sp);
	surus_running = NULL;
	return task->event;
}

void surus_task_leave(surus_event event)
{
	surus_task *task = surus_running;
	task->event = event;
	surus_stack_switch(&task->sp, loop_sp);
}

void surus_task_abandon(surus_task *task)
{
	task->event = SURUS_ABANDONED;
	void *dead;
	surus_stack_switch(&dead, loop_sp);
}

surus_outcome surus_task_outcome(const surus_task *task)
{
	return task->outcome;
}

void surus_task_cancel(surus_task *task, surus_cancel why)
{
	if (task->cancel == SURUS_CANCEL_NONE) {
		task->cancel = why;
	} else {
		task->hard_cancel = true;
	}
}

bool surus_can_park(void)
{
	surus_task *task = surus_running;
	if (!task || task->hard_cancel || zend_fiber_switch_blocked() || !surus_hidden_may_park()) {
		return false;
	}
	if (task->script && !surus_command_line_may_park()) {
		return false;
	}
	/* Fibers share the compiler's state: one that is compiling finishes first. */
	return !(task->fiber && CG(in_compilation));
}

surus_cancel surus_park(void)
{
	surus_task *task = surus_running;
	surus_task_leave(SURUS_PARKED);
	if (task->cancel != SURUS_CANCEL_NONE && !task->unwinding) {
		surus_task_unwind(task);
		return task->cancel;
	}
	return task->hard_cancel ? task->cancel : SURUS_CANCEL_NONE;
}

void surus_task_unwind(surus_task *task)
{
	if (task->cancel == SURUS_CANCEL_CLIENT) {
		PG(connection_status) |= PHP_CONNECTION_ABORTED;
		if (PG(ignore_user_abort)) {
			task->cancel = SURUS_CANCEL_NONE;
			return;
		}
	} else if (task->cancel == SURUS_CANCEL_TIMEOUT) {
		PG(connection_status) |= PHP_CONNECTION_TIMEOUT;
	}
	/* With no frame to unwind (request startup or shutdown) the interrupt handler tries again. */
	zend_execute_data *frame = EG(current_execute_data);
	if (!frame || !frame->func || CG(in_compilation)) {
		zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
		return;
	}
	task->unwinding = true;
	/* A user handler must not be called with an object that is no Throwable. */
	zval handler;
	ZVAL_COPY_VALUE(&handler, &EG(user_exception_handler));
	ZVAL_UNDEF(&EG(user_exception_handler));
	zval_ptr_dtor(&handler);
	/* Unlike exit's exception this one runs `finally` blocks; no catch block can match it. */
	if (EG(exception)) {
		zend_clear_exception();
	}
	zend_throw_exception_internal(zend_create_graceful_exit());
}

void *surus_current_exchange(void)
{
	return surus_running ? surus_running->exchange : NULL;
}

void surus_task_backtrace(surus_task *task, const char *title)
{
	surus_isolate_enter(task->isolate);
	const zend_execute_data *frame = task->fiber ? surus_fiber_frame(task) : EG(current_execute_data);
	surus_log_backtrace(frame, title);
}
