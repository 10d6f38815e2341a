#ifndef SURUS_STATE_FUNCTIONS_H
#define SURUS_STATE_FUNCTIONS_H

#include "base.h"

extern const zend_function_entry surus_state_functions[];

#endif
