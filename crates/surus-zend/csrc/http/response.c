/* Makes the response from what a handler has returned or printed. */
#include "http/response.h"
#include "http/exceptions.h"
#include "http/json.h"
#include "http/response_class.h"
#include "task/cancel.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_interfaces.h"
#include "Zend/zend_smart_str.h"
#include "ext/json/php_json.h"

/* Output beyond this size is flushed from the base buffer, so that it does not grow up to the memory limit. */
#define COLLECTED ((size_t)256 * 1024)
/* The initial size of a fiber's base buffer, to which a large one is reduced. */
#define BASE_BUFFER ((size_t)16 * 1024)

#define HTML "text/html; charset=UTF-8"
#define JSON "application/json"

void surus_output_begin(surus_task *task)
{
	if (task->output && OG(active) == task->output) {
		return; /* kept from the request before */
	}
	php_output_start_user(NULL, 0, PHP_OUTPUT_HANDLER_STDFLAGS);
	task->output = OG(active);
	if (task->output) {
		/* Not as an argument: a buffer of this size would be allocated at once. */
		task->output->size = COLLECTED;
	}
}

bool surus_output_is_base(const surus_task *task)
{
	return task->output && OG(active) == task->output;
}

/* Prepares the base buffer for the next request. */
static void reset_base(surus_task *task)
{
	task->output->flags &= ~(PHP_OUTPUT_HANDLER_STARTED | PHP_OUTPUT_HANDLER_DISABLED | PHP_OUTPUT_HANDLER_PROCESSED);
	task->output->buffer.used = 0;
	if (task->output->buffer.size > 4 * BASE_BUFFER) {
		task->output->buffer.data = erealloc(task->output->buffer.data, BASE_BUFFER);
		task->output->buffer.size = BASE_BUFFER;
	}
	OG(flags) = PHP_OUTPUT_ACTIVATED;
}

/* php_output_flush() removes its handler from the stack while it writes. A fatal error in it leaves that handler active
 * but not on the stack. PHP 8.4 removes it once more when memory is exhausted. */
void surus_output_mend(surus_task *task)
{
	if (OG(handlers).top < 0) {
		OG(handlers).top = 0;
	}
	php_output_handler **top = zend_stack_top(&OG(handlers));
	if (OG(active) && (!top || *top != OG(active))) {
		zend_stack_push(&OG(handlers), &OG(active));
	} else if (!OG(active)) {
		task->output = NULL;
	}
}

/* A callback has thrown, exited or had a fatal error: its pending output is dropped, as always in PHP, and callbacks
 * below it are not called. */
static void drop_output(surus_task *task)
{
	surus_report_exception();
	OG(running) = NULL;
	zend_try {
		php_output_deactivate();
	} zend_end_try();
	zend_stack_init(&OG(handlers), sizeof(php_output_handler *));
	OG(active) = NULL;
	task->output = NULL;
	OG(flags) = PHP_OUTPUT_ACTIVATED;
}

/* Ends the request's buffers, sends the rest of the output, and keeps the base buffer for the next request. */
void surus_output_end(surus_task *task)
{
	surus_output_mend(task);
	if (surus_output_is_base(task) && task->output->buffer.used == 0 && SG(headers_sent)) {
		reset_base(task);
		return;
	}
	volatile bool whole = false;
	zend_try {
		while (OG(active) && OG(active) != task->output && !EG(exception)) {
			if (php_output_end() == FAILURE) {
				break;
			}
		}
		if (OG(active) && OG(active)->buffer.used > 0 && !EG(exception)) {
			php_output_flush();
		}
		if (!SG(headers_sent) && !EG(exception)) {
			sapi_send_headers();
		}
		whole = !EG(exception);
	} zend_end_try();
	if (!whole) {
		drop_output(task);
	} else if (surus_output_is_base(task)) {
		reset_base(task);
	} else {
		zend_try {
			php_output_end_all();
		} zend_end_try();
		task->output = NULL;
		OG(flags) = PHP_OUTPUT_ACTIVATED;
	}
}

