/* Coroutine applications: a script that runs once and returns what answers requests. */
#include "internal.h"
#include "fiber_state.h"
#include "hydrate.h"

#include "Zend/zend_closures.h"
#include "Zend/zend_interfaces.h"
#include "Zend/zend_virtual_cwd.h"
#include "ext/standard/basic_functions.h"

#define MAX_ARGUMENTS 16

typedef struct {
	zval handler;
	zend_fcall_info_cache call;
	surus_plan *plan;
} route;

struct surus_application {
	zval value;     /* what the script returned */
	route *routes;  /* of a Surus\App; else one */
	size_t count;
	bool psr15;
};

static zend_class_entry *(*next_autoload)(zend_string *, zend_string *);

/* The Surus\ classes are part of the binary: found when nothing else declares them. */
static zend_class_entry *autoload(zend_string *name, zend_string *lower_name)
{
	zend_class_entry *class = next_autoload ? next_autoload(name, lower_name) : NULL;
	if (class || EG(exception) || strncmp(ZSTR_VAL(lower_name), "surus\\", 6) != 0) {
		return class;
	}
	surus_str file, source;
	if (surus_rs_class_source((surus_str){ZSTR_VAL(name), ZSTR_LEN(name)}, &file, &source)) {
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

void surus_application_start(void)
{
	next_autoload = zend_autoload;
	zend_autoload = autoload;
}

static void surus_mark_destructed(zend_objects_store *objects)
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

static void log_exception(zend_object *exception)
{
	zval object, text;
	ZVAL_OBJ(&object, exception);
	ZVAL_UNDEF(&text);
	EG(exception) = NULL;
	if (instanceof_function(exception->ce, zend_ce_throwable)) {
		zend_call_method_with_0_params(exception, exception->ce, NULL, "__tostring", &text);
	}
	if (Z_TYPE(text) == IS_STRING) {
		surus_logf(3, "PHP Uncaught %s", Z_STRVAL(text));
	}
	zval_ptr_dtor(&text);
	if (EG(exception)) {
		zend_clear_exception();
	}
}

static bool prepare_route(route *r, void *exchange, int64_t index, const char *methods, const char *pattern)
{
	char *why = NULL;
	if (!zend_is_callable_ex(&r->handler, NULL, 0, NULL, &r->call, &why)) {
		surus_logf(3, "The handler for \"%s\" cannot be called: %s", pattern, why ? why : "unknown reason");
		if (why) {
			efree(why);
		}
		return false;
	}
	char error[512];
	r->plan = surus_plan_make(exchange, index, methods, r->call.function_handler, pattern, error, sizeof error);
	if (!r->plan) {
		surus_logf(3, "%s", error);
		return false;
	}
	if (surus_plan_count(r->plan) > MAX_ARGUMENTS) {
		surus_logf(3, "The handler for \"%s\" has more than %d parameters", pattern, MAX_ARGUMENTS);
		return false;
	}
	return true;
}

/* A Surus\App lists its routes as [method, pattern, handler]. */
static bool take_routes(struct surus_application *app, void *exchange)
{
	zval routes;
	zend_call_method_with_0_params(Z_OBJ(app->value), Z_OBJCE(app->value), NULL, "routes", &routes);
	if (EG(exception) || Z_TYPE(routes) != IS_ARRAY) {
		zval_ptr_dtor(&routes);
		return false;
	}
	app->routes = calloc(zend_hash_num_elements(Z_ARRVAL(routes)) + 1, sizeof *app->routes);
	bool good = app->routes != NULL;
	zval *item;
	ZEND_HASH_FOREACH_VAL(Z_ARRVAL(routes), item) {
		zval *method = zend_hash_index_find(Z_ARRVAL_P(item), 0);
		zval *pattern = zend_hash_index_find(Z_ARRVAL_P(item), 1);
		zval *handler = zend_hash_index_find(Z_ARRVAL_P(item), 2);
		route *r = &app->routes[app->count];
		ZVAL_COPY(&r->handler, handler);
		good = good && prepare_route(r, exchange, (int64_t)app->count, Z_STRVAL_P(method), Z_STRVAL_P(pattern));
		surus_rs_add_route(exchange, (surus_str){Z_STRVAL_P(method), Z_STRLEN_P(method)},
			(surus_str){Z_STRVAL_P(pattern), Z_STRLEN_P(pattern)}, (int64_t)app->count);
		app->count++;
	} ZEND_HASH_FOREACH_END();
	zval_ptr_dtor(&routes);
	return good && surus_take_messages(exchange) && surus_make_openapi(exchange, &app->value);
}

static bool is_a(const zval *value, const char *lower_name)
{
	if (Z_TYPE_P(value) != IS_OBJECT) {
		return false;
	}
	zend_class_entry *class = zend_hash_str_find_ptr(EG(class_table), lower_name, strlen(lower_name));
	return class && instanceof_function(Z_OBJCE_P(value), class);
}

static bool take_application(surus_isolate *isolate, void *exchange, zval *value, const char *script)
{
	struct surus_application *app = calloc(1, sizeof *app);
	ZVAL_COPY_VALUE(&app->value, value);
	isolate->application = app;
	if (is_a(value, "surus\\app")) {
		return take_routes(app, exchange);
	}
	if (Z_TYPE_P(value) == IS_LONG || Z_TYPE_P(value) == IS_NULL || !zend_is_callable(value, 0, NULL)) {
		surus_logf(3, "%s must return a Surus\\App, a closure that takes a request, or a callable; it returned %s", script, zend_zval_type_name(value));
		return false;
	}
	app->routes = calloc(1, sizeof *app->routes);
	app->count = 1;
	ZVAL_COPY(&app->routes[0].handler, value);
	return prepare_route(&app->routes[0], exchange, 0, "*", "");
}

surus_outcome surus_run_boot(surus_task *task)
{
	surus_isolate *isolate = task->isolate;
	surus_request_info info;
	surus_fill_request_info(task->exchange, &info);
	SG(request_info).request_method = NULL;
	if (php_request_startup() == FAILURE) {
		php_request_shutdown(NULL);
		return SURUS_FATAL;
	}
	SURUS_SET_STACK_LIMITS(task->stack.top, task->stack.base);
	virtual_cwd_deactivate();
	PG(during_request_startup) = false;
	SG(headers_sent) = 1;
	SG(request_info).no_headers = 1;
	isolate->scanned_functions = isolate->scanned_classes = 0;

	bool good = false;
	zval value;
	ZVAL_UNDEF(&value);
	zend_first_try {
		zend_file_handle script;
		zend_stream_init_filename(&script, info.script.ptr);
		script.primary_script = true;
		VCWD_CHDIR_FILE(info.script.ptr);
		bool ran = zend_execute_scripts(ZEND_REQUIRE, &value, 1, &script) == SUCCESS && Z_TYPE(value) != IS_UNDEF;
		zend_destroy_file_handle(&script);
		php_output_end_all();
		if (ran) {
			good = take_application(isolate, task->exchange, &value, info.script.ptr);
		}
		if (EG(exception)) {
			zend_object *exception = EG(exception);
			log_exception(exception);
			good = false;
		}
	} zend_end_try();
	if (!good) {
		surus_run_unboot(task);
		return SURUS_FATAL;
	}
	EG(current_execute_data) = NULL;
	surus_superglobals_scan(isolate);
	isolate->booted = true;
	surus_fiber_take_idle(isolate);
	return SURUS_OK;
}

surus_outcome surus_run_unboot(surus_task *task)
{
	surus_isolate *isolate = task->isolate;
	struct surus_application *app = isolate->application;
	isolate->application = NULL;
	isolate->booted = false;
	surus_fiber_drop_idle(isolate);
	if (app) {
		zend_try {
			for (size_t i = 0; i < app->count; i++) {
				surus_plan_free(app->routes[i].plan);
				zval_ptr_dtor(&app->routes[i].handler);
			}
			zval_ptr_dtor(&app->value);
		} zend_end_try();
		free(app->routes);
		free(app);
	}
	if (isolate->had_fatal) {
		/* Objects of requests that failed are left over; their time is past. */
		surus_mark_destructed(&EG(objects_store));
	}
	php_request_shutdown(NULL);
	SG(server_context) = NULL;
	return SURUS_OK;
}

/* ---- requests ---- */

static zend_function call_function = {ZEND_INTERNAL_FUNCTION};

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

static surus_str as_str(const zval *text)
{
	return Z_TYPE_P(text) == IS_STRING ? (surus_str){Z_STRVAL_P(text), Z_STRLEN_P(text)} : (surus_str){"", 0};
}

/* An exception that nobody caught. True when it was exit() or the end of a cancelled request. */
static bool handle_exception(surus_task *task)
{
	if (zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception))) {
		zend_clear_exception();
		return true;
	}
	if (Z_TYPE(EG(user_exception_handler)) != IS_UNDEF) {
		zend_user_exception_handler();
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
	int status = exception_status(exception);
	if (EG(exception)) {
		zend_clear_exception();
	}
	log_exception(exception);
	zval message, trace, place;
	zval *text = zend_read_property(exception->ce, exception, "message", sizeof "message" - 1, true, &place);
	ZVAL_COPY_DEREF(&message, text);
	ZVAL_UNDEF(&trace);
	zend_call_method_with_0_params(exception, exception->ce, NULL, "__tostring", &trace);
	if (EG(exception)) {
		zend_clear_exception();
	}
	/* What was printed before belongs to a page that did not come about. */
	while (OG(active) && OG(active) != task->output) {
		php_output_discard();
	}
	php_output_clean();
	surus_rs_exception(task->exchange, status, (surus_str){ZSTR_VAL(exception->ce->name), ZSTR_LEN(exception->ce->name)}, as_str(&message), as_str(&trace));
	SG(headers_sent) = 1;
	SG(request_info).no_headers = 1;
	zval_ptr_dtor(&message);
	zval_ptr_dtor(&trace);
	OBJ_RELEASE(exception);
	return false;
}

static bool call_route(surus_task *task, route *r, zval *request)
{
	zval arguments[MAX_ARGUMENTS], result;
	ZVAL_UNDEF(&result);
	uint32_t count = surus_plan_count(r->plan);
	if (!surus_plan_fill(r->plan, task->exchange, request, arguments)) {
		if (!EG(exception) && !SG(headers_sent)) {
			zval not_found;
			ZVAL_LONG(&not_found, 404);
			surus_render(task, &not_found);
		}
		return true;
	}
	zend_fcall_info call = {.size = sizeof call, .retval = &result, .params = arguments, .param_count = count};
	ZVAL_UNDEF(&call.function_name);
	zend_fcall_info_cache cache = r->call;
	zend_call_function(&call, &cache);
	for (uint32_t i = 0; i < count; i++) {
		zval_ptr_dtor(&arguments[i]);
	}
	if (!EG(exception)) {
		surus_render(task, &result);
	}
	zval_ptr_dtor(&result);
	return true;
}

/* After a fatal error. It was reported where it happened. What is left of the request goes with the isolate; until then
 * its other requests get the memory that they were promised, their cycles are collected, and they may wait: marks of
 * what the engine was in the middle of would forbid it. */
static void note_fatal(surus_task *task)
{
	task->isolate->had_fatal = true;
	surus_memory_forgive(task->isolate);
	surus_clear_marks();
}

surus_outcome surus_run_call(surus_task *task)
{
	struct surus_application *app = task->isolate->application;
	zval request;
	ZVAL_UNDEF(&request);
	volatile surus_outcome outcome = SURUS_OK;
	if (!task->fiber || !app) {
		return SURUS_FATAL;
	}
	/* Without a frame below it an exception that leaves the handler would be a fatal error at once. */
	zend_execute_data bottom = {.func = &call_function};
	EG(current_execute_data) = &bottom;
	SG(server_context) = task->exchange;
	zend_first_try {
		surus_output_begin(task);
		surus_superglobals_build(task);
		int64_t index = surus_rs_route(task->exchange);
		call_route(task, &app->routes[index < 0 || (size_t)index >= app->count ? 0 : index], &request);
		if (EG(exception)) {
			outcome = handle_exception(task) ? SURUS_OK : SURUS_EXCEPTION;
		}
		if (SURUS_HAS_OOM()) {
			SURUS_CLEAR_OOM();
			task->isolate->had_fatal = true;
		}
	} zend_catch {
		outcome = SURUS_FATAL;
	} zend_end_try();
	EG(current_execute_data) = &bottom;
	if (outcome == SURUS_FATAL) {
		note_fatal(task);
		if (!SG(headers_sent)) {
			SG(sapi_headers).http_response_code = 500;
		}
	}
	/* After a fatal error, too: that is where applications report it. Each of them is guarded. */
	task->body_over = true;
	if (BG(user_shutdown_function_names)) {
		php_call_shutdown_functions();
		php_free_shutdown_functions();
		BG(user_shutdown_function_names) = NULL;
	}
	if (EG(exception)) {
		zend_object *exception = EG(exception);
		zend_try {
			log_exception(exception);
			OBJ_RELEASE(exception);
		} zend_end_try();
	}
	surus_output_end(task);
	if (Z_TYPE(request) != IS_UNDEF) {
		surus_request_detach(&request);
		zval_ptr_dtor(&request);
	}
	/* One that was caught on the way: in a shutdown function, in an output callback, in the end of a module. */
	if (!surus_fiber_reset(task)) {
		note_fatal(task);
	}
	EG(current_execute_data) = NULL;
	if (task->isolate->had_fatal) {
		outcome = SURUS_FATAL;
	}
	if (task->cancel != SURUS_CANCEL_NONE && outcome != SURUS_FATAL) {
		return SURUS_CANCELLED;
	}
	return outcome;
}
