#ifndef SURUS_CONNECTIONS_PERSISTENT_STREAM_H
#define SURUS_CONNECTIONS_PERSISTENT_STREAM_H

#include "base.h"

/* pfsockopen(). */
void surus_streams_start(void);
void surus_streams_clean(surus_task *task);

#endif