static bool has_content_type(void)
{
	return SG(sapi_headers).mimetype || !SG(sapi_headers).send_default_content_type;
}

static void set_content_type(const char *type)
{
	if (!has_content_type()) {
		sapi_header_line line = {0};
		char text[128];
		line.line_len = (size_t)snprintf(text, sizeof text, "Content-Type: %s", type);
		line.line = text;
		sapi_header_op(SAPI_HEADER_REPLACE, &line);
	}
}

/* Nothing was printed, no header was set, and no function is called before they are sent. */
static bool is_plain(const surus_task *task)
{
	return !SG(headers_sent) && task->output && OG(active) == task->output && task->output->buffer.used == 0
		&& zend_llist_count(&SG(sapi_headers).headers) == 0 && !has_content_type() && Z_TYPE(SG(callback_func)) == IS_UNDEF;
}

/* The common case writes directly to the exchange. */
static void send_body(surus_task *task, zend_long status, const char *type, const char *body, size_t size)
{
	if (is_plain(task)) {
		if (type) {
			surus_rs_content_type(task->exchange, (surus_str){type, strlen(type)});
		}
		surus_rs_send_head(task->exchange, (int)status);
		SG(headers_sent) = 1;
		SG(request_info).no_headers = 1;
		surus_rs_write(task->exchange, body, size);
		return;
	}
	if (!SG(headers_sent)) {
		if (status) {
			SG(sapi_headers).http_response_code = (int)status;
		}
		if (type) {
			set_content_type(type);
		}
	}
	php_output_write(body, size);
}

/* Throws an error that names the handler with the wrong result: at this point no frame of the application is left. */
static void throw_result(surus_task *task, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	zend_string *what = zend_vstrpprintf(0, format, arguments);
	va_end(arguments);
	zend_string *place = surus_handler_place(task);
	zend_throw_error(NULL, "The handler%s%s %s", place ? " at " : "", place ? ZSTR_VAL(place) : "", ZSTR_VAL(what));
	if (place) {
		zend_string_release(place);
	}
	zend_string_release(what);
}

static void throw_json_error(surus_task *task)
{
	zval name, message;
	ZVAL_STRING(&name, "json_last_error_msg");
	ZVAL_UNDEF(&message);
	call_user_function(NULL, NULL, &name, &message, 0, NULL);
	throw_result(task, "returned what has no JSON form: %s", Z_TYPE(message) == IS_STRING ? Z_STRVAL(message) : "unknown");
	zval_ptr_dtor(&message);
	zval_ptr_dtor(&name);
}

static void send_json(surus_task *task, zval *value)
{
	smart_str text = {0};
	if (surus_json(&text, value, 0)) {
		send_body(task, SG(sapi_headers).http_response_code ? SG(sapi_headers).http_response_code : 200, JSON, ZSTR_VAL(text.s), ZSTR_LEN(text.s));
	} else if (!EG(exception)) {
		throw_json_error(task);
	}
	smart_str_free(&text);
}

/* The message names the handler, since no frame of the application is left then; in classic mode, the script. */
static void note_left_out(surus_task *task, surus_str name)
{
	zend_string *place = surus_handler_place(task);
	surus_rs_note_left_out(task->exchange, name, place ? surus_bytes_of(place) : (surus_str){"", 0});
	if (place) {
		zend_string_release(place);
	}
}

void surus_add_header(surus_task *task, surus_str name, surus_str value)
{
	if (!surus_rs_add_header(task->exchange, name, value)) {
		note_left_out(task, name);
	}
}

