/* The native part of Surus\Http\Request: its parent class Surus\Internal\NativeRequest, a view of the exchange that
 * copies data only when it is read. Its signatures are in stubs/http.stub.php. */
#include "http/request_class.h"
#include "http/arguments.h"
#include "http/body_stream.h"

#include "Zend/zend_smart_str.h"
#include "ext/json/php_json.h"
#include "main/php_memory_streams.h"

zend_class_entry *surus_request_class;

static zend_object_handlers request_handlers;

typedef struct {
	void *exchange; /* NULL once the request has ended */
	zval query;     /* parsed query string, UNDEF until asked for */
	zval form;
	zval body;      /* UNDEF until read */
	zend_object std;
} request_object;

#define REQUEST(object) ((request_object *)((char *)(object) - XtOffsetOf(request_object, std)))

static zend_object *request_create(zend_class_entry *class)
{
	request_object *request = zend_object_alloc(sizeof *request, class);
	request->exchange = NULL;
	ZVAL_UNDEF(&request->query);
	ZVAL_UNDEF(&request->form);
	ZVAL_UNDEF(&request->body);
	zend_object_std_init(&request->std, class);
	object_properties_init(&request->std, class);
	request->std.handlers = &request_handlers;
	return &request->std;
}

static void request_free(zend_object *object)
{
	request_object *request = REQUEST(object);
	zval_ptr_dtor(&request->query);
	zval_ptr_dtor(&request->form);
	zval_ptr_dtor(&request->body);
	zend_object_std_dtor(object);
}

void surus_request_object(zval *to, zend_class_entry *class, void *exchange)
{
	object_init_ex(to, class);
	REQUEST(Z_OBJ_P(to))->exchange = exchange;
}

void surus_request_detach(zval *request)
{
	REQUEST(Z_OBJ_P(request))->exchange = NULL;
}

void *surus_request_exchange(zend_object *request)
{
	return REQUEST(request)->exchange;
}

static request_object *live_request(zval *this)
{
	request_object *request = REQUEST(Z_OBJ_P(this));
	if (!request->exchange) {
		zend_throw_error(NULL, "This request has ended; copy what you need from it while it runs");
		return NULL;
	}
	return request;
}

/* Parses the arguments of (?string $name = null, mixed $default = null). NULL: an exception was thrown. */
static request_object *optional_name(INTERNAL_FUNCTION_PARAMETERS, zend_string **name, zval **fallback)
{
	ZEND_PARSE_PARAMETERS_START(0, 2)
		Z_PARAM_OPTIONAL
		Z_PARAM_STR_OR_NULL(*name)
		Z_PARAM_ZVAL(*fallback)
	ZEND_PARSE_PARAMETERS_END_EX(return NULL);
	return live_request(ZEND_THIS);
}

/* Parses the arguments of (string $name, mixed $default = null). NULL: an exception was thrown. */
static request_object *required_name(INTERNAL_FUNCTION_PARAMETERS, zend_string **name, zval **fallback)
{
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_STR(*name)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(*fallback)
	ZEND_PARSE_PARAMETERS_END_EX(return NULL);
	return live_request(ZEND_THIS);
}

#define INFO_METHOD(name, field)                                  \
	ZEND_METHOD(NativeRequest, name)                                    \
	{                                                             \
		ZEND_PARSE_PARAMETERS_NONE();                             \
		request_object *request = live_request(ZEND_THIS);        \
		if (request) {                                            \
			surus_request_info info;                              \
			surus_rs_request_info(request->exchange, &info);      \
			RETVAL_STRINGL_FAST(info.field.ptr, info.field.len);  \
		}                                                         \
	}

INFO_METHOD(method, method)
INFO_METHOD(uri, uri)
INFO_METHOD(path, path)
INFO_METHOD(queryString, query)

static void parse_into(zval *to, const char *text, size_t length)
{
	array_init(to);
	if (length) {
		sapi_module.treat_data(PARSE_STRING, estrndup(text, length), to);
	}
}

