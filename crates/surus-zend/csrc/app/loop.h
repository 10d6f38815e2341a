#ifndef SURUS_APP_LOOP_H
#define SURUS_APP_LOOP_H

#include "base.h"

extern const zend_function_entry surus_loop_functions[];
/* Of FrankenPHP, where surus_engine_serve_in_turn was called: NULL elsewhere. */
const zend_function_entry *surus_frankenphp_functions(void);

#endif
