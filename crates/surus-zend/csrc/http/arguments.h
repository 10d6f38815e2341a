#ifndef SURUS_HTTP_ARGUMENTS_H
#define SURUS_HTTP_ARGUMENTS_H

#include "base.h"

struct surus_plan;

typedef struct surus_plan surus_plan;
/* From a list of Surus\Internal\Argument. NULL with a message if a class cannot be input. */
surus_plan *surus_plan_make(zval *list, void *exchange, int64_t route, char *error, size_t error_size);
void surus_plan_free(surus_plan *plan);
uint32_t surus_plan_count(const surus_plan *plan);
/* Whether filling it needs the request object. */
bool surus_plan_needs_request(const surus_plan *plan);
/* Fills `arguments` (room for surus_plan_count). False: a value is missing or invalid, and an exception is pending. */
bool surus_plan_fill(const surus_plan *plan, void *exchange, zval *request, zval *arguments);
/* Throws a Surus\Http\HttpException; takes over the message. */
void surus_throw_http(int status, zend_string *message);

#endif
