/* Functions in Surus\Internal and Surus\Schema that the PHP classes in the binary call; and Surus\watch(). They only
 * pass data between Rust and these classes. */
#include "app/internal_functions.h"
#include "app/application.h"
#include "fiber/superglobals.h"
#include "http/exceptions.h"
#include "http/json.h"
#include "http/request_class.h"
#include "task/running.h"
#include "task/state.h"

#include "ext/json/php_json.h"

/* For Surus\Schema\OpenApi. */
static ZEND_FUNCTION(surus_schema_document)
{
	zend_string *routes;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(routes)
	ZEND_PARSE_PARAMETERS_END();
	surus_str text;
	if (!surus_rs_openapi(surus_bytes_of(routes), &text)) {
		zend_throw_error(NULL, "%.*s", (int)text.len, text.ptr);
		RETURN_THROWS();
	}
	RETURN_STRINGL(text.ptr, text.len);
}

static ZEND_FUNCTION(surus_schema_page)
{
	ZEND_PARSE_PARAMETERS_NONE();
	surus_str text = surus_rs_openapi_page();
	RETURN_STRINGL(text.ptr, text.len);
}

/* Surus\Internal\pattern_error(string $pattern): ?string */
static ZEND_FUNCTION(surus_pattern_error)
{
	zend_string *pattern;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(pattern)
	ZEND_PARSE_PARAMETERS_END();
	surus_str text;
	if (surus_rs_pattern_error(surus_bytes_of(pattern), &text)) {
		RETURN_STRINGL(text.ptr, text.len);
	}
}

/* Surus\Internal\verifies(string $algorithm, string $first, string $second, string $text, string $signature): bool */
static ZEND_FUNCTION(surus_verifies)
{
	zend_string *algorithm, *first, *second, *text, *signature;
	ZEND_PARSE_PARAMETERS_START(5, 5)
		Z_PARAM_STR(algorithm)
		Z_PARAM_STR(first)
		Z_PARAM_STR(second)
		Z_PARAM_STR(text)
		Z_PARAM_STR(signature)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(surus_rs_verifies(surus_bytes_of(algorithm), surus_bytes_of(first), surus_bytes_of(second), surus_bytes_of(text),
		surus_bytes_of(signature)));
}

/* Surus\Internal\signature(string $algorithm, string $key, string $text): ?string */
static ZEND_FUNCTION(surus_signature)
{
	zend_string *algorithm, *key, *text;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(algorithm)
		Z_PARAM_STR(key)
		Z_PARAM_STR(text)
	ZEND_PARSE_PARAMETERS_END();
	surus_str signature;
	if (surus_rs_sign(surus_bytes_of(algorithm), surus_bytes_of(key), surus_bytes_of(text), &signature)) {
		RETURN_STRINGL(signature.ptr, signature.len);
	}
}

/* Surus\Internal\json(mixed $value, int $flags = 0): string */
static ZEND_FUNCTION(surus_json)
{
	zval *value;
	zend_long flags = 0;
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_ZVAL(value)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(flags)
	ZEND_PARSE_PARAMETERS_END();
	smart_str text = {0};
	if (surus_json(&text, value, (int)flags)) {
		RETURN_NEW_STR(smart_str_extract(&text));
	}
	smart_str_free(&text);
	if (!EG(exception)) {
		zval function, message;
		ZVAL_STRING(&function, "json_last_error_msg");
		ZVAL_UNDEF(&message);
		zend_long code = JSON_G(error_code);
		call_user_function(NULL, NULL, &function, &message, 0, NULL);
		zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), "jsonexception", sizeof "jsonexception" - 1);
		zend_throw_exception(class, Z_TYPE(message) == IS_STRING ? Z_STRVAL(message) : "unknown", code);
		zval_ptr_dtor(&message);
		zval_ptr_dtor(&function);
	}
	RETURN_THROWS();
}

ZEND_FUNCTION(call_handler)
{
	zval *request;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT_OF_CLASS(request, surus_request_class)
	ZEND_PARSE_PARAMETERS_END();
	surus_call_handler(request, return_value);
}

ZEND_FUNCTION(report)
{
	zval *exception;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT_OF_CLASS(exception, zend_ce_throwable)
	ZEND_PARSE_PARAMETERS_END();
	surus_log_exception(Z_OBJ_P(exception));
}

ZEND_FUNCTION(request_header)
{
	zend_string *name;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(name)
	ZEND_PARSE_PARAMETERS_END();
	surus_str value;
	if (surus_running && surus_running->exchange
		&& surus_rs_header(surus_running->exchange, surus_bytes_of(name), &value)) {
		RETURN_STRINGL(value.ptr, value.len);
	}
}

ZEND_FUNCTION(parse_upload)
{
	ZEND_PARSE_PARAMETERS_NONE();
	array_init(return_value);
	if (surus_running && surus_running->exchange) {
		surus_superglobals_build_upload(surus_request_of(surus_running));
	}
	static const int parts[] = {TRACK_VARS_POST, TRACK_VARS_FILES};
	for (size_t i = 0; i < 2; i++) {
		zval *part = &PG(http_globals)[parts[i]], copy;
		if (Z_TYPE_P(part) == IS_ARRAY) {
			ZVAL_COPY(&copy, part);
		} else {
			ZVAL_EMPTY_ARRAY(&copy);
		}
		add_next_index_zval(return_value, &copy);
	}
}

