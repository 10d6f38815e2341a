/* mbstring's state of a request: plain fields, and two pointers to blocks of which each fiber has its own. Fields that
 * settings control are not here: they are swapped with the settings. */
#ifndef SURUS_FIBER_MBSTRING_H
#define SURUS_FIBER_MBSTRING_H

#include "base.h"

#include <stdbool.h>
#include <stddef.h>

/* The size of a state in bytes; 0 without the extension, or if its layout is different. */
size_t surus_mb_find(void);
/* At the end of a boot: keeps what the boot has set, and ends operations in progress. */
void surus_mb_settle(void);
/* Completes the saved idle state, with which fibers begin. */
void surus_mb_take_fresh(void *idle);
/* Copies the installed state to `to` and back. */
void surus_mb_save(void *to);
void surus_mb_load(const void *from);
/* Makes a fiber's state, equal to `idle`, on the heap of the entered isolate; and frees it. */
void surus_mb_make(void *state, const void *idle);
void surus_mb_free(void *state);
/* Whether the installed state equals `idle`; and setting it to `idle`. */
bool surus_mb_is(const void *idle);
void surus_mb_reset(const void *idle);

#endif