/* All of an array, or one entry with a default. */
static void pick(zval *array, zend_string *name, zval *fallback, zval *return_value)
{
	if (!name) {
		RETURN_COPY(array);
	}
	zval *found = zend_symtable_find(Z_ARRVAL_P(array), name);
	if (found) {
		RETURN_COPY_DEREF(found);
	}
	if (fallback) {
		RETURN_COPY(fallback);
	}
}

void surus_add_field(HashTable *fields, zend_string *name, surus_str value)
{
	zval text, *had = zend_symtable_find(fields, name);
	if (had) {
		/* In a cookie's value a comma is like any other character (RFC 9113, 8.2.3). */
		const char *between = zend_string_equals_literal_ci(name, "cookie") ? "; " : ", ";
		ZVAL_STR(&text, zend_strpprintf(0, "%s%s%.*s", Z_STRVAL_P(had), between, (int)value.len, value.ptr));
	} else {
		ZVAL_STRINGL(&text, value.ptr, value.len);
	}
	zend_symtable_update(fields, name, &text);
}

typedef bool field_at(void *exchange, size_t i, surus_str *name, surus_str *value);

/* All fields by name. */
static void fields(void *exchange, field_at *at, zval *to)
{
	array_init(to);
	surus_str name, value;
	for (size_t i = 0; at(exchange, i, &name, &value); i++) {
		zend_string *key = zend_string_init(name.ptr, name.len, false);
		surus_add_field(Z_ARRVAL_P(to), key, value);
		zend_string_release(key);
	}
}

static zval *query_of(request_object *request)
{
	if (Z_TYPE(request->query) == IS_UNDEF) {
		surus_request_info info;
		surus_rs_request_info(request->exchange, &info);
		parse_into(&request->query, info.query.ptr, info.query.len);
	}
	return &request->query;
}

ZEND_METHOD(NativeRequest, query)
{
	zend_string *name = NULL;
	zval *fallback = NULL;
	request_object *request = optional_name(INTERNAL_FUNCTION_PARAM_PASSTHRU, &name, &fallback);
	if (request) {
		pick(query_of(request), name, fallback, return_value);
	}
}

HashTable *surus_request_query(zval *object)
{
	return Z_ARRVAL_P(query_of(REQUEST(Z_OBJ_P(object))));
}

/* Throws if the body was cut off: the part that was read must not be treated as the whole. The server answers the
 * request, whatever happens to the exception. */
static bool is_whole(const request_object *request)
{
	if (surus_rs_body_failed(request->exchange)) {
		static const char message[] = "The request's body ends before its end";
		surus_throw_http(400, zend_string_init(message, sizeof message - 1, false));
		return false;
	}
	return true;
}

/* False: an exception was thrown. */
static bool read_body(request_object *request)
{
	if (Z_TYPE(request->body) != IS_UNDEF) {
		return is_whole(request);
	}
	smart_str text = {0};
	if (SG(request_info).request_body) {
		/* Building superglobals has already read it. */
		php_stream_rewind(SG(request_info).request_body);
		zend_string *all = php_stream_copy_to_mem(SG(request_info).request_body, PHP_STREAM_COPY_ALL, 0);
		ZVAL_STR(&request->body, all);
		return is_whole(request);
	}
	surus_rs_collect_body(request->exchange);
	char block[16 * 1024];
	size_t size;
	while ((size = surus_rs_read_body(request->exchange, block, sizeof block)) > 0) {
		smart_str_appendl(&text, block, size);
	}
	if (text.s) {
		smart_str_0(&text);
		ZVAL_STR(&request->body, text.s);
	} else {
		ZVAL_EMPTY_STRING(&request->body);
	}
	return is_whole(request);
}

ZEND_METHOD(NativeRequest, body)
{
	ZEND_PARSE_PARAMETERS_NONE();
	request_object *request = live_request(ZEND_THIS);
	if (request && read_body(request)) {
		RETURN_COPY(&request->body);
	}
}

