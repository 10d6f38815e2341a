/* Functions that Surus\Postgres and its like call. */
#ifndef SURUS_POSTGRES_FUNCTIONS_H
#define SURUS_POSTGRES_FUNCTIONS_H

#include "base.h"
#include "postgres/rows.h"

/* Turns an answer into what the statement returns, and frees it, also if there is no memory for that. */
void surus_postgres_take(void *answer, zval *to, surus_postgres_shape shape, zend_class_entry *class);
extern const zend_function_entry surus_postgres_functions[];

#endif
