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
void surus_parts_save(char *to);

/* Those of one fiber while another one's are in place. Most fibers never change theirs, and have no copy. */
typedef struct {
	struct surus_own_parts *own; /* those that differ from the idle ones; NULL: none, */
	char *mb;                    /* but for mbstring's, if it is there */
} surus_fiber_parts;

/* Makes a fiber's parts, equal to the idle ones, and frees them. On the heap of their isolate. */
bool surus_parts_make(surus_fiber_parts *new, const char *idle);
void surus_parts_free(surus_fiber_parts *parts, const char *idle);
/* For those of the boot, which are in place. */
bool surus_parts_make_room(surus_fiber_parts *new);
/* Frees the memory of parts, and nothing that they refer to. */
void surus_parts_drop(surus_fiber_parts *parts);
/* Saves a fiber's parts and loads the idle ones: those of both that differ. */
void surus_parts_leave(surus_fiber_parts *parts, const char *idle);
/* Loads a fiber's parts. `are_idle`: the idle ones are in place. */
void surus_parts_enter(const surus_fiber_parts *parts, const char *idle, bool are_idle);
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
