/* Runs PHP like its command line program, in an isolate: for `surus php`, and for PHP's own tests. Differences from a
 * request of a server: output goes straight to standard output, messages go to standard error, there is no HTTP head,
 * and STDIN, STDOUT and STDERR exist. Modelled on sapi/cli/php_cli.c. */
#include "engine/command_line.h"
#include "app/deferred.h"
#include "app/jobs.h"
#include "engine/sapi.h"
#include "isolate/isolate.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_virtual_cwd.h"
#include "ext/standard/dl.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

ZEND_FUNCTION(dl);

static void after_fork(void)
{
	surus_forked = true;
}

/* The server's callbacks: a request that a script sends to an application in the same process is answered with them. */
static sapi_module_struct server;

static bool is_request(void)
{
	return surus_running && surus_running->fiber;
}

/* PHP's output during startup does not pass here; requests that the engine runs to inspect itself print nothing. */
static bool is_quiet(void)
{
	return !surus_running || !surus_running->script || surus_running->script->quiet;
}

static size_t write_output(const char *data, size_t size)
{
	if (is_request()) {
		return server.ub_write(data, size);
	}
	size_t done = 0;
	fflush(stdout);
	while (!is_quiet() && done < size) {
		ssize_t wrote = write(STDOUT_FILENO, data + done, size - done);
		if (wrote < 0 && errno == EAGAIN) {
			struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
			poll(&ready, 1, -1);
		} else if (wrote < 0 && errno != EINTR) {
			EG(exit_status) = 255;
			php_handle_aborted_connection();
			return done;
		} else if (wrote > 0) {
			done += (size_t)wrote;
		}
	}
	return size;
}

/* PHP's output during startup is in libc's buffer, and must appear before the script's output. */
static void flush_output(void *context)
{
	if (is_request()) {
		server.flush(context);
		return;
	}
	fflush(stdout);
}

static int handle_header(sapi_header_struct *header, sapi_header_op_enum operation, sapi_headers_struct *headers)
{
	return is_request() ? SAPI_HEADER_ADD : 0;
}

static int send_headers(sapi_headers_struct *headers)
{
	return is_request() ? server.send_headers(headers) : SAPI_HEADER_SENT_SUCCESSFULLY;
}

static void send_header(sapi_header_struct *header, void *context)
{
}

static char *read_cookies(void)
{
	return is_request() ? server.read_cookies() : NULL;
}

static size_t read_post(char *buffer, size_t size)
{
	return is_request() ? server.read_post(buffer, size) : 0;
}

static void log_message(const char *message, int level)
{
	fprintf(stderr, "%s\n", message);
}

static void register_one(const char *name, const char *value, zval *track)
{
	char *copy = (char *)value;
	size_t length = strlen(value);
	if (sapi_module.input_filter(PARSE_SERVER, name, &copy, length, &length)) {
		php_register_variable(name, copy, track);
	}
}

static void register_variables(zval *track)
{
	if (is_request()) {
		server.register_server_variables(track);
		return;
	}
	const surus_invocation *script = surus_running ? surus_running->script : NULL;
	const char *self = script && script->argc ? script->argv[0] : "";
	const char *file = script && script->file ? script->file : "";
	php_import_environment_variables(track);
	register_one("PHP_SELF", self, track);
	register_one("SCRIPT_NAME", self, track);
	register_one("SCRIPT_FILENAME", file, track);
	register_one("PATH_TRANSLATED", file, track);
	register_one("DOCUMENT_ROOT", "", track);
}

static void ini_defaults(HashTable *configuration)
{
	zval value;
	ZVAL_NEW_STR(&value, zend_string_init("1", 1, 1));
	zend_hash_str_update(configuration, "display_errors", sizeof "display_errors" - 1, &value);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_dl, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, extension_filename, IS_STRING, 0)
ZEND_END_ARG_INFO()