ZEND_METHOD(NativeRequest, read)
{
	zend_long size;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(size)
	ZEND_PARSE_PARAMETERS_END();
	request_object *request = live_request(ZEND_THIS);
	if (!request) {
		return;
	}
	if (size < 1 || size > 16 * 1024 * 1024) {
		zend_argument_value_error(1, "must be from 1 to 16777216");
		RETURN_THROWS();
	}
	zend_string *block = zend_string_alloc((size_t)size, false);
	size_t got = surus_rs_read_body(request->exchange, ZSTR_VAL(block), (size_t)size);
	block = zend_string_truncate(block, got, false);
	ZSTR_VAL(block)[got] = '\0';
	RETVAL_NEW_STR(block);
	if (got == 0) {
		is_whole(request);
	}
}

/* If the body was read before, the stream is in memory; otherwise data is read as the client sends it. */
ZEND_METHOD(NativeRequest, openBody)
{
	ZEND_PARSE_PARAMETERS_NONE();
	request_object *request = live_request(ZEND_THIS);
	if (!request) {
		return;
	}
	if (Z_TYPE(request->body) == IS_UNDEF && !SG(request_info).request_body) {
		surus_body_stream(return_value, Z_OBJ_P(ZEND_THIS));
	} else if (read_body(request)) {
		php_stream *stream = php_stream_memory_open(TEMP_STREAM_READONLY, Z_STR(request->body));
		php_stream_to_zval(stream, return_value);
	}
}

ZEND_METHOD(NativeRequest, trailers)
{
	ZEND_PARSE_PARAMETERS_NONE();
	request_object *request = live_request(ZEND_THIS);
	if (request) {
		fields(request->exchange, surus_rs_trailer_at, return_value);
	}
}

ZEND_METHOD(NativeRequest, json)
{
	ZEND_PARSE_PARAMETERS_NONE();
	request_object *request = live_request(ZEND_THIS);
	if (request && read_body(request)) {
		php_json_decode_ex(return_value, Z_STRVAL(request->body), Z_STRLEN(request->body), PHP_JSON_OBJECT_AS_ARRAY | PHP_JSON_THROW_ON_ERROR, 512);
	}
}

ZEND_METHOD(NativeRequest, form)
{
	zend_string *name = NULL;
	zval *fallback = NULL;
	request_object *request = optional_name(INTERNAL_FUNCTION_PARAM_PASSTHRU, &name, &fallback);
	if (!request) {
		return;
	}
	if (Z_TYPE(request->form) == IS_UNDEF) {
		if (!read_body(request)) {
			return;
		}
		parse_into(&request->form, Z_STRVAL(request->body), Z_STRLEN(request->body));
	}
	pick(&request->form, name, fallback, return_value);
}

ZEND_METHOD(NativeRequest, header)
{
	zend_string *name;
	zval *fallback = NULL;
	request_object *request = required_name(INTERNAL_FUNCTION_PARAM_PASSTHRU, &name, &fallback);
	if (!request) {
		return;
	}
	surus_str value;
	if (surus_rs_header(request->exchange, surus_bytes_of(name), &value)) {
		RETURN_STRINGL(value.ptr, value.len);
	}
	if (fallback) {
		RETURN_COPY(fallback);
	}
}

ZEND_METHOD(NativeRequest, headers)
{
	ZEND_PARSE_PARAMETERS_NONE();
	request_object *request = live_request(ZEND_THIS);
	if (request) {
		fields(request->exchange, surus_rs_header_at, return_value);
	}
}

ZEND_METHOD(NativeRequest, param)
{
	zend_string *wanted;
	zval *fallback = NULL;
	request_object *request = required_name(INTERNAL_FUNCTION_PARAM_PASSTHRU, &wanted, &fallback);
	if (!request) {
		return;
	}
	surus_str name, value;
	for (size_t i = 0; surus_rs_path_parameter(request->exchange, i, &name, &value); i++) {
		if (value.len && name.len == ZSTR_LEN(wanted) && memcmp(name.ptr, ZSTR_VAL(wanted), name.len) == 0) {
			RETURN_STRINGL(value.ptr, value.len);
		}
	}
	if (fallback) {
		RETURN_COPY(fallback);
	}
}

