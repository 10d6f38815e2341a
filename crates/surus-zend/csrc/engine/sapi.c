/* The server API module: how PHP's output, headers, request data and log reach Rust. */
#include "engine/sapi.h"
#include "app/application.h"
#include "app/context.h"
#include "app/conversation.h"
#include "app/deferred.h"
#include "app/functions.h"
#include "app/in_process.h"
#include "app/internal_functions.h"
#include "app/jobs.h"
#include "app/loop.h"
#include "app/offload.h"
#include "app/queue.h"
#include "app/timers.h"
#include "app/channels.h"
#include "app/websocket.h"
#include "connections/cleaning.h"
#include "connections/connection_functions.h"
#include "connections/handles.h"
#include "connections/soap_client.h"
#include "connections/in_use.h"
#include "connections/mysqlnd_wiped.h"
#include "connections/redis_talk.h"
#include "engine/restrictions.h"
#include "fiber/superglobals.h"
#include "http/form_files.h"
#include "http/request_class.h"
#include "http/request_info.h"
#include "http/response.h"
#include "http/response_class.h"
#include "isolate/isolate.h"
#include "os/children.h"
#include "os/process_functions.h"
#include "postgres/flows.h"
#include "postgres/functions.h"
#include "state/apcu.h"
#include "state/functions.h"
#include "task/cancel.h"
#include "task/interrupt.h"
#include "task/overflow.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_observer.h"
#include "Zend/zend_signal.h"

static int sapi_startup_module(sapi_module_struct *module)
{
	return php_module_startup(module, NULL);
}

/* If an output callback starts a buffer, PHP frees the stack of buffers and raises a fatal error. When a shutdown
 * function or a destructor then starts a buffer, PHP up to 8.3 uses the freed stack as if it had room. */
static void mend_output_stack(void)
{
	if (!OG(handlers).elements) {
		OG(handlers).top = OG(handlers).max = 0;
	}
}

/* PHP answers a fatal error with status 500, but with 200 when display_errors is on. With --dev (the value at the
 * server's start, not a script's ini_set()), Surus answers 500, too. */
static void on_error(int type, zend_string *file, uint32_t line, zend_string *message)
{
	const int fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;
	bool handled = Z_TYPE(EG(user_error_handler)) != IS_UNDEF && (type & EG(user_error_handler_error_reporting) & (E_USER_ERROR | E_RECOVERABLE_ERROR));
	mend_output_stack();
	if (!(type & fatal) || handled || !surus_running) {
		return;
	}
	surus_work work = surus_request_of(surus_running)->work;
	if (work != SURUS_RUN_CLASSIC && work != SURUS_RUN_CALL) {
		return;
	}
	if (!SG(headers_sent) && SG(sapi_headers).http_response_code == 200 && zend_ini_long("display_errors", sizeof "display_errors" - 1, 1)) {
		SG(sapi_headers).http_response_code = 500;
	}
}

static PHP_MINIT_FUNCTION(surus)
{
	surus_restrictions_hold();
	zend_observer_error_register(on_error);
	surus_register_request_class();
	surus_register_response_class();
	surus_register_in_process();
	if (zend_register_functions(NULL, surus_connection_functions, NULL, type) != SUCCESS) {
		return FAILURE;
	}
	surus_register_connection_in_use();
	if (zend_register_functions(NULL, surus_loop_functions, NULL, type) != SUCCESS) {
		return FAILURE;
	}
	if (zend_register_functions(NULL, surus_job_functions, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_deferred_functions, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_context_functions, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_timer_functions, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_offload_functions, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_postgres_functions, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_postgres_flows, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_queue_functions, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_websocket_functions, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_channel_functions, NULL, type) != SUCCESS
		|| zend_register_functions(NULL, surus_conversation_functions, NULL, type) != SUCCESS) {
		return FAILURE;
	}
	const zend_function_entry *frankenphp = surus_frankenphp_functions();
	if (frankenphp) {
		/* Where an extension has it already, PHP says so and goes on. */
		zend_register_functions(NULL, frankenphp, NULL, type);
	}
	if (zend_register_functions(NULL, surus_state_functions, NULL, type) == FAILURE) {
		return FAILURE;
	}
	return zend_register_functions(NULL, surus_internal_functions, NULL, type);
}

static zend_module_entry surus_module = {
	STANDARD_MODULE_HEADER, "surus", surus_functions, PHP_MINIT(surus), NULL, NULL, NULL, NULL, "0.1.0", STANDARD_MODULE_PROPERTIES
};

