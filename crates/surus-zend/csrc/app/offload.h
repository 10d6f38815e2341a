/* Surus\offload(): a job runs in another process. */
#ifndef SURUS_APP_OFFLOAD_H
#define SURUS_APP_OFFLOAD_H

#include "base.h"

extern const zend_function_entry surus_offload_functions[];

/* On that process's side: the request is a job. */
void surus_offload_serve(void);

#endif
