/* Jobs: pieces of one request's work that wait at the same time.
 *
 * A job is a task of the request's isolate with a stack of its own. While it runs, the state of its request is in place, all
 * but what says where code stands (fiber/strand.c): output, headers, settings, handlers and limits are the request's. The
 * event loop resumes it as it does the request's own task; of these tasks one runs at a time, until it waits.
 *
 * None outlives the code of its request. exit() and a fatal error in one end the request.
 */
#include "app/jobs.h"
#include "app/application.h"
#include "app/context.h"
#include "connections/handle_uses.h"
#include "fiber/strand.h"
#include "http/exceptions.h"
#include "task/cancel.h"
#include "task/running.h"
#include "task/state.h"

/* For each a stack is mapped, and only what it uses of it takes memory. */
#define STACK_SIZE ((size_t)2 * 1024 * 1024)
/* Of one request, at a time. */
#define MOST_JOBS 1000

/* ---- their lives ---- */

static void doom(surus_task *job, surus_doom how)
{
	surus_task *request = job->request;
	if (request->doom == SURUS_DOOM_NONE || request->doom == SURUS_DOOM_EXIT) {
		request->doom = how;
	}
}

static surus_outcome end_of(surus_task *job)
{
	zend_object *exception = EG(exception);
	if (SURUS_HAS_OOM()) {
		SURUS_CLEAR_OOM();
		CG(unclean_shutdown) = true;
		return SURUS_FATAL;
	}
	if (!exception) {
		return job->cancel != SURUS_CANCEL_NONE ? SURUS_CANCELLED : SURUS_OK;
	}
	if (exception == job->ending) {
		zend_clear_exception();
		return SURUS_CANCELLED;
	}
	if (zend_is_unwind_exit(exception) || zend_is_graceful_exit(exception)) {
		zend_clear_exception();
		return SURUS_EXITED;
	}
	surus_report_exception(); /* Surus\Task keeps those of its code: this is one of its own */
	return SURUS_EXCEPTION;
}

static void call(zend_object *object, const char *method)
{
	zend_function *function = zend_hash_str_find_ptr(&object->ce->function_table, method, strlen(method));
	zval result;
	ZVAL_UNDEF(&result);
	zend_call_known_function(function, object, object->ce, &result, 0, NULL, NULL);
	zval_ptr_dtor(&result);
}

/* Those that wait for it must learn that it has ended, even if it was cancelled before it has begun, or has left its code
 * without `finally`: as PHP 8.2 does when a Fiber is destroyed on the way. */
static void complete(surus_task *job)
{
	surus_cancel cancel = job->cancel;
	job->cancel = SURUS_CANCEL_NONE;
	call(job->job, "complete");
	job->cancel = cancel;
	if (EG(exception)) {
		surus_report_exception();
	}
}

surus_outcome surus_run_job(surus_task *job)
{
	volatile surus_outcome outcome = SURUS_CANCELLED;
	zend_execute_data bottom = {.func = &surus_bottom_function};
	EG(current_execute_data) = &bottom;
	zend_first_try {
		if (job->cancel == SURUS_CANCEL_NONE) {
			call(job->job, "run");
			outcome = end_of(job);
		}
		if (outcome != SURUS_EXITED && outcome != SURUS_FATAL) {
			complete(job);
		}
		OBJ_RELEASE(job->job);
		job->job = NULL;
		surus_context_end(job);
		if (EG(exception)) {
			surus_report_exception(); /* of a destructor */
		}
	} zend_catch {
		outcome = SURUS_FATAL;
	} zend_end_try();
	if (outcome == SURUS_FATAL && job->fiber) {
		surus_note_fatal(job); /* at once: other requests of the isolate may run before its own has ended */
	} else if (outcome == SURUS_FATAL) {
		surus_clear_marks(job->isolate);
	}
	EG(current_execute_data) = NULL;
	surus_request_of(job)->cut |= job->cancel != SURUS_CANCEL_NONE;
	if (outcome == SURUS_EXITED || outcome == SURUS_FATAL) {
		doom(job, outcome == SURUS_FATAL ? SURUS_DOOM_FATAL : SURUS_DOOM_EXIT);
	}
	return outcome;
}