static int sapi_activate_request(void)
{
	surus_task *task = surus_request_of(surus_running);
	if (task) {
		surus_request_info info;
		surus_rs_request_info(task->exchange, &info);
		SG(request_info).proto_num = info.proto_num;
		surus_fill_authorization(&info);
	}
	surus_adopt_body();
	return SUCCESS;
}

static size_t sapi_ub_write(const char *data, size_t size)
{
	surus_task *task = surus_request_of(surus_running);
	if (!task) {
		return size;
	}
	surus_need_stack();
	if (!surus_rs_write(task->exchange, data, size)) {
		surus_client_left(task);
		return 0;
	}
	return size;
}

static void sapi_flush_output(void *context)
{
	surus_task *task = surus_request_of(surus_running);
	if (!context || !task) {
		return;
	}
	surus_flush(task, surus_rs_flush);
}

/* `Status: 404 Not Found` is CGI's way to set the status. header('HTTP/1.1 …') has precedence, as under php-fpm. */
static bool is_status(const sapi_header_struct *header)
{
	return header->header_len > 7 && zend_binary_strncasecmp(header->header, header->header_len, "Status:", 7, 7) == 0;
}

static int sapi_send_all_headers(sapi_headers_struct *headers)
{
	surus_task *task = surus_request_of(surus_running);
	if (!task) {
		return SAPI_HEADER_SENT_SUCCESSFULLY;
	}
	int status = headers->http_response_code ? headers->http_response_code : 200;
	zend_llist_position position;
	for (sapi_header_struct *header = zend_llist_get_first_ex(&headers->headers, &position); header;
		header = zend_llist_get_next_ex(&headers->headers, &position)) {
		const char *colon = memchr(header->header, ':', header->header_len);
		if (!colon) {
			continue;
		}
		const char *value = colon + 1;
		const char *end = header->header + header->header_len;
		while (value < end && (*value == ' ' || *value == '\t')) {
			value++;
		}
		if (is_status(header)) {
			int wanted = atoi(value);
			if (!headers->http_status_line && wanted >= 200 && wanted <= 999) {
				status = wanted;
			}
			continue;
		}
		if (status == 304 && header->header_len > 13 && zend_binary_strncasecmp(header->header, 13, "Content-Type:", 13, 13) == 0) {
			continue; /* there is no content */
		}
		surus_add_header(task, (surus_str){header->header, (size_t)(colon - header->header)},
			(surus_str){value, (size_t)(end - value)});
	}
	if (headers->send_default_content_type && status != 304) {
		char *type = sapi_get_default_content_type();
		surus_rs_content_type(task->exchange, (surus_str){type, strlen(type)});
		efree(type);
	}
	surus_rs_send_head(task->exchange, status);
	return SAPI_HEADER_SENT_SUCCESSFULLY;
}

static size_t sapi_read_body(char *buffer, size_t size)
{
	surus_task *task = surus_request_of(surus_running);
	size_t have = 0;
	/* The caller treats a short block as the end of the body. */
	while (task && have < size) {
		size_t got = surus_rs_read_body(task->exchange, buffer + have, size - have);
		if (got == 0) {
			break;
		}
		have += got;
	}
	return have;
}

static char *sapi_read_cookie_header(void)
{
	surus_task *task = surus_request_of(surus_running);
	if (!task) {
		return NULL;
	}
	surus_request_info info;
	surus_rs_request_info(task->exchange, &info);
	return (char *)info.cookie.ptr;
}

static void register_variable(surus_str name, surus_str value, zval *track)
{
	size_t length = value.len;
	char *copy = estrndup(value.ptr, value.len);
	if (sapi_module.input_filter(PARSE_SERVER, name.ptr, &copy, value.len, &length)) {
		php_register_variable_safe(name.ptr, copy, length, track);
	}
	efree(copy);
}

static void sapi_register_variables(zval *track)
{
	surus_task *task = surus_request_of(surus_running);
	if (!task) {
		return;
	}
	/* As under php-fpm: the request's variables, added later, overwrite these. */
	php_import_environment_variables(track);
	surus_str name, value;
	for (size_t i = 0; surus_rs_server_variable(task->exchange, i, &name, &value); i++) {
		register_variable(name, value, track);
	}
	/* The password was not checked: this is the client's claim, like $remote_user in nginx. */
	const char *user = SG(request_info).auth_user ? SG(request_info).auth_user : "";
	register_variable((surus_str){"REMOTE_USER", 11}, (surus_str){user, strlen(user)}, track);
}

