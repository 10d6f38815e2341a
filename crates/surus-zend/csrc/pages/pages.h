/* A PHP heap in one range of addresses whose content can be put back. */
#ifndef SURUS_PAGES_PAGES_H
#define SURUS_PAGES_PAGES_H

#include "base.h"

typedef struct surus_pages surus_pages;

/* Reads SURUS_SNAPSHOT_PAGES: before any isolate exists, and before environments are switched. */
void surus_pages_start(void);
/* A heap whose chunks lie in a range of their own. NULL, with an error: there is no memory, or this PHP's heap has
 * another layout. */
surus_pages *surus_pages_new(zend_mm_heap **heap, const char **error);
/* The memory goes as a whole, with everything that is on the heap. */
void surus_pages_free(surus_pages *pages);
/* Zeroed memory next to the heap for `*slots` mapped pointers, more than any application has. */
void *surus_pages_map_area(surus_pages *pages, size_t *slots);
/* What is in use now is what surus_pages_restore() puts back: the heap and the first `map_area_used` bytes of that area.
 * Nothing may be allocated before the caller has also saved what else belongs to it. NULL, or why it cannot be. */
const char *surus_pages_take(surus_pages *pages, size_t map_area_used);
void surus_pages_restore(surus_pages *pages);
/* Whether the address is in its range. */
bool surus_pages_have(const surus_pages *pages, const void *address);

typedef struct {
	size_t live;     /* pages that are put back when they were written */
	size_t hot;      /* those of them that are copied back after each request */
	size_t restored; /* pages copied since the snapshot was taken */
	size_t scans;    /* how often written pages were searched for */
	size_t times;    /* how often it was put back */
} surus_pages_stats;

surus_pages_stats surus_pages_count(const surus_pages *pages);

#endif
