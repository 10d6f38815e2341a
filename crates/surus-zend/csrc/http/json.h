#ifndef SURUS_HTTP_JSON_H
#define SURUS_HTTP_JSON_H

#include "base.h"

#include "Zend/zend_smart_str.h"

/* `text` must be empty; `flags` of json_encode() are added to those of all responses. False: an exception is pending,
 * or json_last_error_msg() returns the reason. */
bool surus_json(smart_str *text, zval *value, int flags);

#endif
