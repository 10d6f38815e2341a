/* How a cancelled request ends: its PHP code is unwound by an exception that no catch block matches and that runs
 * `finally` blocks, then come shutdown functions and destructors, as after exit.
 *
 *     asked        surus_task_cancel; what the request waits for is over
 *     ending       the exception is on its way up; `finally` blocks may wait
 *     asked again  nothing waits any more, and PHP code that still runs is a fatal error; each shutdown function after
 *                  that has a time slice
 */
#include "task/cancel.h"
#include "task/running.h"
#include "task/state.h"

/* PHP code that others of the request's code cannot tell from a normal run: what comes after its body. */
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

/* PHP has two classes for this. Nothing replaces an UnwindExit, but it skips `finally`; a GracefulExit runs it, but an
 * exception that C code throws on its way out takes its place. So it is the first one until the VM has it. */
static void throw_end(surus_task *task)
{
	zend_object *end = zend_create_unwind_exit();
	if (task->ending) {
		OBJ_RELEASE(task->ending);
	} else {
		/* A user handler must not be called with an object that is no Throwable. */
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

/* Stands before the VM's own handling of each exception. */
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
	/* Instructions of the engine's own, made when it started; isolates start with a copy. */
	for (size_t i = 0; i < sizeof EG(exception_op) / sizeof *EG(exception_op); i++) {
		zend_vm_set_opcode_handler(&EG(exception_op)[i]);
	}
}

bool surus_must_end(surus_task *task)
{
	if (task->cancel == SURUS_CANCEL_NONE) {
		return false;
	}
	if (!task->ending) {
		bool over = is_over(task);
		if (task->cancel == SURUS_CANCEL_CLIENT) {
			PG(connection_status) |= PHP_CONNECTION_ABORTED;
			if (PG(ignore_user_abort) || over) {
				/* What comes after the body is work that has to be done, like saving a session. */
				task->cancel = SURUS_CANCEL_NONE;
				return false;
			}
		} else if (task->cancel == SURUS_CANCEL_TIMEOUT) {
			PG(connection_status) |= PHP_CONNECTION_TIMEOUT;
		}
		const zend_execute_data *frame = EG(current_execute_data);
		if (!frame || !frame->func || CG(in_compilation)) {
			/* No code to unwind: in request startup, where the next frame ends it, or in its shutdown. */
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
	/* One reference is ours. Without another one the exception was dropped on its way: `finally` has returned or thrown. */
	if (GC_REFCOUNT(task->ending) == 1) {
		throw_end(task);
		return true;
	}
	return false;
}

void surus_client_left(surus_task *task)
{
	PG(connection_status) |= PHP_CONNECTION_ABORTED;
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