/* Optional parts of the path that were left out have no entry. */
ZEND_METHOD(NativeRequest, params)
{
	ZEND_PARSE_PARAMETERS_NONE();
	request_object *request = live_request(ZEND_THIS);
	if (!request) {
		return;
	}
	array_init(return_value);
	surus_str name, value;
	for (size_t i = 0; surus_rs_path_parameter(request->exchange, i, &name, &value); i++) {
		if (value.len) {
			add_assoc_stringl_ex(return_value, name.ptr, name.len, value.ptr, value.len);
		}
	}
}

ZEND_METHOD(NativeRequest, variables)
{
	ZEND_PARSE_PARAMETERS_NONE();
	request_object *request = live_request(ZEND_THIS);
	if (!request) {
		return;
	}
	array_init(return_value);
	surus_str name, value;
	for (size_t i = 0; surus_rs_server_variable(request->exchange, i, &name, &value); i++) {
		add_assoc_stringl_ex(return_value, name.ptr, name.len, value.ptr, value.len);
	}
}

static void find_variable(request_object *request, surus_str wanted, zval *return_value)
{
	surus_str name, value;
	for (size_t i = 0; surus_rs_server_variable(request->exchange, i, &name, &value); i++) {
		if (name.len == wanted.len && memcmp(name.ptr, wanted.ptr, name.len) == 0) {
			RETURN_STRINGL(value.ptr, value.len);
		}
	}
}

ZEND_METHOD(NativeRequest, server)
{
	zend_string *name;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(name)
	ZEND_PARSE_PARAMETERS_END();
	request_object *request = live_request(ZEND_THIS);
	if (request) {
		find_variable(request, surus_bytes_of(name), return_value);
	}
}

ZEND_METHOD(NativeRequest, ip)
{
	ZEND_PARSE_PARAMETERS_NONE();
	request_object *request = live_request(ZEND_THIS);
	if (request) {
		find_variable(request, (surus_str){"REMOTE_ADDR", 11}, return_value);
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_string, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_array, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_mixed, 0, 0, IS_MIXED, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_pick, 0, 0, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, name, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, default, IS_MIXED, 0, "null")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_named, 0, 1, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, default, IS_MIXED, 0, "null")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_server, 0, 1, IS_STRING, 1)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_read, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, size, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_open, 0, 0, 0)
ZEND_END_ARG_INFO()

static const zend_function_entry request_methods[] = {
	ZEND_ME(NativeRequest, method, arginfo_string, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, uri, arginfo_string, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, path, arginfo_string, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, queryString, arginfo_string, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, query, arginfo_pick, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, form, arginfo_pick, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, json, arginfo_mixed, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, body, arginfo_string, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, header, arginfo_named, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, headers, arginfo_array, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, param, arginfo_named, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, params, arginfo_array, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, variables, arginfo_array, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, read, arginfo_read, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, openBody, arginfo_open, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, trailers, arginfo_array, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, server, arginfo_server, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeRequest, ip, arginfo_string, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

void surus_register_request_class(void)
{
	zend_class_entry entry;
	INIT_NS_CLASS_ENTRY(entry, "Surus\\Internal", "NativeRequest", request_methods);
	surus_request_class = zend_register_internal_class(&entry);
	surus_request_class->ce_flags |= ZEND_ACC_EXPLICIT_ABSTRACT_CLASS | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
	surus_request_class->create_object = request_create;
	memcpy(&request_handlers, &std_object_handlers, sizeof request_handlers);
	request_handlers.offset = XtOffsetOf(request_object, std);
	request_handlers.free_obj = request_free;
	request_handlers.clone_obj = NULL;
}
