/* How a cancelled request ends: an exception that no catch block matches unwinds its PHP code and runs `finally`
 * blocks. Then shutdown functions and destructors run, as after exit.
 *
 *     cancelled        surus_task_cancel; the request's current wait fails
 *     ending           the exception unwinds PHP code; `finally` blocks may wait
 *     cancelled again  every wait fails, and PHP code that still runs gets a fatal error; each shutdown function after
 *                      that has a time slice
 */
#include "task/cancel.h"
#include "task/running.h"
#include "task/state.h"

/* Whether the body of the request is over. What runs after it, like shutdown functions, runs as in a normal request. */
static bool is_over(const surus_task *task)
{
	return task->fiber ? task->body_over : (EG(flags) & EG_FLAGS_IN_SHUTDOWN) != 0;
}

static zend_class_entry *graceful_class(void)
{
	static zend_class_entry *class;
	if (!class) {
		zend_object *sample = zend_create_graceful_exit();
		class = sample->ce;
		OBJ_RELEASE(sample);
	}
	return class;
}

/* PHP has two classes for this. No other exception replaces an UnwindExit, but it skips `finally`; a GracefulExit runs
 * `finally`, but an exception that C code throws while it returns replaces it. So the object is an UnwindExit until the
 * VM handles it. */
static void throw_end(surus_task *task)
{
	zend_object *end = zend_create_unwind_exit();
	if (task->ending) {
		OBJ_RELEASE(task->ending);
	} else if (!task->request) {
		/* A user handler must not be called with an object that is not a Throwable. */
		zval handler;
		ZVAL_COPY_VALUE(&handler, &EG(user_exception_handler));
		ZVAL_UNDEF(&EG(user_exception_handler));
		zval_ptr_dtor(&handler);
	}
	task->ending = end;
	GC_ADDREF(end);
	if (EG(exception)) {
		zend_clear_exception();
	}
	zend_throw_exception_internal(end);
}

/* Called before the VM handles an exception. */
static int on_exception(zend_execute_data *frame)
{
	(void)frame;
	surus_task *task = surus_running;
	if (task && task->ending && EG(exception) == task->ending) {
		task->ending->ce = graceful_class();
	}
	return ZEND_USER_OPCODE_DISPATCH;
}

void surus_cancel_start(void)
{
	zend_set_user_opcode_handler(ZEND_HANDLE_EXCEPTION, on_exception);
	/* The engine made these instructions when it started; isolates start with a copy. */
	for (size_t i = 0; i < sizeof EG(exception_op) / sizeof *EG(exception_op); i++) {
		zend_vm_set_opcode_handler(&EG(exception_op)[i]);
	}
}

/* A job of the request has ended it. What it waits for is over; exit() goes on here, a fatal error when the VM looks for
 * interrupts. */
static void meet_doom(surus_task *task)
{
	const zend_execute_data *frame = EG(current_execute_data);
	if (task->doom != SURUS_DOOM_EXIT || !frame || !frame->func || CG(in_compilation)) {
		return;
	}
	task->doom = SURUS_DOOM_MET;
	if (EG(exception)) {
		zend_clear_exception();
	}
	zend_throw_unwind_exit();
}

bool surus_must_end(surus_task *task)
{
	if (task->doom == SURUS_DOOM_EXIT || task->doom == SURUS_DOOM_FATAL) {
		meet_doom(task);
		return true;
	}
	if (task->doom == SURUS_DOOM_MET && EG(exception) && zend_is_unwind_exit(EG(exception))) {
		return true;
	}
	if (task->cancel == SURUS_CANCEL_NONE) {
		return false;
	}
	if (!task->ending) {
		bool over = is_over(task);
		if (task->cancel == SURUS_CANCEL_CLIENT) {
			PG(connection_status) |= PHP_CONNECTION_ABORTED;
			if ((PG(ignore_user_abort) && !surus_request_of(task)->in_background) || over || task->defers) {
				/* What runs after the body must be completed, like saving a session, and what was deferred. */
				task->cancel = SURUS_CANCEL_NONE;
				return false;
			}
		} else if (task->cancel == SURUS_CANCEL_TIMEOUT) {
			PG(connection_status) |= PHP_CONNECTION_TIMEOUT;
		}
		const zend_execute_data *frame = EG(current_execute_data);
		if (!frame || !frame->func || CG(in_compilation)) {
			/* No code to unwind: during request startup, where the next frame ends the request, or its shutdown. */
			return task->hard_cancel || !over;
		}
		throw_end(task);
		return true;
	}
	if (task->hard_cancel || EG(exception) == task->ending) {
		return true;
	}
	if (is_over(task)) {
		return false;
	}
	/* `task->ending` holds one reference. Without another one the exception was dropped: a `finally` block has returned
	 * or thrown. */
	if (GC_REFCOUNT(task->ending) == 1) {
		throw_end(task);
		return true;
	}
	return false;
}

void surus_client_left(surus_task *task)
{
	PG(connection_status) |= PHP_CONNECTION_ABORTED;
	if (task != surus_running) {
		return; /* a job has printed: its request learns it by itself */
	}
	if (task->cancel == SURUS_CANCEL_NONE && !PG(ignore_user_abort)) {
		task->cancel = SURUS_CANCEL_CLIENT;
	}
	if (surus_must_end(task)) {
		zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
	}
}

void surus_cancel_forget(surus_task *task)
{
	if (task->ending) {
		OBJ_RELEASE(task->ending);
		task->ending = NULL;
	}
}
