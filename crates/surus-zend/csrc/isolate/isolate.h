#ifndef SURUS_ISOLATE_ISOLATE_H
#define SURUS_ISOLATE_ISOLATE_H

#include "base.h"

/* The regions that make up an isolate are known and the image of a fresh one is taken. */
int surus_isolates_start(char *error, size_t error_size);
void surus_isolate_enter(surus_isolate *isolate);
/* The regions, one by one; false behind the last one. */
bool surus_region_at(size_t index, void **address, size_t *size);
extern surus_swaps surus_swapped;
/* What a failed request of the entered isolate has left on its heap does not count: others get what they were promised. */
void surus_memory_forgive(surus_isolate *isolate);
/* Between the two the entered isolate has no memory limit: for places from which no fatal error could be left. */
void surus_memory_lift(surus_isolate *isolate);
void surus_memory_limit(surus_isolate *isolate);
/* Where `address` of a global lives in the saved image of an isolate, or `address` itself while it is entered. */
void *surus_isolate_peek(surus_isolate *isolate, void *address);

#endif
