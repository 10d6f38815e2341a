#ifndef SURUS_OS_PROCESS_FUNCTIONS_H
#define SURUS_OS_PROCESS_FUNCTIONS_H

#include "base.h"

/* Before and after PHP's startup, in a server. */
void surus_process_functions_prepare(void);
void surus_process_functions_start(void);

#endif
