/* Coroutine applications: how one request is answered; app/boot.c boots them. */
#include "app/application.h"
#include "app/context.h"
#include "app/conversation.h"
#include "app/deferred.h"
#include "app/jobs.h"
#include "app/timers.h"
#include "connections/cleaning.h"
#include "connections/handle_request_end.h"
#include "fiber/state.h"
#include "fiber/superglobals.h"
#include "http/arguments.h"
#include "http/exceptions.h"
#include "http/request_class.h"
#include "http/response.h"
#include "isolate/isolate.h"
#include "os/descriptors.h"
#include "snapshot/snapshot.h"
#include "task/cancel.h"
#include "task/overflow.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_interfaces.h"
#include "ext/standard/basic_functions.h"

static zend_class_entry *(*next_autoload)(zend_string *, zend_string *);

/* The Surus\ classes, and PSR interfaces that they implement, are part of the binary: found when nothing else declares
 * them. */
static zend_class_entry *autoload(zend_string *name, zend_string *lower_name)
{
	surus_need_stack();
	zend_class_entry *class = next_autoload ? next_autoload(name, lower_name) : NULL;
	bool ours = strncmp(ZSTR_VAL(lower_name), "surus\\", 6) == 0 || strncmp(ZSTR_VAL(lower_name), "psr\\", 4) == 0;
	if (class || EG(exception) || !ours) {
		return class;
	}
	surus_str file, source;
	if (surus_rs_class_source(surus_bytes_of(name), &file, &source)) {
		zend_string *code = zend_string_init(source.ptr, source.len, false);
		zend_string *file_name = zend_string_init(file.ptr, file.len, false);
		zend_op_array *compiled = zend_compile_string(code, ZSTR_VAL(file_name), ZEND_COMPILE_POSITION_AT_OPEN_TAG);
		if (compiled) {
			zval result;
			ZVAL_UNDEF(&result);
			zend_execute(compiled, &result);
			zval_ptr_dtor(&result);
			zend_destroy_static_vars(compiled);
			destroy_op_array(compiled);
			efree_size(compiled, sizeof *compiled);
		}
		zend_string_release(code);
		zend_string_release(file_name);
		class = zend_hash_find_ptr(EG(class_table), lower_name);
	}
	return class;
}

/* Its name is empty, not missing: C code that warns asks for it. */
zend_function surus_bottom_function = {ZEND_INTERNAL_FUNCTION};

void surus_application_start(void)
{
	next_autoload = zend_autoload;
	zend_autoload = autoload;
	surus_bottom_function.common.function_name = ZSTR_EMPTY_ALLOC();
}

void surus_mark_destructed(zend_objects_store *objects)
{
	for (uint32_t i = 1; objects->object_buckets && i < objects->top; i++) {
		zend_object *object = objects->object_buckets[i];
		if (IS_OBJ_VALID(object)) {
			GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
		}
	}
}

/* Stands before the engine's own, which a fatal error calls so that no destructor runs any more. The objects of an
 * isolate with other requests are not the failed request's alone. */
ZEND_API void ZEND_FASTCALL zend_objects_store_mark_destructed(zend_objects_store *objects)
{
	if (!surus_running || !surus_running->fiber) {
		surus_mark_destructed(objects);
	}
}

/* ---- requests ---- */

/* The status that an exception asks for with getStatusCode(). */
static int exception_status(zend_object *exception)
{
	zend_function *method = zend_hash_str_find_ptr(&exception->ce->function_table, "getstatuscode", sizeof "getstatuscode" - 1);
	if (!method || !(method->common.fn_flags & ZEND_ACC_PUBLIC) || method->common.required_num_args) {
		return 500;
	}
	zval status;
	zend_call_method_with_0_params(exception, exception->ce, NULL, "getstatuscode", &status);
	zend_long code = zval_get_long(&status);
	zval_ptr_dtor(&status);
	return code >= 400 && code <= 599 ? (int)code : 500;
}

static bool call(const callable *what, uint32_t count, zval *arguments, zval *result)
{
	zend_fcall_info info = {.size = sizeof info, .retval = result, .params = arguments, .param_count = count};
	zend_fcall_info_cache cache = what->cache;
	ZVAL_UNDEF(&info.function_name);
	ZVAL_UNDEF(result);
	zend_call_function(&info, &cache);
	return !EG(exception);
}

static void need_request(surus_task *task, zval *request)
{
	if (Z_TYPE_P(request) == IS_UNDEF) {
		surus_request_object(request, task->isolate->application->request_class, task->exchange);
	}
}

/* What was printed before belongs to a page that did not come about. */
static void discard_output(surus_task *task)
{
	while (OG(active) && OG(active) != task->output) {
		php_output_discard();
	}
	php_output_clean();
}

