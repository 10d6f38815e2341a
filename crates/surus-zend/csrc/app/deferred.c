/* Surus\defer(): what a request does after its response has been sent.
 *
 * It runs on the request's own task, with everything that is the request's, as code after fastcgi_finish_request() does, but
 * after the shutdown functions, which may still print. From then on the request has another time limit, and no client that
 * could leave. Each callable has its own end: an exception and exit() end one of them. A fatal error and the time limit end
 * all that are left, and the log says how many.
 */
#include "app/deferred.h"
#include "app/application.h"
#include "app/jobs.h"
#include "connections/handle_request_end.h"
#include "http/exceptions.h"
#include "http/response.h"
#include "isolate/isolate.h"
#include "task/cancel.h"
#include "task/log.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_closures.h"
#include "ext/standard/basic_functions.h"
#include "ext/standard/head.h"

/* A run of what a request has deferred. */
typedef struct {
	surus_task *task;
	zend_execute_data bottom; /* without a frame below it an exception that leaves a callable would be a fatal error */
	bool fatal;
} run;

/* Logs an exception, with the request whose it is. */
static void report(surus_task *task)
{
	zend_object *exception = EG(exception);
	surus_request_info info;
	surus_rs_request_info(task->exchange, &info);
	surus_logf(3, "Deferred by %s %s, and failed:", info.method.ptr, info.path.ptr);
	surus_log_exception(exception);
	OBJ_RELEASE(exception);
}

/* What the engine has left behind in a place where nothing catches. */
static void end_exception(surus_task *task)
{
	if (EG(exception) && (zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception)))) {
		zend_clear_exception();
	} else if (EG(exception)) {
		report(task);
	}
}

static void note_fatal(run *r)
{
	r->fatal = true;
	if (r->task->fiber) {
		surus_note_fatal(r->task); /* at once: other requests of the isolate may run before this one has ended */
		surus_output_mend(r->task);
	} else {
		surus_clear_marks(r->task->isolate);
	}
}

static void call_one(run *r, zval *what)
{
	zend_try {
		zval result;
		ZVAL_UNDEF(&result);
		call_user_function(NULL, NULL, what, &result, 0, NULL);
		zval_ptr_dtor(&result);
		if (SURUS_HAS_OOM()) {
			SURUS_CLEAR_OOM();
			zend_bailout();
		}
		end_exception(r->task);
	} zend_catch {
		note_fatal(r);
	} zend_end_try();
	EG(current_execute_data) = &r->bottom;
	surus_jobs_end(r->task);
	if (CG(unclean_shutdown) && !r->fatal) {
		note_fatal(r); /* of a task */
	}
	end_exception(r->task);
}

/* Its destructor is the application's code, too. */
static void drop(run *r, zval *what)
{
	if (r->fatal) {
		return; /* its memory goes with the isolate, or with what PHP has of the request */
	}
	zend_try {
		zval_ptr_dtor(what);
		end_exception(r->task);
	} zend_catch {
		note_fatal(r);
	} zend_end_try();
	EG(current_execute_data) = &r->bottom;
}

static bool goes_on(const run *r)
{
	return !r->fatal && r->task->cancel == SURUS_CANCEL_NONE;
}

/* The visitor's next request must not wait for the lock of the session. */
static void write_session(run *r)
{
	if (goes_on(r) && zend_hash_str_exists(EG(function_table), "session_write_close", sizeof "session_write_close" - 1)) {
		zval name;
		ZVAL_STRING(&name, "session_write_close");
		call_one(r, &name);
		drop(r, &name);
	}
}

static void note_left(surus_task *task, uint32_t left, const char *why)
{
	if (left) {
		surus_request_info info;
		surus_rs_request_info(task->exchange, &info);
		surus_logf(4, "%u deferred by %s %s did not run: %s", left, info.method.ptr, info.path.ptr, why);
	}
}

/* Those that they defer in turn are behind them. Returns how many were begun. */
static uint32_t run_all(run *r)
{
	uint32_t begun = 0;
	while (goes_on(r) && begun < zend_hash_num_elements(r->task->deferred)) {
		zval *place = zend_hash_index_find(r->task->deferred, begun++), what;
		ZVAL_COPY_VALUE(&what, place);
		ZVAL_NULL(place);
		call_one(r, &what);
		drop(r, &what);
	}
	return begun;
}

void surus_deferred_run(surus_task *task)
{
	zend_execute_data *above = EG(current_execute_data);
	run r = {.task = task, .bottom = {.func = &surus_bottom_function}};
	EG(current_execute_data) = &r.bottom;
	uint32_t begun = 0;
	if (!task->hard_cancel) {
		if (task->cancel != SURUS_CANCEL_NONE) {
			task->cancel = SURUS_CANCEL_NONE;
			task->cut = true;
			surus_cancel_forget(task);
		}
		task->body_over = false;
		task->defers = true;
		surus_rs_defer(task->exchange);
		end_exception(task);
		write_session(&r);
		begun = run_all(&r);
		surus_rs_deferred(task->exchange);
		task->defers = false;
		task->body_over = true;
	}
	note_left(task, zend_hash_num_elements(task->deferred) - begun, r.fatal ? "a fatal error came before" : "the time was over");
	zval left;
	ZVAL_ARR(&left, task->deferred);
	task->deferred = NULL;
	drop(&r, &left);
	EG(current_execute_data) = above;
	if (r.fatal) {
		CG(unclean_shutdown) = true;
	}
}

void surus_deferred_drop(surus_task *task)
{
	note_left(task, zend_hash_num_elements(task->deferred), "the request had a fatal error");
	task->deferred = NULL; /* its memory goes with the isolate, or with what PHP has of the request */
}

/* Does first what else php_request_shutdown() does: shutdown functions and output callbacks may print. */
static void run_after_shutdown(surus_task *task)
{
	if (CG(unclean_shutdown)) {
		surus_deferred_drop(task);
		return;
	}
	EG(flags) |= EG_FLAGS_IN_SHUTDOWN;
	php_call_shutdown_functions();
	php_free_shutdown_functions();
	zend_try {
		php_output_end_all();
		php_header();
	} zend_end_try();
	EG(flags) &= ~EG_FLAGS_IN_SHUTDOWN;
	surus_report_exception();
	if (CG(unclean_shutdown)) {
		surus_deferred_drop(task);
	} else {
		surus_deferred_run(task);
	}
}

void surus_deferred_end_code(surus_task *task)
{
	if (task->had_jobs) {
		surus_jobs_end(task);
	}
	if (task->deferred) {
		run_after_shutdown(task);
	}
	if (task->had_jobs) {
		surus_handles_forget_jobs(task);
		task->had_jobs = false;
	}
}

/* Surus\Internal\job_defer(Closure $job): void */
static ZEND_FUNCTION(job_defer)
{
	zval *closure;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT_OF_CLASS(closure, zend_ce_closure)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *request = surus_request_of(surus_serving("Surus\\defer() is", "cannot defer anything"));
	if (!request) {
		RETURN_THROWS();
	}
	if (!request->deferred) {
		request->deferred = zend_new_array(0);
	}
	Z_ADDREF_P(closure);
	zend_hash_next_index_insert(request->deferred, closure);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_job_defer, 0, 1, IS_VOID, 0)
	ZEND_ARG_OBJ_INFO(0, job, Closure, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_defer, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_deferred_functions[] = {
	ZEND_NS_FE("Surus\\Internal", job_defer, arginfo_job_defer)
	ZEND_NS_NAMED_FE("Surus", defer, ZEND_FN(surus_tasks), arginfo_defer)
	ZEND_FE_END
};
