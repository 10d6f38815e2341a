/* Functions that scripts expect from their server, as in php-fpm. */
#include "app/functions.h"
#include "http/request_class.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_smart_str.h"
#include "ext/standard/head.h"

#include <ctype.h>

ZEND_FUNCTION(fastcgi_finish_request)
{
	ZEND_PARSE_PARAMETERS_NONE();
	void *exchange = surus_current_exchange();
	if (!exchange) {
		RETURN_FALSE;
	}
	php_output_end_all();
	php_header();
	surus_rs_finish(exchange);
	RETURN_TRUE;
}

/* A function of FrankenPHP that Symfony uses: sends an interim response such as 103 with the headers so far, or the
 * final head. */
ZEND_FUNCTION(headers_send)
{
	zend_long status = 200;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(status)
	ZEND_PARSE_PARAMETERS_END();
	void *exchange = surus_current_exchange();
	if (!exchange || SG(headers_sent)) {
		RETURN_LONG(SAPI_HEADER_SEND_FAILED);
	}
	if (status < 100 || status > 199) {
		SG(sapi_headers).http_response_code = (int)status;
		RETURN_LONG(sapi_send_headers() == SUCCESS ? SAPI_HEADER_SENT_SUCCESSFULLY : SAPI_HEADER_SEND_FAILED);
	}
	smart_str lines = {0};
	zend_llist_position position;
	for (sapi_header_struct *header = zend_llist_get_first_ex(&SG(sapi_headers).headers, &position); header;
		header = zend_llist_get_next_ex(&SG(sapi_headers).headers, &position)) {
		smart_str_appendl(&lines, header->header, header->header_len);
		smart_str_appendc(&lines, '\n');
	}
	smart_str_0(&lines);
	bool sent = surus_rs_interim(exchange, (int)status, lines.s ? surus_bytes_of(lines.s) : (surus_str){"", 0});
	smart_str_free(&lines);
	RETURN_LONG(sent ? SAPI_HEADER_SENT_SUCCESSFULLY : SAPI_HEADER_SEND_FAILED);
}

/* `accept-language` as `Accept-Language`: the spelling of php-fpm, independent of the client's. */
static zend_string *canonical(surus_str name)
{
	zend_string *spelled = zend_string_init(name.ptr, name.len, false);
	bool start = true;
	for (size_t i = 0; i < name.len; i++) {
		if (start) {
			ZSTR_VAL(spelled)[i] = (char)toupper((unsigned char)name.ptr[i]);
		}
		start = name.ptr[i] == '-';
	}
	return spelled;
}

static void add_header(HashTable *headers, surus_str name, surus_str value)
{
	zend_string *key = canonical(name);
	surus_add_field(headers, key, value);
	zend_string_release(key);
}

ZEND_FUNCTION(getallheaders)
{
	ZEND_PARSE_PARAMETERS_NONE();
	surus_task *task = surus_request_of(surus_running);
	if (!task || !task->exchange) {
		RETURN_EMPTY_ARRAY();
	}
	array_init(return_value);
	surus_str name, value;
	for (size_t i = 0; surus_rs_header_at(task->exchange, i, &name, &value); i++) {
		add_header(Z_ARRVAL_P(return_value), name, value);
	}
	/* FastCGI has these two parameters for every request, so under php-fpm scripts get them, if empty. */
	static const surus_str always[] = {{"content-type", 12}, {"content-length", 14}};
	for (size_t i = 0; task->work == SURUS_RUN_CLASSIC && i < 2; i++) {
		if (!surus_rs_header(task->exchange, always[i], &value)) {
			add_header(Z_ARRVAL_P(return_value), always[i], (surus_str){"", 0});
		}
	}
}

/* The headers that the script has set; for each name the last one, as in PHP's CGI. */
ZEND_FUNCTION(apache_response_headers)
{
	ZEND_PARSE_PARAMETERS_NONE();
	array_init(return_value);
	zend_llist_position position;
	for (sapi_header_struct *header = zend_llist_get_first_ex(&SG(sapi_headers).headers, &position); header;
		header = zend_llist_get_next_ex(&SG(sapi_headers).headers, &position)) {
		const char *end = header->header + header->header_len;
		const char *colon = memchr(header->header, ':', header->header_len);
		size_t name = colon ? (size_t)(colon - header->header) : 0;
		while (name > 0 && (header->header[name - 1] == ' ' || header->header[name - 1] == '\t')) {
			name--;
		}
		if (name == 0) {
			continue;
		}
		const char *value = colon + 1;
		while (value < end && (*value == ' ' || *value == '\t')) {
			value++;
		}
		add_assoc_stringl_ex(return_value, header->header, name, value, (size_t)(end - value));
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_array, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_bool, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_headers_send, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, status, IS_LONG, 0, "200")
ZEND_END_ARG_INFO()

const zend_function_entry surus_functions[] = {
	ZEND_FE(fastcgi_finish_request, arginfo_bool)
	ZEND_FE(headers_send, arginfo_headers_send)
	ZEND_FE(getallheaders, arginfo_array)
	ZEND_FALIAS(apache_request_headers, getallheaders, arginfo_array)
	ZEND_FE(apache_response_headers, arginfo_array)
	ZEND_FE_END
};
