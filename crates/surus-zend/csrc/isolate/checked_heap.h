#ifndef SURUS_ISOLATE_CHECKED_HEAP_H
#define SURUS_ISOLATE_CHECKED_HEAP_H

#include "base.h"

typedef struct surus_checked_heap {
	struct block *blocks;
	size_t count, bytes;
	bool lifted;    /* no limit now: surus_memory_lift */
	bool reporting; /* inside the report of an exhausted memory limit */
} surus_checked_heap;

/* All do nothing unless surus_heap_check() has been called before the first isolate. */
void surus_checked_heap_install(surus_isolate *isolate);
/* Frees what is left at the end of a request, like the engine's heap. */
void surus_checked_heap_clear(surus_isolate *isolate);
void surus_checked_heap_remove(surus_isolate *isolate);

#endif