static bool is_field_name(const zend_string *name)
{
	static const char token[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";
	return name && ZSTR_LEN(name) && strspn(ZSTR_VAL(name), token) == ZSTR_LEN(name);
}

static bool is_content_type(const zend_string *name)
{
	return ZSTR_LEN(name) == 12
		&& (memcmp(ZSTR_VAL(name), "content-type", 12) == 0 || zend_string_equals_literal_ci(name, "content-type"));
}

static void add_response_header(zend_string *name, zval *value)
{
	zend_string *text = zval_get_string(value);
	/* PHP would report an invalid header, but not which one. */
	if (!is_field_name(name) || strcspn(ZSTR_VAL(text), "\r\n") < ZSTR_LEN(text)) {
		note_left_out(surus_running, surus_bytes_of(name));
		zend_string_release(text);
		return;
	}
	smart_str line = {0};
	smart_str_append(&line, name);
	smart_str_appends(&line, ": ");
	smart_str_append(&line, text);
	smart_str_0(&line);
	sapi_header_line header = {.line = ZSTR_VAL(line.s), .line_len = ZSTR_LEN(line.s)};
	sapi_header_op(SAPI_HEADER_ADD, &header);
	smart_str_free(&line);
	zend_string_release(text);
}

/* Sends the head directly to the exchange if PHP has no headers set. */
static bool send_response_head_plain(surus_task *task, const surus_response_view *view)
{
	if (!is_plain(task)) {
		return false;
	}
	bool typed = false;
	zend_string *name;
	zval *value;
	if (Z_TYPE_P(view->headers) == IS_ARRAY) {
		ZEND_HASH_FOREACH_STR_KEY_VAL(Z_ARRVAL_P(view->headers), name, value) {
			if (!name || Z_TYPE_P(value) != IS_STRING) {
				return false;
			}
		} ZEND_HASH_FOREACH_END();
		ZEND_HASH_FOREACH_STR_KEY_VAL(Z_ARRVAL_P(view->headers), name, value) {
			surus_str text = surus_bytes_of(Z_STR_P(value));
			if (is_content_type(name)) {
				typed = true;
				if (!surus_rs_content_type(task->exchange, text)) {
					note_left_out(task, surus_bytes_of(name));
				}
			} else {
				surus_add_header(task, surus_bytes_of(name), text);
			}
		} ZEND_HASH_FOREACH_END();
	}
	if (!typed && Z_TYPE_P(view->body) != IS_NULL) {
		surus_rs_content_type(task->exchange, (surus_str){HTML, sizeof HTML - 1});
	}
	surus_rs_send_head(task->exchange, (int)view->status);
	SG(headers_sent) = 1;
	SG(request_info).no_headers = 1;
	return true;
}

static void send_response_head(surus_task *task, const surus_response_view *view)
{
	if (send_response_head_plain(task, view) || SG(headers_sent)) {
		return;
	}
	SG(sapi_headers).http_response_code = (int)view->status;
	zend_string *name;
	zval *value, *item;
	if (Z_TYPE_P(view->headers) == IS_ARRAY) {
		ZEND_HASH_FOREACH_STR_KEY_VAL(Z_ARRVAL_P(view->headers), name, value) {
			if (!name) {
				continue;
			}
			if (Z_TYPE_P(value) == IS_ARRAY) {
				ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(value), item) {
					add_response_header(name, item);
				} ZEND_HASH_FOREACH_END();
			} else {
				add_response_header(name, value);
			}
		} ZEND_HASH_FOREACH_END();
	}
	if (Z_TYPE_P(view->body) != IS_NULL) {
		set_content_type(HTML);
	}
}

static void send_stream(surus_task *task, zval *items);

static bool has_trailers(const surus_response_view *view)
{
	return Z_TYPE_P(view->trailers) == IS_ARRAY && zend_hash_num_elements(Z_ARRVAL_P(view->trailers)) > 0
		&& Z_TYPE_P(view->body) != IS_NULL;
}

/* The names of trailers are sent before the body. */
static void announce_trailers(const surus_response_view *view)
{
	smart_str line = {0};
	zend_string *name;
	ZEND_HASH_FOREACH_STR_KEY(Z_ARRVAL_P(view->trailers), name) {
		if (is_field_name(name)) {
			smart_str_appends(&line, line.s ? ", " : "Trailer: ");
			smart_str_append(&line, name);
		}
	} ZEND_HASH_FOREACH_END();
	if (line.s && !SG(headers_sent)) {
		smart_str_0(&line);
		sapi_header_line header = {.line = ZSTR_VAL(line.s), .line_len = ZSTR_LEN(line.s)};
		sapi_header_op(SAPI_HEADER_REPLACE, &header);
	}
	smart_str_free(&line);
}

