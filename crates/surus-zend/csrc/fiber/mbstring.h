/* mbstring's state of a request: plain fields, and two things behind pointers of which each fiber has its own. What its
 * settings control is not here: those fields follow the settings. */
#ifndef SURUS_FIBER_MBSTRING_H
#define SURUS_FIBER_MBSTRING_H

#include "base.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes that a state takes; 0 without the extension, or if it is laid out otherwise. */
size_t surus_mb_find(void);
/* At the end of a boot: what it has set stays, what it was in the middle of ends. */
void surus_mb_settle(void);
/* Completes what was saved of that for fibers to begin with. */
void surus_mb_take_fresh(void *idle);
/* What is in place, into `to` and back. */
void surus_mb_save(void *to);
void surus_mb_load(const void *from);
/* A fiber's state that begins as `idle`, on the heap of the isolate that is entered; and its end. */
void surus_mb_make(void *state, const void *idle);
void surus_mb_free(void *state);
/* Whether what is in place is as `idle`, and making it so. */
bool surus_mb_is(const void *idle);
void surus_mb_reset(const void *idle);

#endif
