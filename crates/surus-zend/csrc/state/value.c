/* PHP values in the store: numbers, booleans, null and strings as they are, others serialized. */
#include "state/value.h"

#include "Zend/zend_smart_str.h"
#include "ext/standard/php_var.h"

bool surus_value_store(zval *value, surus_stored *stored, zend_string **serialized)
{
	*serialized = NULL;
	*stored = (surus_stored){.bytes = {"", 0}};
	ZVAL_DEREF(value);
	switch (Z_TYPE_P(value)) {
	case IS_NULL:
		stored->kind = SURUS_VALUE_NULL;
		return true;
	case IS_FALSE:
		stored->kind = SURUS_VALUE_FALSE;
		return true;
	case IS_TRUE:
		stored->kind = SURUS_VALUE_TRUE;
		return true;
	case IS_LONG:
		stored->kind = SURUS_VALUE_INT;
		stored->number = Z_LVAL_P(value);
		return true;
	case IS_DOUBLE:
		stored->kind = SURUS_VALUE_FLOAT;
		memcpy(&stored->number, &Z_DVAL_P(value), sizeof stored->number);
		return true;
	case IS_STRING:
		stored->kind = SURUS_VALUE_TEXT;
		stored->bytes = surus_bytes_of(Z_STR_P(value));
		return true;
	default:
		break;
	}
	smart_str text = {0};
	php_serialize_data_t data;
	PHP_VAR_SERIALIZE_INIT(data);
	php_var_serialize(&text, value, &data);
	PHP_VAR_SERIALIZE_DESTROY(data);
	if (EG(exception)) {
		smart_str_free(&text);
		return false;
	}
	*serialized = smart_str_extract(&text);
	stored->kind = SURUS_VALUE_SERIALIZED;
	stored->bytes = surus_bytes_of(*serialized);
	return true;
}

/* What its code throws is not the reader's: the value counts as absent. */
static bool unserialize(zend_string *text, zval *value)
{
	const unsigned char *at = (const unsigned char *)ZSTR_VAL(text);
	php_unserialize_data_t data;
	PHP_VAR_UNSERIALIZE_INIT(data);
	ZVAL_NULL(value);
	bool is_read = php_var_unserialize(value, &at, at + ZSTR_LEN(text), &data);
	PHP_VAR_UNSERIALIZE_DESTROY(data);
	zend_object *exception = EG(exception);
	if (exception && !zend_is_unwind_exit(exception) && !zend_is_graceful_exit(exception)) {
		zend_clear_exception();
	}
	if (!is_read || exception) {
		zval_ptr_dtor(value);
		ZVAL_NULL(value);
		return false;
	}
	return true;
}

bool surus_value_load(surus_stored *stored, zval *value, zend_string **text)
{
	double number;
	zend_string *copy;
	switch (stored->kind) {
	case SURUS_VALUE_TEXT:
		ZVAL_STRINGL_FAST(value, stored->bytes.ptr, stored->bytes.len);
		return true;
	case SURUS_VALUE_NULL:
		ZVAL_NULL(value);
		return true;
	case SURUS_VALUE_FALSE:
		ZVAL_FALSE(value);
		return true;
	case SURUS_VALUE_TRUE:
		ZVAL_TRUE(value);
		return true;
	case SURUS_VALUE_INT:
		ZVAL_LONG(value, stored->number);
		return true;
	case SURUS_VALUE_FLOAT:
		memcpy(&number, &stored->number, sizeof number);
		ZVAL_DOUBLE(value, number);
		return true;
	default:
		/* The code of classes may read the store, too. */
		copy = zend_string_init(stored->bytes.ptr, stored->bytes.len, false);
		if (unserialize(copy, value)) {
			zend_string_release(copy);
			return true;
		}
		if (text) {
			stored->bytes = surus_bytes_of(copy);
			*text = copy;
		} else {
			zend_string_release(copy);
		}
		return false;
	}
}