static void send_trailers(surus_task *task, const surus_response_view *view)
{
	/* PHP's buffered output comes before them; after this an error cuts the response off. */
	if (SG(request_info).no_headers) {
		surus_rs_flush(task->exchange);
	} else {
		php_output_flush_all();
		sapi_flush();
	}
	zend_string *name;
	zval *value;
	ZEND_HASH_FOREACH_STR_KEY_VAL(Z_ARRVAL_P(view->trailers), name, value) {
		zval result;
		ZVAL_UNDEF(&result);
		if (!is_field_name(name)) {
			note_left_out(task, name ? surus_bytes_of(name) : (surus_str){"", 0});
			continue;
		}
		if (Z_TYPE_P(value) == IS_OBJECT && zend_is_callable(value, 0, NULL)) {
			call_user_function(NULL, NULL, value, &result, 0, NULL);
			value = &result;
		}
		if (EG(exception)) {
			zval_ptr_dtor(&result);
			return;
		}
		zend_string *text = Z_TYPE_P(value) != IS_UNDEF ? zval_get_string(value) : NULL;
		if (text && !EG(exception) && !surus_rs_add_trailer(task->exchange, surus_bytes_of(name), surus_bytes_of(text))) {
			note_left_out(task, surus_bytes_of(name));
		}
		if (text) {
			zend_string_release(text);
		}
		zval_ptr_dtor(&result);
	} ZEND_HASH_FOREACH_END();
}

static void send_response(surus_task *task, zval *response)
{
	surus_response_view view = surus_response_read(response);
	bool trailers = has_trailers(&view);
	if (trailers) {
		announce_trailers(&view);
	}
	send_response_head(task, &view);
	if (Z_TYPE_P(view.body) == IS_STRING) {
		if (SG(request_info).no_headers) {
			surus_rs_write(task->exchange, Z_STRVAL_P(view.body), Z_STRLEN_P(view.body));
		} else {
			php_output_write(Z_STRVAL_P(view.body), Z_STRLEN_P(view.body));
		}
	} else if (Z_TYPE_P(view.body) == IS_OBJECT || Z_TYPE_P(view.body) == IS_ARRAY) {
		send_stream(task, view.body);
	}
	if (trailers && !EG(exception)) {
		send_trailers(task, &view);
	}
}

void surus_flush(surus_task *task, bool (*flush)(void *exchange))
{
	if (task->fiber && surus_output_is_base(task)) {
		/* The lowest buffer of a fiber is made by Surus: flush it, too. */
		php_output_flush();
	}
	if (!SG(headers_sent)) {
		sapi_send_headers();
	}
	if (!flush(task->exchange)) {
		surus_client_left(task);
	}
}

static void send_item(surus_task *task, zval *item)
{
	zend_string *text = zval_get_string(item);
	if (!EG(exception)) {
		if (SG(request_info).no_headers) {
			if (!surus_rs_write_item(task->exchange, ZSTR_VAL(text), ZSTR_LEN(text))) {
				surus_client_left(task);
			}
		} else {
			php_output_write(ZSTR_VAL(text), ZSTR_LEN(text));
			php_output_flush();
			surus_flush(task, surus_rs_flush_item);
		}
	}
	zend_string_release(text);
}

