#ifndef SURUS_PERSISTENT_MEMCACHED_H
#define SURUS_PERSISTENT_MEMCACHED_H

#include "base.h"

void surus_memcached_start(void);
void surus_memcached_clean(surus_task *task);
/* After a request that was cut off. */
void surus_memcached_close_sessions(void);
/* Of an object of Memcached: whether an answer is still to be fetched. */
bool surus_memcached_is_owed(const zend_object *object);
/* It connects anew when it is used next. */
void surus_memcached_reconnect(const zend_object *object);

#endif
