#ifndef SURUS_HTTP_REQUEST_CLASS_H
#define SURUS_HTTP_REQUEST_CLASS_H

#include "base.h"

void surus_register_request_class(void);
extern zend_class_entry *surus_request_class;
/* `class` extends surus_request_class. */
void surus_request_object(zval *to, zend_class_entry *class, void *exchange);
/* Adds a header or a trailer to an array; values of one name are joined. */
void surus_add_field(HashTable *fields, zend_string *name, surus_str value);
/* The parsed query string. */
HashTable *surus_request_query(zval *request);
/* NULL once the request has ended. */
void *surus_request_exchange(zend_object *request);
/* When the request has ended: code that keeps the object can no longer use it. */
void surus_request_detach(zval *request);

#endif
