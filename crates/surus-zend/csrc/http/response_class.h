#ifndef SURUS_HTTP_RESPONSE_CLASS_H
#define SURUS_HTTP_RESPONSE_CLASS_H

#include "base.h"

void surus_register_response_class(void);
extern zend_class_entry *surus_response_class;
typedef struct { zend_long status; zval *headers, *body, *trailers; } surus_response_view;
surus_response_view surus_response_read(zval *response);

#endif
