#ifndef SURUS_APP_FUNCTIONS_H
#define SURUS_APP_FUNCTIONS_H

#include "base.h"

extern const zend_function_entry surus_functions[];

#endif
