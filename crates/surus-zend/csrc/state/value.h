#ifndef SURUS_STATE_VALUE_H
#define SURUS_STATE_VALUE_H

#include "base.h"

/* What a stored value is. */
enum {
	SURUS_VALUE_TEXT = 0,
	SURUS_VALUE_SERIALIZED = 1,
	SURUS_VALUE_NULL = 2,
	SURUS_VALUE_FALSE = 3,
	SURUS_VALUE_TRUE = 4,
	SURUS_VALUE_INT = 5,
	SURUS_VALUE_FLOAT = 6,
};

/* A PHP value as it is stored. `serialized` holds what `stored` points to; release it. False: an exception was thrown. */
bool surus_value_store(zval *value, surus_stored *stored, zend_string **serialized);

/* The PHP value of what was read. False: another version of the code has written it, and this one cannot read it; or an
 * exception that ends the request was thrown. Then `text`, if it is not NULL, gets what was read: `stored` points to it; release it. */
bool surus_value_load(surus_stored *stored, zval *value, zend_string **text);

#endif
