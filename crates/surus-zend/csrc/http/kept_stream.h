#ifndef SURUS_HTTP_KEPT_STREAM_H
#define SURUS_HTTP_KEPT_STREAM_H

#include "base.h"

/* The body that the server has in one file, of `length` bytes, for the request that runs. */
php_stream *surus_kept_stream(uint64_t length);

#endif