static const zend_function_entry functions[] = {ZEND_FE(dl, arginfo_dl) ZEND_FE_END};

/* After each internal function the VM checks whether it was interrupted. Requesting the next interrupt in the interrupt
 * function itself would make no progress: at the entry of a function the VM would be interrupted again and again. */
static void execute_internal_then_switch(zend_execute_data *frame, zval *value)
{
	execute_internal(frame, value);
	if (surus_running && surus_running->switches) {
		zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
	}
}

/* A copy of the process would have the tasks of its parent, and nothing that resumes them. */
static zif_handler fork_process;

static ZEND_NAMED_FUNCTION(fork_without_tasks)
{
	if (surus_running && surus_request_of(surus_running)->jobs) {
		zend_throw_error(NULL, "%s() while tasks run: await them before", ZSTR_VAL(execute_data->func->common.function_name));
		RETURN_THROWS();
	}
	fork_process(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void guard_fork(void)
{
	zend_function *function = zend_hash_str_find_ptr(CG(function_table), "pcntl_fork", sizeof "pcntl_fork" - 1);
	if (function && function->type == ZEND_INTERNAL_FUNCTION) {
		fork_process = function->internal_function.handler;
		function->internal_function.handler = fork_without_tasks;
	}
}

int surus_command_line_start(const surus_command_line *options, char *error, size_t error_size)
{
	surus_sapi_call("cli");
	sapi_module_struct *module = &surus_sapi_module;
	server = *module;
	module->pretty_name = "Command Line Interface";
	module->activate = NULL;
	module->ub_write = write_output;
	module->flush = flush_output;
	module->header_handler = handle_header;
	module->send_headers = send_headers;
	module->send_header = send_header;
	module->read_post = read_post;
	module->read_cookies = read_cookies;
	module->register_server_variables = register_variables;
	module->log_message = log_message;
	module->ini_defaults = ini_defaults;
	module->additional_functions = functions;
	module->phpinfo_as_text = 1;
	module->php_ini_ignore_cwd = 1;
	module->php_ini_ignore = options->no_ini;
	module->php_ini_path_override = (char *)options->ini_path;
	module->executable_location = (char *)options->executable;
	surus_scripts_have_tasks = options->tasks;
	pthread_atfork(NULL, NULL, after_fork);
	int result = surus_engine_start(options->ini, error, error_size);
	/* After startup, which resets it. Compiled code depends on it: nothing of the script is compiled yet. */
	zend_execute_internal = execute_internal_then_switch;
	if (result == 0) {
		guard_fork();
	}
	return result;
}

static php_stream *standard_stream(const char *path, const char *mode, const char *constant)
{
	php_stream *stream = php_stream_open_wrapper_ex(path, mode, 0, NULL, NULL);
	if (!stream) {
		return NULL;
	}
	stream->flags |= PHP_STREAM_FLAG_NO_RSCR_DTOR_CLOSE;
	zend_constant entry;
	php_stream_to_zval(stream, &entry.value);
	ZEND_CONSTANT_SET_FLAGS(&entry, CONST_CS, 0);
	entry.name = zend_string_init_interned(constant, strlen(constant), 0);
	zend_register_constant(&entry);
	return stream;
}

static bool open_script(zend_file_handle *handle, const surus_invocation *script)
{
	FILE *file = script->file ? VCWD_FOPEN(script->file, "rb") : stdin;
	if (!file) {
		return false;
	}
	zend_stream_init_fp(handle, file, script->argv[0]);
	handle->primary_script = true;
	return true;
}

static void evaluate(const char *code, char *name)
{
	if (code) {
		zend_eval_string_ex(code, NULL, name, true);
	}
}

/* -R, -F, -B and -E: the line is in $argn, its number in $argi. */
static void execute_for_lines(const surus_invocation *script, php_stream *input)
{
	evaluate(script->begin, "Command line begin code");
	char *line;
	zend_long number = 0;
	while (input && EG(exit_status) == SUCCESS && (line = php_stream_gets(input, NULL, 0))) {
		size_t length = strlen(line);
		while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) {
			length--;
		}
		zval value;
		ZVAL_STRINGL(&value, line, length);
		zend_hash_str_update(&EG(symbol_table), "argn", sizeof "argn" - 1, &value);
		ZVAL_LONG(&value, ++number);
		zend_hash_str_update(&EG(symbol_table), "argi", sizeof "argi" - 1, &value);
		efree(line);
		zend_file_handle handle;
		if (script->each) {
			evaluate(script->each, "Command line run code");
		} else if (open_script(&handle, script)) {
			CG(skip_shebang) = 1;
			php_execute_script(&handle);
			zend_destroy_file_handle(&handle);
		} else {
			EG(exit_status) = 1;
		}
	}
	evaluate(script->end, "Command line end code");
}

static void execute(const surus_invocation *script, zend_file_handle *handle)
{
	php_stream *input = NULL;
	if ((script->file || script->code || script->lines) && !script->quiet && !script->lint) {
		input = standard_stream("php://stdin", "rb", "STDIN");
		standard_stream("php://stdout", "wb", "STDOUT");
		standard_stream("php://stderr", "wb", "STDERR");
	}
	if (script->lines) {
		execute_for_lines(script, input);
	} else if (script->code) {
		evaluate(script->code, "Command line code");
	} else if (!script->lint) {
		php_execute_script(handle);
	} else if (php_lint_script(handle) == SUCCESS) {
		zend_printf("No syntax errors detected in %s\n", script->argv[0]);
		EG(exit_status) = 0;
	} else {
		zend_printf("Errors parsing %s\n", script->argv[0]);
		EG(exit_status) = 255;
	}
}

surus_outcome surus_run_script(surus_task *task)
{
	const surus_invocation *script = task->script;
	SG(options) |= SAPI_OPTION_NO_CHDIR;
	SG(sapi_headers).http_response_code = 0; /* there is no response */
	SG(options) |= SAPI_OPTION_NO_CHDIR;
	sapi_request_info *request = &SG(request_info);
	request->argc = script->argc;
	request->argv = script->argv;
	char real_path[MAXPATHLEN];
	bool has_path = script->file && VCWD_REALPATH(script->file, real_path);
	request->path_translated = has_path ? real_path : script->argv[0];

	zend_file_handle handle = {0};
	bool by_lines = script->lines && !script->file;
	if (!script->code && !by_lines && !open_script(&handle, script)) {
		fprintf(stdout, "Could not open input file: %s\n", script->file);
		fflush(stdout);
		EG(exit_status) = 1;
		return SURUS_OK;
	}
	SURUS_SET_STACK_LIMITS(task->stack);
	if (php_request_startup() == FAILURE) {
		php_request_shutdown(NULL);
		EG(exit_status) = 1;
		return SURUS_FATAL;
	}
	SURUS_SET_STACK_LIMITS(task->stack);
	virtual_cwd_deactivate();
	zend_first_try {
		CG(skip_shebang) = 1;
		zend_is_auto_global(ZSTR_KNOWN(ZEND_STR_AUTOGLOBAL_SERVER));
		PG(during_request_startup) = 0;
		task->switches = script->switches;
		if (task->switches) {
			zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
		}
		execute(script, &handle);
	} zend_end_try();
	if (handle.filename) {
		zend_destroy_file_handle(&handle);
	}
	surus_deferred_end_code(task);
	if (CG(unclean_shutdown) && EG(exit_status) == 0) {
		EG(exit_status) = 255; /* a task was lost */
	}
	php_request_shutdown(NULL);
	return SURUS_OK;
}

void surus_task_set_script(surus_task *task, const surus_invocation *script)
{
	task->script = script;
}

int surus_task_exit_status(surus_task *task)
{
	return *(int *)surus_isolate_peek(task->isolate, &EG(exit_status));
}
