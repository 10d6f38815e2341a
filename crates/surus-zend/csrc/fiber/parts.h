/* Parts: globals of modules, and hidden state, that belong as a whole to one request of a coroutine isolate. */
#ifndef SURUS_FIBER_PARTS_H
#define SURUS_FIBER_PARTS_H

#include "base.h"

#include <stdbool.h>
#include <stddef.h>

void surus_parts_find(void);
/* The size of all parts in bytes. */
size_t surus_parts_size(void);
/* At the end of a boot: frees what modules hold for it, so that no two requests share it. */
void surus_parts_settle(void);
/* Completes the idle parts, written by surus_parts_save(), with which fibers begin. */
void surus_parts_take_fresh(char *idle);
/* Makes a fiber's parts, equal to the idle ones, and frees them. On the heap of their isolate. */
void surus_parts_make(char *own, const char *idle);
void surus_parts_free(char *own);
void surus_parts_save(char *to);
/* Saves a fiber's parts and loads the idle ones; most fibers never change theirs, and then nothing is copied.
 * `were_idle`: what `own` holds already equals `idle`. Returns whether it does now. */
bool surus_parts_leave(char *own, bool were_idle, const char *idle);
/* Loads a fiber's parts. `are_idle`: they are in place already, for the idle ones are. */
void surus_parts_enter(const char *own, bool are_idle);
/* Whether no part differs from `idle`. */
bool surus_parts_are(const char *idle);
/* Whether all globals of the module are a part; whether `address` lies in one. */
bool surus_parts_own_module(int module_number);
bool surus_parts_cover(const void *address);
/* Ends the request for each module whose part differs from `idle`, then loads `idle`. */
void surus_parts_reset(const char *idle);

/* The generator of mt_rand(), if it was seeded: its state is not in the parts. */
void *surus_random_save(void);
void surus_random_load(void *saved);
void surus_random_reset(void);

#endif
