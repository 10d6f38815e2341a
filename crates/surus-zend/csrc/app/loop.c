/* A script that serves requests in a loop: `while (Surus\\handle_request($handler)) …`
 *
 * The script runs on the task of its boot. Its first call of the function ends the boot and leaves the task; each request is
 * then a call of the handler on a task of its own, where everything of a request is fresh. When the request has ended, Rust
 * resumes the script: the function returns, the script does what it does between requests, and calls it again.
 */
#include "app/loop.h"
#include "app/application.h"
#include "app/boot.h"
#include "connections/cleaning.h"
#include "connections/handle_request_end.h"
#include "task/running.h"
#include "task/state.h"

static bool has_frankenphp;

void surus_engine_serve_in_turn(void)
{
	has_frankenphp = true;
}

void surus_isolate_serve_in_turn(surus_isolate *isolate, const char *starter)
{
	isolate->in_turn = true;
	isolate->starter = starter;
}

bool surus_task_waits(const surus_task *task)
{
	return task->loop.waits;
}

void surus_task_tell(surus_task *task, bool more)
{
	task->loop.waits = false;
	task->loop.over = !more;
	task->cancel = SURUS_CANCEL_NONE;
	task->hard_cancel = false;
	task->was_stopped = false;
	task->refused = 0;
	task->ticks = 0;
}

/* An application of one handler, which each call of the function sets. */
static void begin(surus_isolate *isolate)
{
	struct surus_application *app = ecalloc(1, sizeof *app);
	ZVAL_UNDEF(&app->value);
	ZVAL_UNDEF(&app->errors.value);
	app->loops = true;
	app->count = 1;
	app->routes = ecalloc(1, sizeof *app->routes);
	ZVAL_UNDEF(&app->routes->handler.value);
	ZVAL_UNDEF(&app->routes->pipeline.value);
	isolate->application = app;
	/* Requests start with the script's handlers, even when it has others later. */
	Z_TRY_ADDREF(EG(user_error_handler));
	Z_TRY_ADDREF(EG(user_exception_handler));
	surus_boot_complete(isolate);
}

/* What the script has begun on connections would be in the way of a request that uses them. */
static void end_own_work(surus_task *task)
{
	surus_handles_end(task, false);
	surus_persistent_end(task);
}

/* Returns when a request has ended, or the isolate has to. */
static void serve_one(surus_task *task, zend_fcall_info *info, zend_fcall_info_cache *cache)
{
	if (!task->loop.ran) {
		begin(task->isolate);
		task->loop.ran = true;
	}
	callable *handler = &task->isolate->application->routes->handler;
	ZVAL_COPY(&handler->value, &info->function_name);
	handler->cache = *cache;
	end_own_work(task);
	task->outcome = SURUS_OK;
	task->loop.waits = true;
	surus_task_leave(SURUS_DONE);
	handler = &task->isolate->application->routes->handler;
	zval_ptr_dtor(&handler->value);
	ZVAL_UNDEF(&handler->value);
	/* Its time between two requests has the same limit as a request. */
	zend_set_timeout(task->isolate->time_limit, false);
}

ZEND_FUNCTION(surus_handle_request)
{
	zend_fcall_info info;
	zend_fcall_info_cache cache;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_FUNC(info, cache)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_running;
	const char *name = ZSTR_VAL(EX(func)->common.function_name);
	if (!task || !task->isolate->in_turn) {
		zend_throw_error(NULL, "%s() is for worker mode: serve this script with --mode worker", name);
		RETURN_THROWS();
	}
	if (task->work != SURUS_RUN_BOOT || EG(active_fiber)) {
		zend_throw_error(NULL, "%s() is for the script itself: not within a request, and not in a Fiber", name);
		RETURN_THROWS();
	}
	if (!task->loop.over) {
		serve_one(task, &info, &cache);
	}
	RETURN_BOOL(!task->loop.over);
}

/* Surus\\Runtime\\run_script(string $file, bool $enters): bool. Runs a file as php-fpm runs a script, in the global scope, with nothing above it,
 * and with `$enters` in its folder.
 * False: it has not come to its end. */
ZEND_FUNCTION(surus_run_script)
{
	zend_string *file;
	bool enters;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_PATH_STR(file)
		Z_PARAM_BOOL(enters)
	ZEND_PARSE_PARAMETERS_END();
	zend_execute_data *frame = EG(current_execute_data);
	int options = SG(options);
	zend_file_handle script;
	zend_stream_init_filename_ex(&script, file);
	script.primary_script = true;
	if (!enters) {
		SG(options) |= SAPI_OPTION_NO_CHDIR;
	}
	EG(current_execute_data) = NULL;
	bool good = php_execute_script(&script);
	zend_destroy_file_handle(&script);
	SG(options) = options;
	EG(current_execute_data) = frame;
	if (CG(unclean_shutdown)) {
		zend_bailout(); /* a fatal error: this has been caught */
	}
	RETURN_BOOL(good);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_run_script, 0, 2, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, file, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, enters, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_handle_request, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, handler, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_loop_functions[] = {
	ZEND_NS_NAMED_FE("Surus", handle_request, ZEND_FN(surus_handle_request), arginfo_handle_request)
	ZEND_NS_NAMED_FE("Surus\\Runtime", run_script, ZEND_FN(surus_run_script), arginfo_run_script)
	ZEND_FE_END
};

const zend_function_entry *surus_frankenphp_functions(void)
{
	static const zend_function_entry functions[] = {
		ZEND_NAMED_FE(frankenphp_handle_request, ZEND_FN(surus_handle_request), arginfo_handle_request)
		ZEND_FE_END
	};
	return has_frankenphp ? functions : NULL;
}
