#ifndef SURUS_HTTP_RESPONSE_H
#define SURUS_HTTP_RESPONSE_H

#include "base.h"

/* Sends what a handler returned: the return contract. */
void surus_render(surus_task *task, zval *result);
/* Adds it to the head of the response; what HTTP does not allow is left out, and the log says so. */
void surus_add_header(surus_task *task, surus_str name, surus_str value);
/* Starts and ends the output of one request of a fiber. */
void surus_output_begin(surus_task *task);
void surus_output_end(surus_task *task);
/* After a fatal error: the stack of output handlers is whole again. */
void surus_output_mend(surus_task *task);
bool surus_output_is_base(const surus_task *task);

#endif
