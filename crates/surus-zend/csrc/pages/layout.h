/* What has to be known of Zend's heap, which no header describes: found by what it does, and verified. */
#ifndef SURUS_PAGES_LAYOUT_H
#define SURUS_PAGES_LAYOUT_H

#include "base.h"

#define SURUS_CHUNK ((size_t)2 * 1024 * 1024)
#define SURUS_PAGE ((size_t)4096)
#define SURUS_CHUNK_PAGES (SURUS_CHUNK / SURUS_PAGE)

/* The beginning of each chunk. */
typedef struct surus_chunk {
	zend_mm_heap *heap;
	struct surus_chunk *next, *previous;
	uint32_t free_pages, free_tail, number;
} surus_chunk;

/* Of a heap that was just made, whose first chunk is `chunk`. NULL, or what is unknown. */
const char *surus_layout_find(zend_mm_heap *heap, surus_chunk *chunk);
/* Lets the heap use `storage` for its chunks, in place of the copy that it has made on itself, which the end of a request
 * would free. */
void surus_layout_set_storage(zend_mm_heap *heap, zend_mm_storage *storage);
/* Whether a page of the chunk is allocated. */
bool surus_layout_is_allocated(const surus_chunk *chunk, size_t page);
/* Forgets which small blocks are free: new ones then come from fresh pages. */
void surus_layout_forget_free_blocks(zend_mm_heap *heap);

#endif
