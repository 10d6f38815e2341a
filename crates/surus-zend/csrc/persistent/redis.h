#ifndef SURUS_PERSISTENT_REDIS_H
#define SURUS_PERSISTENT_REDIS_H

#include "base.h"

void surus_redis_start(void);
void surus_redis_clean(surus_task *task);

#endif
