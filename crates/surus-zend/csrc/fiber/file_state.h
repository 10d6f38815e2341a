/* What ext/standard keeps about files and streams for one request. */
#ifndef SURUS_FIBER_FILE_STATE_H
#define SURUS_FIBER_FILE_STATE_H

#include "base.h"

/* Ends of parts (fiber/parts.c): the context of the request; what follows the tables of wrappers and filters. */
void surus_file_end_context(void *address, size_t size);
void surus_file_end_rest(void *address, size_t size);

/* At the end of a boot: takes the context that the application has set with stream_context_set_default(), or NULL. */
php_stream_context *surus_file_take_context(void);
/* At the start of a request: gives it a copy. Requests may change theirs, also through a stream that they open. */
void surus_file_copy_context(const php_stream_context *from);

#endif
