#ifndef SURUS_PERSISTENT_REDIS_H
#define SURUS_PERSISTENT_REDIS_H

#include "base.h"

void surus_redis_start(void);
void surus_redis_clean(surus_task *task);
/* Nothing is read from it any more; phpredis notices it before the next command, and connects again. */
void surus_redis_break_off(php_stream *stream);

#endif
