/* Boots a coroutine application: a script that runs once and returns what answers requests. */
#include "app/boot.h"
#include "app/application.h"
#include "app/conversation.h"
#include "fiber/state.h"
#include "fiber/superglobals.h"
#include "http/arguments.h"
#include "http/exceptions.h"
#include "http/hydrate.h"
#include "http/request_info.h"
#include "isolate/tables.h"
#include "snapshot/origins.h"
#include "snapshot/snapshot.h"
#include "task/fiber_stacks.h"
#include "task/log.h"
#include "task/state.h"

#include "Zend/zend_exceptions.h"
#include "Zend/zend_virtual_cwd.h"

static bool is_a(zend_class_entry *class, const char *lower_name)
{
	zend_class_entry *wanted = zend_hash_str_find_ptr(EG(class_table), lower_name, strlen(lower_name));
	return wanted && instanceof_function(class, wanted);
}

/* Logs why the application does not boot. A Surus\BootError is logged without a trace: its message names the place. */
static void log_boot_error(zend_object *exception)
{
	if (!is_a(exception->ce, "surus\\booterror")) {
		surus_log_exception(exception);
		return;
	}
	zval place;
	GC_ADDREF(exception);
	zend_clear_exception();
	zval *message = zend_read_property(exception->ce, exception, "message", sizeof "message" - 1, true, &place);
	surus_logf(3, "%s", Z_TYPE_P(message) == IS_STRING ? Z_STRVAL_P(message) : "it does not boot");
	OBJ_RELEASE(exception);
}

/* Throws a Surus\BootError with this message. */
static void throw_boot_error(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	zend_string *message = zend_vstrpprintf(0, format, arguments);
	va_end(arguments);
	zend_string *name = zend_string_init(ZEND_STRL("Surus\\BootError"), false);
	zend_class_entry *class = zend_lookup_class(name);
	zend_throw_exception(class, ZSTR_VAL(message), 0);
	zend_string_release(name);
	zend_string_release(message);
}

static void take_callable(callable *to, zval *from)
{
	if (from && Z_TYPE_P(from) != IS_NULL && zend_is_callable_ex(from, NULL, 0, NULL, &to->cache, NULL)) {
		ZVAL_COPY(&to->value, from);
	}
}

static void drop_callable(callable *one)
{
	zval_ptr_dtor(&one->value);
	ZVAL_UNDEF(&one->value);
}

/* A property of an object of Surus\Internal, which declares it. */
static zval *property(zval *object, const char *name)
{
	static zval nothing;
	return zend_read_property(Z_OBJCE_P(object), Z_OBJ_P(object), name, strlen(name), true, &nothing);
}

/* The function in the application's code: the handler itself, or the [class, method] that a closure around it calls. */
static const zend_function *function_of(const struct route *r, zval *target)
{
	if (Z_TYPE_P(target) != IS_ARRAY) {
		return r->handler.cache.function_handler;
	}
	zend_class_entry *class = zend_lookup_class(Z_STR_P(zend_hash_index_find(Z_ARRVAL_P(target), 0)));
	zend_string *name = zend_string_tolower(Z_STR_P(zend_hash_index_find(Z_ARRVAL_P(target), 1)));
	const zend_function *function = class ? zend_hash_find_ptr(&class->function_table, name) : NULL;
	zend_string_release(name);
	return function;
}

/* `from` is a Surus\Internal\CompiledRoute. */
static bool take_route(struct surus_application *app, void *exchange, zval *from)
{
	char error[1024] = "";
	surus_route route = {
		.methods = surus_text_of(property(from, "methods")),
		.pattern = surus_text_of(property(from, "pattern")),
		.host = surus_text_of(property(from, "host")),
		.headers = surus_text_of(property(from, "headers")),
		.about = surus_text_of(property(from, "about")),
		.origin = surus_text_of(property(from, "origin")),
		.index = (int64_t)app->count,
		.timeout = zval_get_double(property(from, "timeout")),
	};
	struct route *r = &app->routes[app->count];
	take_callable(&r->handler, property(from, "handler"));
	take_callable(&r->pipeline, property(from, "pipeline"));
	r->function = function_of(r, property(from, "target"));
	r->plan = surus_plan_make(property(from, "arguments"), exchange, route.index, error, sizeof error);
	app->count++;
	if (!r->plan) {
		throw_boot_error("%s", error);
		return false;
	}
	r->needs_request = surus_plan_needs_request(r->plan);
	if (Z_TYPE(r->handler.value) == IS_UNDEF || surus_plan_count(r->plan) > MAX_ARGUMENTS) {
		throw_boot_error("The handler for \"%s\" cannot be called, or has more than %d parameters", route.pattern.ptr, MAX_ARGUMENTS);
		return false;
	}
	if (zend_is_true(property(from, "isGuarded"))) {
		surus_rs_guard_route(exchange, route.index);
	}
	/* A single handler takes every request: there is no pattern to match. */
	if (route.pattern.len || route.methods.ptr[0] != '*') {
		surus_rs_add_route(exchange, &route);
	}
	return true;
}

