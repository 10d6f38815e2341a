#ifndef SURUS_CONNECTIONS_CONNECTION_FUNCTIONS_H
#define SURUS_CONNECTIONS_CONNECTION_FUNCTIONS_H

#include "base.h"

extern const zend_function_entry surus_connection_functions[];

#endif
