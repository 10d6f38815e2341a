/* The native part of Surus\Http\Response: its parent class Surus\Internal\NativeResponse. Its signatures are in
 * stubs/http.stub.php. */
#include "http/response_class.h"

zend_class_entry *surus_response_class;

static zend_object_handlers response_handlers;

typedef struct {
	zend_long status;
	zval body;
	zval headers;
	zval trailers;
	zend_object std;
} response_object;

#define RESPONSE(object) ((response_object *)((char *)(object) - XtOffsetOf(response_object, std)))

static zend_object *response_create(zend_class_entry *class)
{
	response_object *response = zend_object_alloc(sizeof *response, class);
	response->status = 200;
	ZVAL_NULL(&response->body);
	ZVAL_UNDEF(&response->headers);
	ZVAL_UNDEF(&response->trailers);
	zend_object_std_init(&response->std, class);
	object_properties_init(&response->std, class);
	response->std.handlers = &response_handlers;
	return &response->std;
}

static void response_free(zend_object *object)
{
	response_object *response = RESPONSE(object);
	zval_ptr_dtor(&response->body);
	zval_ptr_dtor(&response->headers);
	zval_ptr_dtor(&response->trailers);
	zend_object_std_dtor(object);
}

static HashTable *response_gc(zend_object *object, zval **table, int *count)
{
	zend_get_gc_buffer *buffer = zend_get_gc_buffer_create();
	zend_get_gc_buffer_add_zval(buffer, &RESPONSE(object)->body);
	zend_get_gc_buffer_add_zval(buffer, &RESPONSE(object)->headers);
	zend_get_gc_buffer_add_zval(buffer, &RESPONSE(object)->trailers);
	zend_get_gc_buffer_use(buffer, table, count);
	return zend_std_get_properties(object);
}

surus_response_view surus_response_read(zval *object)
{
	response_object *response = RESPONSE(Z_OBJ_P(object));
	return (surus_response_view){
		.status = response->status, .headers = &response->headers, .body = &response->body, .trailers = &response->trailers
	};
}

ZEND_METHOD(NativeResponse, __construct)
{
	zval *body = NULL, *headers = NULL, *trailers = NULL;
	zend_long status = 200;
	ZEND_PARSE_PARAMETERS_START(0, 4)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(body)
		Z_PARAM_LONG(status)
		Z_PARAM_ARRAY(headers)
		Z_PARAM_ARRAY(trailers)
	ZEND_PARSE_PARAMETERS_END();
	if (status < 100 || status > 599) {
		zend_argument_value_error(2, "must be an HTTP status from 100 to 599, " ZEND_LONG_FMT " given", status);
		RETURN_THROWS();
	}
	if (body && Z_TYPE_P(body) != IS_NULL && Z_TYPE_P(body) != IS_STRING && !zend_is_iterable(body)) {
		zend_argument_type_error(1, "must be of type string|iterable|null, %s given", zend_zval_type_name(body));
		RETURN_THROWS();
	}
	response_object *response = RESPONSE(Z_OBJ_P(ZEND_THIS));
	response->status = status;
	if (body) {
		zval_ptr_dtor(&response->body);
		ZVAL_COPY(&response->body, body);
	}
	if (headers) {
		zval_ptr_dtor(&response->headers);
		ZVAL_COPY(&response->headers, headers);
	}
	if (trailers) {
		zval_ptr_dtor(&response->trailers);
		ZVAL_COPY(&response->trailers, trailers);
	}
}

ZEND_METHOD(NativeResponse, status)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG(RESPONSE(Z_OBJ_P(ZEND_THIS))->status);
}

ZEND_METHOD(NativeResponse, body)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_COPY(&RESPONSE(Z_OBJ_P(ZEND_THIS))->body);
}

ZEND_METHOD(NativeResponse, headers)
{
	ZEND_PARSE_PARAMETERS_NONE();
	zval *headers = &RESPONSE(Z_OBJ_P(ZEND_THIS))->headers;
	if (Z_TYPE_P(headers) == IS_ARRAY) {
		RETURN_COPY(headers);
	}
	RETURN_EMPTY_ARRAY();
}

ZEND_METHOD(NativeResponse, trailers)
{
	ZEND_PARSE_PARAMETERS_NONE();
	zval *trailers = &RESPONSE(Z_OBJ_P(ZEND_THIS))->trailers;
	if (Z_TYPE_P(trailers) == IS_ARRAY) {
		RETURN_COPY(trailers);
	}
	RETURN_EMPTY_ARRAY();
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_int, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_mixed, 0, 0, IS_MIXED, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_array, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_INFO_EX(arginfo_construct, 0, 0, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, body, IS_MIXED, 0, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, status, IS_LONG, 0, "200")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, headers, IS_ARRAY, 0, "[]")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, trailers, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

static const zend_function_entry response_methods[] = {
	ZEND_ME(NativeResponse, __construct, arginfo_construct, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeResponse, status, arginfo_int, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeResponse, body, arginfo_mixed, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeResponse, headers, arginfo_array, ZEND_ACC_PUBLIC)
	ZEND_ME(NativeResponse, trailers, arginfo_array, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

void surus_register_response_class(void)
{
	zend_class_entry entry;
	INIT_NS_CLASS_ENTRY(entry, "Surus\\Internal", "NativeResponse", response_methods);
	surus_response_class = zend_register_internal_class(&entry);
	surus_response_class->ce_flags |= ZEND_ACC_EXPLICIT_ABSTRACT_CLASS | ZEND_ACC_NOT_SERIALIZABLE;
	surus_response_class->create_object = response_create;
	memcpy(&response_handlers, &std_object_handlers, sizeof response_handlers);
	response_handlers.offset = XtOffsetOf(response_object, std);
	response_handlers.free_obj = response_free;
	response_handlers.get_gc = response_gc;
	response_handlers.clone_obj = NULL;
}
