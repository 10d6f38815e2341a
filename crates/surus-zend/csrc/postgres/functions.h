/* Functions that Surus\Postgres and its like call. */
#ifndef SURUS_POSTGRES_FUNCTIONS_H
#define SURUS_POSTGRES_FUNCTIONS_H

#include "base.h"

extern const zend_function_entry surus_postgres_functions[];

#endif