static zend_class_entry *load_class(const char *text)
{
	zend_string *name = zend_string_init(text, strlen(text), false);
	zend_class_entry *class = zend_lookup_class(name);
	zend_string_release(name);
	return class;
}

/* Compiles the application's value with Surus\Internal\Boot. */
static bool compile(struct surus_application *app, void *exchange, const char *script)
{
	zend_class_entry *boot = load_class("Surus\\Internal\\Boot");
	app->request_class = load_class("Surus\\Http\\Request");
	zend_function *compile = boot ? zend_hash_str_find_ptr(&boot->function_table, "compile", sizeof "compile" - 1) : NULL;
	if (!compile || !app->request_class) {
		return false;
	}
	zval arguments[3], compiled;
	ZVAL_COPY_VALUE(&arguments[0], &app->value);
	ZVAL_STRING(&arguments[1], script);
	ZVAL_BOOL(&arguments[2], surus_rs_is_dev(exchange));
	ZVAL_UNDEF(&compiled);
	zend_call_known_function(compile, NULL, boot, &compiled, 3, arguments, NULL);
	zval_ptr_dtor(&arguments[1]);
	bool good = !EG(exception) && Z_TYPE(compiled) == IS_OBJECT;
	if (good) {
		zval *routes = property(&compiled, "routes"), *route;
		take_callable(&app->errors, property(&compiled, "errors"));
		app->routes = ecalloc(zend_hash_num_elements(Z_ARRVAL_P(routes)) + 1, sizeof *app->routes);
		ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(routes), route) {
			good = good && take_route(app, exchange, route);
		} ZEND_HASH_FOREACH_END();
		good = good && surus_take_messages(exchange)
			&& (Z_TYPE(app->value) != IS_OBJECT || !is_a(Z_OBJCE(app->value), "surus\\app") || surus_make_openapi(exchange, &app->value));
	}
	zval_ptr_dtor(&compiled);
	return good && !EG(exception);
}

struct surus_application *surus_application_make(void *exchange, zval *value, const char *script)
{
	struct surus_application *app = ecalloc(1, sizeof *app);
	ZVAL_COPY_VALUE(&app->value, value);
	/* Without a frame below it an exception would be a fatal error at once. */
	static zend_function bottom_function = {ZEND_INTERNAL_FUNCTION};
	zend_execute_data bottom = {.func = &bottom_function, .prev_execute_data = EG(current_execute_data)}, *above = EG(current_execute_data);
	EG(current_execute_data) = &bottom;
	if (!compile(app, exchange, script)) {
		surus_application_free(app);
		app = NULL;
	}
	EG(current_execute_data) = above;
	return app;
}

void surus_application_free(struct surus_application *app)
{
	for (size_t i = 0; i < app->count; i++) {
		drop_callable(&app->routes[i].handler);
		drop_callable(&app->routes[i].pipeline);
		if (app->routes[i].plan) {
			surus_plan_free(app->routes[i].plan);
		}
	}
	drop_callable(&app->errors);
	zval_ptr_dtor(&app->value);
	if (app->routes) {
		efree(app->routes);
	}
	efree(app);
}

/* Calls the script's exception handler. Those of frameworks make a page of the exception, which nobody would see: it is
 * logged too. */
static void tell_handler(void)
{
	zend_object *exception = EG(exception);
	if (!zend_is_unwind_exit(exception) && !zend_is_graceful_exit(exception)) {
		surus_log_exception(exception);
		EG(exception) = exception;
	}
	zend_user_exception_handler();
}