/* The application's own answer to an exception. False: it has none, or its errors threw one in turn, which is pending. */
static bool answer_exception(surus_task *task, zend_object *exception, zval *request)
{
	struct surus_application *app = task->isolate->application;
	if (Z_TYPE(app->errors.value) == IS_UNDEF || SG(headers_sent)) {
		return false;
	}
	need_request(task, request);
	zval arguments[2], response;
	ZVAL_OBJ(&arguments[0], exception);
	ZVAL_COPY_VALUE(&arguments[1], request);
	discard_output(task);
	if (call(&app->errors, 2, arguments, &response)) {
		discard_output(task);
		surus_render(task, &response);
	}
	zval_ptr_dtor(&response);
	return !EG(exception);
}

/* The request's own handler, as zend_user_exception_handler() calls it, which drops what is thrown there: an exception
 * above a frame. That one is pending then. */
static void call_exception_handler(void)
{
	zend_object *exception = EG(exception);
	EG(exception) = NULL;
	zval handler, argument, result;
	ZVAL_COPY_VALUE(&handler, &EG(user_exception_handler));
	zend_stack_push(&EG(user_exception_handlers), &handler);
	ZVAL_UNDEF(&EG(user_exception_handler));
	ZVAL_OBJ(&argument, exception);
	ZVAL_UNDEF(&result);
	call_user_function(NULL, NULL, &handler, &result, 1, &argument);
	zval_ptr_dtor(&result);
	if (Z_TYPE(EG(user_exception_handler)) == IS_UNDEF && !zend_stack_is_empty(&EG(user_exception_handlers))) {
		ZVAL_COPY_VALUE(&EG(user_exception_handler), (zval *)zend_stack_top(&EG(user_exception_handlers)));
		zend_stack_del_top(&EG(user_exception_handlers));
	}
	OBJ_RELEASE(exception);
}

/* An exception that nobody caught. True when it was exit() or the end of a cancelled request. */
static bool handle_exception(surus_task *task, zval *request)
{
	if (zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception))) {
		zend_clear_exception();
		return true;
	}
	if (Z_TYPE(EG(user_exception_handler)) != IS_UNDEF) {
		call_exception_handler();
		if (!EG(exception)) {
			return true;
		}
		if (zend_is_unwind_exit(EG(exception))) {
			zend_clear_exception();
			return true;
		}
	}
	zend_object *exception = EG(exception);
	GC_ADDREF(exception);
	zend_clear_exception();
	if (answer_exception(task, exception, request)) {
		OBJ_RELEASE(exception);
		return false;
	}
	if (EG(exception)) {
		if (zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception))) {
			zend_clear_exception();
			OBJ_RELEASE(exception);
			return true;
		}
		OBJ_RELEASE(exception);
		exception = EG(exception);
		GC_ADDREF(exception);
		zend_clear_exception();
	}
	int status = exception_status(exception);
	if (EG(exception)) {
		zend_clear_exception();
	}
	surus_log_exception(exception);
	zval message, trace, place;
	zval *text = zend_read_property(exception->ce, exception, "message", sizeof "message" - 1, true, &place);
	ZVAL_COPY_DEREF(&message, text);
	ZVAL_UNDEF(&trace);
	zend_call_method_with_0_params(exception, exception->ce, NULL, "__tostring", &trace);
	if (EG(exception)) {
		zend_clear_exception();
	}
	discard_output(task);
	surus_rs_exception(task->exchange, status, surus_bytes_of(exception->ce->name), surus_text_of(&message), surus_text_of(&trace));
	SG(headers_sent) = 1;
	SG(request_info).no_headers = 1;
	zval_ptr_dtor(&message);
	zval_ptr_dtor(&trace);
	OBJ_RELEASE(exception);
	return false;
}

static struct route *route_of(surus_task *task)
{
	struct surus_application *app = task->isolate->application;
	int64_t index = surus_rs_route(task->exchange);
	return &app->routes[index < 0 || (size_t)index >= app->count ? 0 : index];
}

static bool call_planned(surus_task *task, const struct route *r, zval *request, zval *result)
{
	zval arguments[MAX_ARGUMENTS];
	uint32_t count = surus_plan_count(r->plan);
	ZVAL_UNDEF(result);
	if (!surus_plan_fill(r->plan, task->exchange, request, arguments)) {
		return false;
	}
	bool good = call(&r->handler, count, arguments, result);
	for (uint32_t i = 0; i < count; i++) {
		zval_ptr_dtor(&arguments[i]);
	}
	return good;
}

void surus_call_handler(zval *request, zval *result)
{
	surus_task *task = surus_request_of(surus_running);
	if (!task || !task->fiber || !task->isolate->application) {
		zend_throw_error(NULL, "There is no request whose handler could be called");
		return;
	}
	call_planned(task, route_of(task), request, result);
}

static void call_route(surus_task *task, zval *request)
{
	zval result;
	if (surus_conversation_turn(task) || surus_call_timer(task) || !task->isolate->application->count) {
		return;
	}
	const struct route *r = route_of(task);
	if (task->isolate->application->loops) {
		call(&r->handler, 0, NULL, &result);
		zval_ptr_dtor(&result);
		return;
	}
	bool piped = Z_TYPE(r->pipeline.value) != IS_UNDEF;
	if (piped || r->needs_request) {
		need_request(task, request);
	}
	if (piped ? call(&r->pipeline, 1, request, &result) : call_planned(task, r, request, &result)) {
		surus_render(task, &result);
	}
	zval_ptr_dtor(&result);
}

