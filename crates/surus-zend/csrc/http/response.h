#ifndef SURUS_HTTP_RESPONSE_H
#define SURUS_HTTP_RESPONSE_H

#include "base.h"

/* Sends what a handler has returned; defines the allowed results of handlers. */
void surus_render(surus_task *task, zval *result);
/* Adds a field to the head of the response; one that HTTP does not allow is left out, which is logged. */
void surus_add_header(surus_task *task, surus_str name, surus_str value);
/* Starts and ends the output of one request of a fiber. */
void surus_output_begin(surus_task *task);
void surus_output_end(surus_task *task);
/* After a fatal error: repairs the stack of output handlers. */
void surus_output_mend(surus_task *task);
/* `flush` is surus_rs_flush() or surus_rs_flush_item(). */
void surus_flush(surus_task *task, bool (*flush)(void *exchange));
bool surus_output_is_base(const surus_task *task);

#endif
