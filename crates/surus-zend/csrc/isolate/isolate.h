#ifndef SURUS_ISOLATE_ISOLATE_H
#define SURUS_ISOLATE_ISOLATE_H

#include "base.h"

/* Finds the regions that make up an isolate, and takes the image of a fresh one. */
int surus_isolates_start(char *error, size_t error_size);
void surus_isolate_enter(surus_isolate *isolate);
/* The regions, one by one; false after the last one. */
bool surus_region_at(size_t index, void **address, size_t *size);
/* The variable or module whose memory it is, for messages. */
const char *surus_region_name(size_t index);
/* The bytes of all regions, one after the other, each aligned as the heap's blocks are. */
size_t surus_regions_size(void);
void surus_regions_save(char *image);
void surus_regions_load(const char *image);
extern surus_swaps surus_swapped;
/* Excludes what a failed request has left on the heap of the entered isolate from its memory limit: other requests get
 * their full limit. */
void surus_memory_forgive(surus_isolate *isolate);
/* Between these two calls the entered isolate has no memory limit: for code that a fatal error could not leave. */
void surus_memory_lift(surus_isolate *isolate);
/* Bytes that its heap may have; SIZE_MAX without a limit. */
size_t surus_memory_allowed(const surus_isolate *isolate);
void surus_memory_limit(surus_isolate *isolate);
/* The place of the global at `address` in the saved image of an isolate; `address` itself while it is entered. */
void *surus_isolate_peek(surus_isolate *isolate, void *address);

#endif
