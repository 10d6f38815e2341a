#ifndef SURUS_HTTP_JSON_H
#define SURUS_HTTP_JSON_H

#include "base.h"

#include "Zend/zend_smart_str.h"

/* `text` must be empty; `flags` of json_encode() come on top of those of all responses. False: there is an exception, or
 * json_last_error_msg() says why. */
bool surus_json(smart_str *text, zval *value, int flags);

#endif