/* An iterable of strings: one flush per item. */
static void send_stream(surus_task *task, zval *items)
{
	surus_rs_open_stream(task->exchange);
	if (Z_TYPE_P(items) == IS_ARRAY) {
		zval *item;
		ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(items), item) {
			send_item(task, item);
		} ZEND_HASH_FOREACH_END();
		return;
	}
	zend_class_entry *class = Z_OBJCE_P(items);
	zend_object_iterator *iterator = class->get_iterator ? class->get_iterator(class, items, 0) : NULL;
	if (!iterator || EG(exception)) {
		return;
	}
	if (iterator->funcs->rewind) {
		iterator->funcs->rewind(iterator);
	}
	while (!EG(exception) && iterator->funcs->valid(iterator) == SUCCESS && !EG(exception)) {
		zval *item = iterator->funcs->get_current_data(iterator);
		if (EG(exception) || !item) {
			break;
		}
		send_item(task, item);
		if (task->cancel != SURUS_CANCEL_NONE) {
			break;
		}
		iterator->funcs->move_forward(iterator);
	}
	zend_iterator_dtor(iterator);
}

static bool implements(const zend_class_entry *class, const char *lower_name)
{
	zend_class_entry *interface = zend_hash_str_find_ptr(EG(class_table), lower_name, strlen(lower_name));
	return interface && instanceof_function(class, interface);
}

/* A PSR-7 response, read through its interface. */
static void send_psr7(surus_task *task, zval *response)
{
	zval status, headers, body, text;
	ZVAL_UNDEF(&headers);
	ZVAL_UNDEF(&body);
	zend_call_method_with_0_params(Z_OBJ_P(response), Z_OBJCE_P(response), NULL, "getstatuscode", &status);
	if (!EG(exception)) {
		zend_call_method_with_0_params(Z_OBJ_P(response), Z_OBJCE_P(response), NULL, "getheaders", &headers);
	}
	if (!EG(exception)) {
		zend_call_method_with_0_params(Z_OBJ_P(response), Z_OBJCE_P(response), NULL, "getbody", &body);
	}
	if (!EG(exception) && Z_TYPE(body) == IS_OBJECT) {
		zval empty;
		ZVAL_NULL(&empty);
		surus_response_view view = {.status = zval_get_long(&status), .headers = &headers, .body = &empty};
		send_response_head(task, &view);
		ZVAL_STR(&text, zval_get_string(&body));
		if (!EG(exception)) {
			if (SG(request_info).no_headers) {
				surus_rs_write(task->exchange, Z_STRVAL(text), Z_STRLEN(text));
			} else {
				php_output_write(Z_STRVAL(text), Z_STRLEN(text));
			}
		}
		zval_ptr_dtor(&text);
	}
	zval_ptr_dtor(&body);
	zval_ptr_dtor(&headers);
}

void surus_render(surus_task *task, zval *result)
{
	zend_long status = SG(sapi_headers).http_response_code ? SG(sapi_headers).http_response_code : 200;
	switch (Z_TYPE_P(result)) {
		case IS_STRING:
			send_body(task, status, HTML, Z_STRVAL_P(result), Z_STRLEN_P(result));
			break;
		case IS_UNDEF:
		case IS_NULL:
			if (!SG(headers_sent) && OG(active) && OG(active) == task->output && task->output->buffer.used == 0 && status == 200) {
				send_body(task, 204, NULL, "", 0);
			}
			break;
		case IS_LONG:
			if (Z_LVAL_P(result) < 100 || Z_LVAL_P(result) > 599) {
				throw_result(task, "returned " ZEND_LONG_FMT ": an integer must be an HTTP status from 100 to 599", Z_LVAL_P(result));
				break;
			}
			send_body(task, Z_LVAL_P(result), NULL, "", 0);
			break;
		case IS_ARRAY:
			send_json(task, result);
			break;
		case IS_OBJECT: {
			zend_class_entry *class = Z_OBJCE_P(result);
			if (instanceof_function(class, surus_response_class)) {
				send_response(task, result);
			} else if (instanceof_function(class, zend_ce_traversable) && !instanceof_function(class, php_json_serializable_ce)) {
				if (!SG(headers_sent)) {
					set_content_type(HTML);
				}
				send_stream(task, result);
			} else if (implements(class, "psr\\http\\message\\responseinterface")) {
				send_psr7(task, result);
			} else {
				send_json(task, result);
			}
			break;
		}
		default:
			throw_result(task, "returned %s: return a string, array, object, status, Response, iterable or null", zend_zval_type_name(result));
	}
}