static zend_op_array *compile_script(zend_file_handle *script, const char *starter)
{
	if (!starter) {
		return zend_compile_file(script, ZEND_REQUIRE);
	}
	zend_string *code = zend_string_init(starter, strlen(starter), false);
	zend_op_array *compiled = zend_compile_string(code, "surus:starter", ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
	zend_string_release(code);
	return compiled;
}

/* Like zend_execute_scripts(), which would also write a trace for a Surus\BootError. Closes the script: one that serves requests
 * does not end. */
static bool execute(zend_file_handle *script, const char *starter, zval *value)
{
	zend_op_array *code = compile_script(script, starter);
	if (script->opened_path) {
		zend_hash_add_empty_element(&EG(included_files), script->opened_path);
	}
	zend_destroy_file_handle(script);
	if (!code) {
		return false;
	}
	zend_execute(code, value);
	zend_exception_restore();
	if (EG(exception) && Z_TYPE(EG(user_exception_handler)) != IS_UNDEF) {
		tell_handler();
	}
	bool good = !EG(exception);
	if (!good && !is_a(EG(exception)->ce, "surus\\booterror")) {
		zend_exception_error(EG(exception), E_ERROR);
	}
	zend_destroy_static_vars(code);
	destroy_op_array(code);
	efree_size(code, sizeof *code);
	return good;
}

/* The output of a boot goes only to the log, which already has the errors: they need not be shown twice. */
static void hide_errors(surus_isolate *isolate)
{
	isolate->shows_errors = PG(display_errors);
	if (PG(log_errors)) {
		PG(display_errors) = 0;
	}
}

/* Restores the value for requests, unless the application has set it during the boot. */
static void show_errors(const surus_isolate *isolate)
{
	zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("display_errors"));
	if (entry && !entry->modified) {
		PG(display_errors) = isolate->shows_errors;
	}
}

void surus_boot_complete(surus_isolate *isolate)
{
	show_errors(isolate);
	surus_superglobals_scan(isolate);
	isolate->booted = true;
	surus_fiber_take_idle(isolate);
	isolate->time_limit = INI_INT("max_execution_time");
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
	SURUS_SET_STACK_LIMITS(task->stack);
	virtual_cwd_deactivate();
	PG(during_request_startup) = false;
	SG(headers_sent) = 1;
	SG(request_info).no_headers = 1;
	isolate->scanned_functions = isolate->scanned_classes = 0;
	hide_errors(isolate);
	if (isolate->pages) {
		surus_origins_start();
	}

	bool good = false;
	zval value;
	ZVAL_UNDEF(&value);
	zend_first_try {
		zend_file_handle script;
		zend_stream_init_filename(&script, info.script.ptr);
		script.primary_script = true;
		VCWD_CHDIR_FILE(info.script.ptr);
		bool ran = execute(&script, isolate->starter, &value) && Z_TYPE(value) != IS_UNDEF;
		php_output_end_all();
		if (task->loop.ran) {
			zval_ptr_dtor(&value);
			good = true;
		} else if (ran) {
			isolate->application = surus_application_make(task->exchange, &value, info.script.ptr);
			good = isolate->application != NULL;
		}
		if (EG(exception)) {
			zend_object *exception = EG(exception);
			log_boot_error(exception);
			good = false;
		}
	} zend_end_try();
	EG(current_execute_data) = NULL;
	if (task->loop.ran) {
		/* Its requests are over: Rust frees their task, then ends the isolate with SURUS_RUN_UNBOOT. */
		isolate->had_fatal = isolate->had_fatal || !good;
		return good ? SURUS_OK : SURUS_FATAL;
	}
	if (!good) {
		surus_run_unboot(task);
		return SURUS_FATAL;
	}
	surus_boot_complete(isolate);
	return SURUS_OK;
}

static void free_closures(HashTable **table)
{
	HashTable *closures = *table;
	*table = NULL;
	if (closures) {
		zend_try {
			zend_array_release(closures);
		} zend_end_try();
	}
}

surus_outcome surus_run_unboot(surus_task *task)
{
	surus_isolate *isolate = task->isolate;
	struct surus_application *app = isolate->application;
	SURUS_SET_STACK_LIMITS(task->stack);
	isolate->application = NULL;
	isolate->booted = false;
	surus_fiber_drop_idle(isolate);
	if (surus_snapshot_is_taken(isolate)) {
		/* Its destructors and shutdown functions have run in each request, and it has nothing but memory. */
		if (isolate->had_fatal) {
			surus_snapshot_free_rest(task);
		}
		return SURUS_OK;
	}
	if (app) {
		zend_try {
			surus_application_free(app);
		} zend_end_try();
	}
	free_closures(&isolate->timers);
	free_closures(&isolate->background);
	zend_try {
		surus_conversations_free(isolate);
	} zend_end_try();
	free_closures(&isolate->queued);
	if (isolate->had_fatal) {
		/* Objects of failed requests are left over; their destructors must not run. */
		surus_free_fiber_stacks();
		surus_mark_destructed(&EG(objects_store));
	}
	surus_tables_leave_heap(isolate);
	php_request_shutdown(NULL);
	SG(server_context) = NULL;
	return SURUS_OK;
}
