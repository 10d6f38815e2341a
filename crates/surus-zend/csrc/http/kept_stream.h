#ifndef SURUS_HTTP_KEPT_STREAM_H
#define SURUS_HTTP_KEPT_STREAM_H

#include "base.h"

/* A stream of the running request's body, which the server has in one file of `length` bytes. */
php_stream *surus_kept_stream(uint64_t length);

#endif