void surus_job_enter(surus_task *job)
{
	surus_strand_enter(job);
}

void surus_job_leave(surus_task *job)
{
	surus_strand_leave(job);
	if (surus_is_abandoned(job)) {
		surus_job_lost(job);
	} else if (job->event == SURUS_DONE) {
		surus_uses_hand_over(job, job->request);
		surus_strand_end(job);
		job->request->jobs--;
	}
}

void surus_job_lost(surus_task *job)
{
	doom(job, SURUS_DOOM_FATAL);
	job->outcome = SURUS_FATAL;
	job->request->jobs--;
}

bool surus_job_is_unwanted(const surus_task *job)
{
	return job->request->cancel != SURUS_CANCEL_NONE || job->request->doom != SURUS_DOOM_NONE;
}

bool surus_task_overtakes(const surus_task *task, const surus_task *holder)
{
	return holder->request == task && surus_job_is_unwanted(holder);
}

bool surus_job_dooms(const surus_task *job)
{
	return job->outcome == SURUS_FATAL || job->outcome == SURUS_EXITED;
}

void surus_jobs_end(surus_task *task)
{
	while (task->jobs && surus_rs_jobs_end(task->exchange, task->hard_cancel)) {
	}
	if (task->doom == SURUS_DOOM_FATAL) {
		CG(unclean_shutdown) = true;
	}
	task->doom = SURUS_DOOM_NONE;
}

/* ---- functions for Surus\Task and its like ---- */

/* An exception that the classes in the binary throw is the application's: it gets the place of the application's call. */
static void move_to_caller(zend_object *exception)
{
	const zend_execute_data *frame = EG(current_execute_data);
	while (frame && (!frame->func || !ZEND_USER_CODE(frame->func->type)
			|| strncmp(ZSTR_VAL(frame->func->op_array.filename), "surus:", 6) == 0)) {
		frame = frame->prev_execute_data;
	}
	if (!frame) {
		return;
	}
	zend_class_entry *base = instanceof_function(exception->ce, zend_ce_error) ? zend_ce_error : zend_ce_exception;
	zend_update_property_str(base, exception, "file", sizeof "file" - 1, frame->func->op_array.filename);
	zend_update_property_long(base, exception, "line", sizeof "line" - 1, frame->opline->lineno);
}

/* Surus\Internal\at_caller(Throwable $exception): Throwable */
static ZEND_FUNCTION(at_caller)
{
	zval *exception;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT_OF_CLASS(exception, zend_ce_throwable)
	ZEND_PARSE_PARAMETERS_END();
	move_to_caller(Z_OBJ_P(exception));
	RETURN_COPY(exception);
}

static void refuse(const char *message)
{
	zend_throw_error(NULL, "%s", message);
	move_to_caller(EG(exception));
}

bool surus_scripts_have_tasks;

/* Whether code of this kind may have tasks. */
static bool serves(const surus_task *request)
{
	switch (request->work) {
		case SURUS_RUN_CLASSIC:
		case SURUS_RUN_CALL:
			return request->exchange;
		case SURUS_RUN_SCRIPT:
			return surus_scripts_have_tasks;
		default:
			return false;
	}
}

surus_task *surus_serving(const char *what_is, const char *what_not)
{
	surus_task *task = surus_running, *request = surus_request_of(task);
	if (!request || !serves(request)) {
		zend_throw_error(NULL, "%s for code that serves a request or is a script: not for the boot of an application", what_is);
		move_to_caller(EG(exception));
		return NULL;
	}
	if (request->script && surus_forked) {
		zend_throw_error(NULL, "%s not for a process that a script has forked", what_is);
		move_to_caller(EG(exception));
		return NULL;
	}
	if (request->body_over || (EG(flags) & EG_FLAGS_IN_SHUTDOWN)) {
		const char *what = request->script ? "script" : "request";
		zend_throw_error(NULL, "The %s has ended: shutdown functions and destructors after it %s", what, what_not);
		move_to_caller(EG(exception));
		return NULL;
	}
	return task;
}

