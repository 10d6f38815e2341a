/* Parameters of a statement. An array becomes PostgreSQL's notation of one, {1,2}; an object what it is as text. */
#include "postgres/parameters.h"

#include "Zend/zend_enum.h"
#include "Zend/zend_smart_str.h"
#include "ext/date/php_date.h"

/* More levels than PostgreSQL's arrays have. */
#define DEEPEST 6
/* As many as the protocol can count. */
#define MOST 65535

/* Text with seconds and what is smaller, and the zone. */
static zend_string *date_text(zend_object *object)
{
	zval format, text;
	zend_function *function = zend_hash_str_find_ptr(&object->ce->function_table, "format", sizeof "format" - 1);
	ZVAL_STRING(&format, "Y-m-d\\TH:i:s.uP");
	ZVAL_UNDEF(&text);
	zend_call_known_instance_method_with_1_params(function, object, &text, &format);
	zval_ptr_dtor(&format);
	if (Z_TYPE(text) == IS_STRING) {
		return Z_STR(text);
	}
	zval_ptr_dtor(&text);
	return NULL;
}

/* The caller releases it; NULL, perhaps with an exception: there is none. */
static zend_string *object_text(zend_object *object)
{
	if (instanceof_function(object->ce, php_date_get_interface_ce())) {
		return date_text(object);
	}
	if (object->ce->__tostring) {
		zval value;
		ZVAL_OBJ(&value, object);
		return zval_try_get_string(&value);
	}
	return NULL;
}

static void refuse(size_t number, const char *what)
{
	if (!EG(exception)) {
		zend_type_error("$%zu is %s: a parameter is null, a bool, a number, a string, a list of these, a date, a backed enum or Stringable",
			number, what);
	}
}

static const zval *enum_value(const zval *value)
{
	if (Z_TYPE_P(value) == IS_OBJECT && (Z_OBJCE_P(value)->ce_flags & ZEND_ACC_ENUM)
		&& Z_OBJCE_P(value)->enum_backing_type != IS_UNDEF) {
		return zend_enum_fetch_case_value(Z_OBJ_P(value));
	}
	return value;
}

static void append_quoted(smart_str *text, const zend_string *value)
{
	smart_str_appendc(text, '"');
	for (size_t i = 0; i < ZSTR_LEN(value); i++) {
		if (ZSTR_VAL(value)[i] == '"' || ZSTR_VAL(value)[i] == '\\') {
			smart_str_appendc(text, '\\');
		}
		smart_str_appendc(text, ZSTR_VAL(value)[i]);
	}
	smart_str_appendc(text, '"');
}

static bool append_array(smart_str *text, HashTable *array, size_t number, int depth);

static bool append_element(smart_str *text, const zval *element, size_t number, int depth)
{
	ZVAL_DEREF(element);
	element = enum_value(element);
	switch (Z_TYPE_P(element)) {
		case IS_NULL:
			smart_str_appends(text, "NULL");
			return true;
		case IS_FALSE:
			smart_str_appendc(text, 'f');
			return true;
		case IS_TRUE:
			smart_str_appendc(text, 't');
			return true;
		case IS_LONG:
			smart_str_append_long(text, Z_LVAL_P(element));
			return true;
		case IS_DOUBLE:
			if (zend_isinf(Z_DVAL_P(element))) {
				smart_str_appends(text, Z_DVAL_P(element) > 0 ? "Infinity" : "-Infinity");
			} else {
				smart_str_append_double(text, Z_DVAL_P(element), 17, false);
			}
			return true;
		case IS_STRING:
			append_quoted(text, Z_STR_P(element));
			return true;
		case IS_ARRAY:
			return append_array(text, Z_ARRVAL_P(element), number, depth + 1);
		case IS_OBJECT: {
			zend_string *own = object_text(Z_OBJ_P(element));
			if (own) {
				append_quoted(text, own);
				zend_string_release(own);
				return true;
			}
		}
	}
	refuse(number, "a list with something else in it");
	return false;
}

static bool append_array(smart_str *text, HashTable *array, size_t number, int depth)
{
	if (depth > DEEPEST || !zend_array_is_list(array)) {
		refuse(number, depth > DEEPEST ? "a list that is nested too deeply" : "an array with keys");
		return false;
	}
	bool first = true;
	zval *element;
	smart_str_appendc(text, '{');
	ZEND_HASH_FOREACH_VAL(array, element) {
		if (!first) {
			smart_str_appendc(text, ',');
		}
		first = false;
		if (!append_element(text, element, number, depth)) {
			return false;
		}
	} ZEND_HASH_FOREACH_END();
	smart_str_appendc(text, '}');
	return true;
}

static bool pack(surus_postgres_parameters *packed, size_t index, const zval *value)
{
	surus_postgres_value *to = &packed->values[index];
	value = enum_value(value);
	switch (Z_TYPE_P(value)) {
		case IS_NULL:
			to->kind = SURUS_POSTGRES_NULL;
			return true;
		case IS_FALSE:
		case IS_TRUE:
			to->kind = SURUS_POSTGRES_BOOL;
			to->integer = Z_TYPE_P(value) == IS_TRUE;
			return true;
		case IS_LONG:
			to->kind = SURUS_POSTGRES_INT;
			to->integer = Z_LVAL_P(value);
			return true;
		case IS_DOUBLE:
			to->kind = SURUS_POSTGRES_FLOAT;
			to->number = Z_DVAL_P(value);
			return true;
		case IS_STRING:
			to->kind = SURUS_POSTGRES_TEXT;
			packed->texts[index] = zend_string_copy(Z_STR_P(value));
			break;
		case IS_ARRAY: {
			smart_str text = {0};
			bool fits = append_array(&text, Z_ARRVAL_P(value), index + 1, 1);
			smart_str_0(&text);
			packed->texts[index] = text.s;
			to->kind = SURUS_POSTGRES_ARRAY;
			if (!fits) {
				return false;
			}
			break;
		}
		case IS_OBJECT:
			to->kind = SURUS_POSTGRES_TEXT;
			packed->texts[index] = object_text(Z_OBJ_P(value));
	}
	if (!packed->texts[index]) {
		refuse(index + 1, zend_zval_type_name(value));
		return false;
	}
	to->text = surus_bytes_of(packed->texts[index]);
	return true;
}

bool surus_postgres_pack(surus_postgres_parameters *packed, HashTable *parameters)
{
	size_t count = zend_hash_num_elements(parameters);
	*packed = (surus_postgres_parameters){0};
	if (count == 0) {
		return true;
	}
	if (count > MOST || !zend_array_is_list(parameters)) {
		zend_value_error(count > MOST ? "A statement has at most 65535 parameters"
			: "Parameters are a list: $1 is its first element, and so on");
		return false;
	}
	packed->values = ecalloc(count, sizeof *packed->values);
	packed->texts = ecalloc(count, sizeof *packed->texts);
	packed->count = count;
	size_t index = 0;
	zval *value;
	ZEND_HASH_FOREACH_VAL(parameters, value) {
		ZVAL_DEREF(value);
		if (!pack(packed, index++, value)) {
			return false;
		}
	} ZEND_HASH_FOREACH_END();
	return true;
}

void surus_postgres_unpack(surus_postgres_parameters *packed)
{
	for (size_t i = 0; i < packed->count; i++) {
		if (packed->texts[i]) {
			zend_string_release(packed->texts[i]);
		}
	}
	if (packed->count > 0) {
		efree(packed->values);
		efree(packed->texts);
	}
}