/* After a fatal error. It was reported where it happened. What is left of the request goes with the isolate; until then
 * its other requests get the memory that they were promised, their cycles are collected, and they may wait: marks of
 * what the engine was in the middle of would forbid it. */
void surus_note_fatal(surus_task *task)
{
	task->isolate->had_fatal = true;
	surus_memory_forgive(task->isolate);
	surus_clear_marks(task->isolate);
}

surus_outcome surus_run_call(surus_task *task)
{
	zval request;
	ZVAL_UNDEF(&request);
	volatile surus_outcome outcome = SURUS_OK;
	volatile bool whole = true;
	if (!task->fiber || !task->isolate->application || (!task->isolate->application->count && !task->isolate->timers && !task->isolate->background && !task->isolate->queued)) {
		return SURUS_FATAL;
	}
	bool on_snapshot = surus_snapshot_is_taken(task->isolate);
	if (on_snapshot) {
		surus_snapshot_begin();
	}
	/* Without a frame below it an exception that leaves the handler would be a fatal error at once. */
	zend_execute_data bottom = {.func = &surus_bottom_function};
	EG(current_execute_data) = &bottom;
	SG(server_context) = task->exchange;
	task->handler = route_of(task)->function;
	zend_first_try {
		surus_output_begin(task);
		surus_superglobals_build(task);
		surus_fiber_begin(task);
		call_route(task, &request);
		if (EG(exception)) {
			if (zend_is_unwind_exit(EG(exception)) && !SURUS_HAS_OOM()) {
				surus_conversation_exits(task);
			}
			outcome = handle_exception(task, &request) ? SURUS_OK : SURUS_EXCEPTION;
		}
		if (SURUS_HAS_OOM()) {
			SURUS_CLEAR_OOM();
			task->isolate->had_fatal = true;
			whole = false;
		}
	} zend_catch {
		outcome = SURUS_FATAL;
		whole = false;
	} zend_end_try();
	if (!whole) {
		surus_rs_cut_off(task->exchange);
	}
	EG(current_execute_data) = &bottom;
	if (outcome == SURUS_FATAL) {
		surus_note_fatal(task);
		surus_output_mend(task);
		if (!SG(headers_sent)) {
			SG(sapi_headers).http_response_code = 500;
		}
	}
	surus_jobs_end(task);
	/* After a fatal error, too: that is where applications report it. Each of them is guarded. */
	task->body_over = true;
	if (BG(user_shutdown_function_names)) {
		php_call_shutdown_functions();
		php_free_shutdown_functions();
		BG(user_shutdown_function_names) = NULL;
	}
	surus_report_exception();
	if (on_snapshot && !task->deferred) {
		surus_snapshot_destruct(task);
	}
	surus_output_end(task);
	if (task->deferred && (!whole || CG(unclean_shutdown))) {
		surus_deferred_drop(task);
	} else if (task->deferred) {
		surus_deferred_run(task);
		if (on_snapshot) {
			surus_snapshot_destruct(task);
		}
		surus_output_end(task);
	}
	zend_try {
		bool goes_on = surus_conversation_rest(task);
		if (Z_TYPE(request) != IS_UNDEF && !goes_on) {
			surus_request_detach(&request);
		}
		zval_ptr_dtor(&request);
		surus_context_end(task);
		surus_collect_descriptors();
	} zend_catch {
		surus_note_fatal(task);
	} zend_end_try();
	surus_report_exception();
	if (!task->isolate->booted) {
		/* In process: this fiber has no next request that would want the buffer. */
		php_output_end_all();
		php_output_deactivate();
		task->output = NULL;
	}
	/* One that was caught on the way: in a shutdown function, in an output callback, in the end of a module. */
	if (!surus_fiber_reset(task)) {
		surus_note_fatal(task);
	}
	surus_handles_end(task, outcome != SURUS_OK || task->cancel != SURUS_CANCEL_NONE || task->cut || task->isolate->had_fatal);
	surus_cancel_forget(task);
	bool ended = !on_snapshot || surus_snapshot_free_rest(task);
	if (!surus_persistent_end(task)) {
		surus_note_fatal(task);
		ended = false;
	}
	EG(current_execute_data) = NULL;
	if (on_snapshot && ended && surus_snapshot_put_back(task)) {
		/* Nothing of a fatal error is left, either. */
		outcome = outcome == SURUS_FATAL ? SURUS_EXCEPTION : outcome;
	} else if (on_snapshot || task->isolate->had_fatal) {
		task->isolate->had_fatal = true;
		outcome = SURUS_FATAL;
	}
	if (task->cancel != SURUS_CANCEL_NONE && outcome != SURUS_FATAL) {
		return SURUS_CANCELLED;
	}
	return outcome;
}