static surus_task *running(void)
{
	return surus_serving("Tasks are", "have no tasks");
}

/* Surus\Internal\job_start(Surus\Task $task): int */
static ZEND_FUNCTION(job_start)
{
	zval *object;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT(object)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = running(), *request = surus_request_of(task);
	if (!task) {
		RETURN_THROWS();
	}
	if (!zend_string_equals_literal(Z_OBJCE_P(object)->name, "Surus\\Task")) {
		zend_throw_error(NULL, "This is no Surus\\Task");
		RETURN_THROWS();
	}
	if (request->jobs >= MOST_JOBS) {
		refuse("This request has 1000 tasks that have not ended: give Surus\\all() a concurrency, or await some");
		RETURN_THROWS();
	}
	surus_task *job = surus_task_new(task->isolate, STACK_SIZE);
	if (!job || !surus_strand_make(job)) {
		if (job) {
			surus_task_free(job);
		}
		refuse("There is no memory for the stack of a task; see vm.max_map_count");
		RETURN_THROWS();
	}
	surus_task_assign(job, SURUS_RUN_JOB, request->exchange);
	job->request = request;
	job->fiber = request->fiber;
	job->script = request->script;
	job->handler = request->handler;
	surus_context_inherit(job, task);
	job->job = Z_OBJ_P(object);
	GC_ADDREF(job->job);
	request->jobs++;
	request->had_jobs = true;
	job->number = surus_rs_job_begin(request->exchange, job);
	RETURN_LONG((zend_long)job->number);
}

/* Surus\Internal\job_wait(?float $seconds = null): bool. False: the time is over. */
static ZEND_FUNCTION(job_wait)
{
	double seconds = -1;
	bool for_ever = true;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE_OR_NULL(seconds, for_ever)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = running();
	if (!task) {
		RETURN_THROWS();
	}
	switch (surus_rs_job_wait(task->exchange, task->number, for_ever ? -1 : seconds > 0 ? seconds : 0)) {
		case SURUS_TIME_OVER:
			RETURN_FALSE;
		case SURUS_CANNOT_WAIT:
			refuse("Nothing can wait for a task here: PHP compiles a file or collects cycles");
			RETURN_THROWS();
	}
	RETURN_TRUE;
}

/* Surus\Internal\job_wake(int $number): void */
static ZEND_FUNCTION(job_wake)
{
	zend_long number;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(number)
	ZEND_PARSE_PARAMETERS_END();
	if (surus_running && surus_running->exchange) {
		surus_rs_job_wake(surus_running->exchange, (uint64_t)number);
	}
}

/* Surus\Internal\job_cancel(int $number): void */
static ZEND_FUNCTION(job_cancel)
{
	zend_long number;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(number)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_running;
	if (task && task->exchange && number > 0) {
		surus_rs_job_cancel(task->exchange, (uint64_t)number);
		if (task->number == (uint64_t)number) {
			zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
		}
	}
}

/* Surus\Internal\job_number(): int. 0: the request's own code. */
static ZEND_FUNCTION(job_number)
{
	ZEND_PARSE_PARAMETERS_NONE();
	surus_task *task = running();
	if (!task) {
		RETURN_THROWS();
	}
	RETURN_LONG((zend_long)task->number);
}

/* Surus\Internal\job_task(): ?Surus\Task. Null: the request's own code. */
static ZEND_FUNCTION(job_task)
{
	ZEND_PARSE_PARAMETERS_NONE();
	surus_task *task = surus_running;
	if (task && task->job) {
		RETURN_OBJ_COPY(task->job);
	}
}

