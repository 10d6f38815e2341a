#ifndef SURUS_FIBER_TICKS_H
#define SURUS_FIBER_TICKS_H

#include "base.h"

typedef struct {
	zend_llist all;    /* functions in C */
	zend_llist *users; /* what one of them calls: functions in PHP, or NULL */
} surus_ticks;

/* Those that the application has registered while it booted; they stay where they are. */
surus_ticks surus_ticks_of_boot(void);
/* Gives the request that begins its own copy: it may remove some and add others. */
void surus_ticks_copy(const surus_ticks *from);
/* Ends those of the request. */
void surus_ticks_end(void);

#endif
