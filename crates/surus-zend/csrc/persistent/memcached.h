#ifndef SURUS_PERSISTENT_MEMCACHED_H
#define SURUS_PERSISTENT_MEMCACHED_H

#include "base.h"

void surus_memcached_start(void);
void surus_memcached_clean(surus_task *task);
/* After a cancelled request. */
void surus_memcached_close_sessions(void);
/* Whether an object of Memcached has answers that were not fetched yet. */
bool surus_memcached_is_owed(const zend_object *object);
/* Makes it open new connections at its next use. */
void surus_memcached_reconnect(const zend_object *object);

#endif
