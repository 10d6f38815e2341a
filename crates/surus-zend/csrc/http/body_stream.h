#ifndef SURUS_HTTP_BODY_STREAM_H
#define SURUS_HTTP_BODY_STREAM_H

#include "base.h"

void surus_body_stream(zval *to, zend_object *request);

#endif
