/* Surus\Context: values that tasks inherit. */
#ifndef SURUS_APP_CONTEXT_H
#define SURUS_APP_CONTEXT_H

#include "base.h"

extern const zend_function_entry surus_context_functions[];

/* A job begins with what the code has that starts it. */
void surus_context_inherit(surus_task *job, const surus_task *from);
/* At the end of its code; runs destructors. May end in a bailout. */
void surus_context_end(surus_task *task);

#endif