static void sapi_log(const char *message, int level)
{
	const surus_task *task = surus_running;
	char text[1024];
	surus_need_stack();
	if (task && task->fiber && task->isolate->fibers > 1 && strstr(message, "Allowed memory size of ")) {
		int length = snprintf(text, sizeof text,
			"%s. All requests of the application share this memory: raise memory_limit, or lower max_requests_in_flight", message);
		if (length > 0 && (size_t)length < sizeof text) {
			message = text;
		}
	}
	surus_rs_log(level < 0 ? 3 : level, (surus_str){message, strlen(message)});
}

sapi_module_struct surus_sapi_module = {
	.name = SURUS_STARTUP_NAME,
	.pretty_name = "Surus",
	.startup = sapi_startup_module,
	.shutdown = php_module_shutdown_wrapper,
	.activate = sapi_activate_request,
	.ub_write = sapi_ub_write,
	.flush = sapi_flush_output,
	.sapi_error = php_error,
	.send_headers = sapi_send_all_headers,
	.read_post = sapi_read_body,
	.read_cookies = sapi_read_cookie_header,
	.register_server_variables = sapi_register_variables,
	.log_message = sapi_log,
	.phpinfo_as_text = 0,
	.executable_location = "/proc/self/exe", /* PHP_BINARY, as php-fpm's is php-fpm */
	SURUS_SAPI_EXTRA
};

/* Settings that PHP reads while it starts; files in the ini folder cannot change them. */
static const char fixed_ini[] =
	"enable_dl=0\n"
	"html_errors=0\n"
	"register_argc_argv=0\n"
	"implicit_flush=0\n";

/* The value of PHP_SAPI in scripts. */
static char *final_name = "surus";

void surus_sapi_call(char *name)
{
	surus_sapi_module.name = name;
	final_name = name;
}

static void rename_sapi(char *name)
{
	sapi_module.name = name;
	zend_constant *constant = zend_hash_str_find_ptr(EG(zend_constants), "PHP_SAPI", sizeof "PHP_SAPI" - 1);
	if (constant) {
		/* At this point OPcache's zend_string_init_interned makes an ordinary string, which the first script that uses
		 * the constant would free. */
		zend_string *value = zend_string_init(name, strlen(name), true);
		zend_string_hash_val(value);
		GC_ADD_FLAGS(value, IS_STR_INTERNED | IS_STR_PERMANENT);
		ZVAL_INTERNED_STR(&constant->value, value);
	}
}

int surus_engine_start(const char *ini, char *error, size_t error_size)
{
	size_t size = sizeof fixed_ini + strlen(ini) + 1;
	char *entries = malloc(size);
	if (!entries) {
		snprintf(error, error_size, "out of memory");
		return -1;
	}
	snprintf(entries, size, "%s%s", fixed_ini, ini);
#ifdef ZEND_SIGNALS
	zend_signal_startup();
#endif
	bool is_server = surus_sapi_module.ub_write == sapi_ub_write; /* not the command line */
	if (is_server) {
		surus_process_functions_prepare();
	}
	sapi_startup(&surus_sapi_module); /* forgets ini_entries */
	surus_sapi_module.ini_entries = entries;
	if (php_module_startup(&surus_sapi_module, &surus_module) != SUCCESS) {
		snprintf(error, error_size, "PHP did not start; its messages are above");
		return -1;
	}
#ifdef ZEND_SIGNALS
	/* PHP's signal handling is made for processes that serve one request at a time. */
	SIGG(reset) = 0;
#endif
	if (is_server) {
		surus_process_functions_start();
	}
	if (is_server || surus_scripts_have_tasks) {
		surus_persistent_start();
		surus_handles_start();
		surus_soap_client_start();
	}
	surus_mysqlnd_start();
	surus_redis_talk_start();
	surus_superglobals_start();
	surus_form_files_start();
	surus_application_start();
	/* OPcache has checked the startup name; from here on scripts see the final one. */
	rename_sapi(final_name);
	if (is_server) {
		surus_apcu_start();
	}
	surus_interrupts_start();
	surus_overflow_start();
	if (surus_isolates_start(error, error_size) != 0) {
		return -1;
	}
	return surus_restrictions_apply(error, error_size);
}

void surus_engine_enter_worker(uint64_t slice_us)
{
	surus_overflow_enter_worker();
	if (surus_sapi_module.ub_write == sapi_ub_write) {
		surus_children_enter_worker();
	}
	surus_interrupts_enter_worker(slice_us);
}

const char *surus_php_version(void)
{
	return PHP_VERSION;
}