ZEND_FUNCTION(take_tokens)
{
	zend_string *key;
	double rate, burst, cost = 1;
	ZEND_PARSE_PARAMETERS_START(3, 4)
		Z_PARAM_STR(key)
		Z_PARAM_DOUBLE(rate)
		Z_PARAM_DOUBLE(burst)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE(cost)
	ZEND_PARSE_PARAMETERS_END();
	surus_taken taken;
	surus_rs_take_tokens(surus_bytes_of(key), rate, burst, cost, &taken);
	array_init(return_value);
	add_next_index_bool(return_value, taken.allowed);
	add_next_index_long(return_value, taken.remaining);
	add_next_index_double(return_value, taken.retry_after);
	add_next_index_double(return_value, taken.reset_after);
}

/* Surus\Internal\log_enabled(int $severity): bool */
static ZEND_FUNCTION(surus_log_enabled)
{
	zend_long severity;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(severity)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(surus_rs_log_enabled((int)severity));
}

/* Surus\Internal\write_log(int $severity, string $level, string $channel, string $message, string $context): void */
static ZEND_FUNCTION(surus_write_log)
{
	zend_long severity;
	zend_string *level, *channel, *message, *context;
	ZEND_PARSE_PARAMETERS_START(5, 5)
		Z_PARAM_LONG(severity)
		Z_PARAM_STR(level)
		Z_PARAM_STR(channel)
		Z_PARAM_STR(message)
		Z_PARAM_STR(context)
	ZEND_PARSE_PARAMETERS_END();
	surus_log_entry entry = {
		.severity = (int)severity,
		.level = surus_bytes_of(level),
		.channel = surus_bytes_of(channel),
		.message = surus_bytes_of(message),
		.context = surus_bytes_of(context),
	};
	surus_rs_log_entry(surus_current_exchange(), &entry);
}

/* Surus\watch(string ...$paths): void */
ZEND_FUNCTION(surus_watch)
{
	zval *paths;
	uint32_t count;
	ZEND_PARSE_PARAMETERS_START(0, -1)
		Z_PARAM_VARIADIC('*', paths, count)
	ZEND_PARSE_PARAMETERS_END();
	for (uint32_t i = 0; i < count; i++) {
		if (Z_TYPE(paths[i]) != IS_STRING) {
			zend_argument_type_error(i + 1, "must be of type string, %s given", zend_zval_type_name(&paths[i]));
			RETURN_THROWS();
		}
		surus_rs_watch(surus_bytes_of(Z_STR(paths[i])));
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_document, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, routes, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_verifies, 0, 5, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, algorithm, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, first, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, second, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, text, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, signature, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_signature, 0, 3, IS_STRING, 1)
	ZEND_ARG_TYPE_INFO(0, algorithm, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, text, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_json, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, value, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, flags, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_string, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_array, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_log_enabled, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, severity, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_write_log, 0, 5, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, severity, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, level, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, context, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_take_tokens, 0, 3, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, rate, IS_DOUBLE, 0)
	ZEND_ARG_TYPE_INFO(0, burst, IS_DOUBLE, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, cost, IS_DOUBLE, 0, "1.0")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_call_handler, 0, 1, IS_MIXED, 0)
	ZEND_ARG_OBJ_INFO(0, request, Surus\\Internal\\NativeRequest, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_report, 0, 1, IS_VOID, 0)
	ZEND_ARG_OBJ_INFO(0, exception, Throwable, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_request_header, 0, 1, IS_STRING, 1)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_pattern_error, 0, 1, IS_STRING, 1)
	ZEND_ARG_TYPE_INFO(0, pattern, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_watch, 0, 0, IS_VOID, 0)
	ZEND_ARG_VARIADIC_TYPE_INFO(0, paths, IS_STRING, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_internal_functions[] = {
	ZEND_NS_NAMED_FE("Surus\\Schema", document, ZEND_FN(surus_schema_document), arginfo_document)
	ZEND_NS_NAMED_FE("Surus\\Schema", page, ZEND_FN(surus_schema_page), arginfo_string)
	ZEND_NS_NAMED_FE("Surus\\Internal", pattern_error, ZEND_FN(surus_pattern_error), arginfo_pattern_error)
	ZEND_NS_NAMED_FE("Surus\\Internal", verifies, ZEND_FN(surus_verifies), arginfo_verifies)
	ZEND_NS_NAMED_FE("Surus\\Internal", signature, ZEND_FN(surus_signature), arginfo_signature)
	ZEND_NS_NAMED_FE("Surus\\Internal", json, ZEND_FN(surus_json), arginfo_json)
	ZEND_NS_FE("Surus\\Internal", call_handler, arginfo_call_handler)
	ZEND_NS_FE("Surus\\Internal", take_tokens, arginfo_take_tokens)
	ZEND_NS_FE("Surus\\Internal", report, arginfo_report)
	ZEND_NS_NAMED_FE("Surus\\Internal", log_enabled, ZEND_FN(surus_log_enabled), arginfo_log_enabled)
	ZEND_NS_NAMED_FE("Surus\\Internal", write_log, ZEND_FN(surus_write_log), arginfo_write_log)
	ZEND_NS_FE("Surus\\Internal", request_header, arginfo_request_header)
	ZEND_NS_FE("Surus\\Internal", parse_upload, arginfo_array)
	ZEND_NS_NAMED_FE("Surus", watch, ZEND_FN(surus_watch), arginfo_watch)
	ZEND_FE_END
};