/* The functions of namespace Surus are static methods of a class in PHP. */
ZEND_FUNCTION(surus_tasks)
{
	static const char class_name[] = "Surus\\Internal\\Tasks";
	zend_string *own = EX(func)->common.function_name;
	zend_string *name = zend_string_init(class_name, sizeof class_name - 1, false);
	zend_class_entry *class = zend_lookup_class(name);
	zend_string_release(name);
	const char *short_name = zend_memrchr(ZSTR_VAL(own), '\\', ZSTR_LEN(own));
	short_name = short_name ? short_name + 1 : ZSTR_VAL(own);
	zend_function *method = class ? zend_hash_str_find_ptr(&class->function_table, short_name, strlen(short_name)) : NULL;
	if (!method) {
		if (!EG(exception)) {
			zend_throw_error(NULL, "%s is missing", class_name);
		}
		RETURN_THROWS();
	}
	zend_call_known_function(method, NULL, class, return_value, ZEND_NUM_ARGS(),
		ZEND_NUM_ARGS() ? ZEND_CALL_ARG(execute_data, 1) : NULL,
		ZEND_CALL_INFO(execute_data) & ZEND_CALL_HAS_EXTRA_NAMED_PARAMS ? EX(extra_named_params) : NULL);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_own_number, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_task, 0, 0, Surus\\Task, 1)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_start, 0, 1, IS_LONG, 0)
	ZEND_ARG_OBJ_INFO(0, task, Surus\\Task, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_at_caller, 0, 1, Throwable, 0)
	ZEND_ARG_OBJ_INFO(0, exception, Throwable, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_wait, 0, 0, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, seconds, IS_DOUBLE, 1, "null")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_number, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_async, 0, 1, Surus\\Task, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_await, 0, 1, IS_MIXED, 0)
	ZEND_ARG_OBJ_INFO(0, task, Surus\\Task, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_all, 0, 1, IS_ARRAY, 0)
	ZEND_ARG_OBJ_TYPE_MASK(0, jobs, Traversable, MAY_BE_ARRAY, NULL)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, concurrency, IS_LONG, 1, "null")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_first, 0, 1, IS_MIXED, 0)
	ZEND_ARG_OBJ_TYPE_MASK(0, jobs, Traversable, MAY_BE_ARRAY, NULL)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_timeout, 0, 2, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_delay, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_job_functions[] = {
	ZEND_NS_FE("Surus\\Internal", job_start, arginfo_start)
	ZEND_NS_FE("Surus\\Internal", job_wait, arginfo_wait)
	ZEND_NS_FE("Surus\\Internal", job_wake, arginfo_number)
	ZEND_NS_FE("Surus\\Internal", job_cancel, arginfo_number)
	ZEND_NS_FE("Surus\\Internal", job_number, arginfo_own_number)
	ZEND_NS_FE("Surus\\Internal", job_task, arginfo_task)
	ZEND_NS_FE("Surus\\Internal", at_caller, arginfo_at_caller)
	ZEND_NS_NAMED_FE("Surus", async, ZEND_FN(surus_tasks), arginfo_async)
	ZEND_NS_NAMED_FE("Surus", await, ZEND_FN(surus_tasks), arginfo_await)
	ZEND_NS_NAMED_FE("Surus", all, ZEND_FN(surus_tasks), arginfo_all)
	ZEND_NS_NAMED_FE("Surus", any, ZEND_FN(surus_tasks), arginfo_first)
	ZEND_NS_NAMED_FE("Surus", race, ZEND_FN(surus_tasks), arginfo_first)
	ZEND_NS_NAMED_FE("Surus", timeout, ZEND_FN(surus_tasks), arginfo_timeout)
	ZEND_NS_NAMED_FE("Surus", delay, ZEND_FN(surus_tasks), arginfo_delay)
	ZEND_FE_END
};
