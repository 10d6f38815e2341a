#include "pages/layout.h"

/* In bytes, from the beginning of the heap's struct and of a chunk. */
static size_t storage_at, free_blocks_at, free_pages_at;

#define MAP_SIZE (SURUS_CHUNK_PAGES * sizeof(uint32_t))
#define BITS_SIZE (SURUS_CHUNK_PAGES / 8)
/* The map's entry of a chunk's own page: a large run of one page. */
#define OWN_PAGE 0x40000001u
/* Sizes of small blocks that the heap distinguishes. */
#define BINS 30

static void **word_of(zend_mm_heap *heap, size_t at)
{
	return (void **)((char *)heap + at);
}

static size_t find_word(zend_mm_heap *heap, size_t end, const void *value)
{
	for (size_t at = 0; at + sizeof value <= end; at += sizeof value) {
		if (*word_of(heap, at) == value) {
			return at;
		}
	}
	return 0;
}

static unsigned count_bits(const char *bits)
{
	unsigned count = 0;
	for (size_t i = 0; i < BITS_SIZE; i += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, bits + i, sizeof word);
		count += (unsigned)__builtin_popcountll(word);
	}
	return count;
}

/* The bits of allocated pages, and behind them a number for each page, end the first page of a chunk. */
static bool find_map(const surus_chunk *chunk, size_t heap_at)
{
	const char *start = (const char *)chunk;
	for (size_t at = heap_at + BITS_SIZE; at + MAP_SIZE <= SURUS_PAGE; at += sizeof(uint64_t)) {
		uint32_t first;
		memcpy(&first, start + at, sizeof first);
		const char *bits = start + at - BITS_SIZE;
		if (first == OWN_PAGE && (bits[0] & 1) && count_bits(bits) == SURUS_CHUNK_PAGES - chunk->free_pages) {
			free_pages_at = at - BITS_SIZE;
			return true;
		}
	}
	return false;
}

/* A block that was freed is the first of its size's list. */
static size_t list_of(zend_mm_heap *heap, size_t end, size_t size)
{
	void *block = zend_mm_alloc(heap, size);
	zend_mm_free(heap, block);
	return find_word(heap, end, block);
}

const char *surus_layout_find(zend_mm_heap *heap, surus_chunk *chunk)
{
	size_t heap_at = (size_t)((char *)heap - (char *)chunk);
	if (chunk->heap != heap || chunk->next != chunk || chunk->previous != chunk || heap_at < sizeof *chunk || heap_at > SURUS_PAGE / 4) {
		return "its chunks begin otherwise";
	}
	if (!find_map(chunk, heap_at)) {
		return "where a chunk tells its free pages is unknown";
	}
	size_t end = free_pages_at - heap_at;
	storage_at = find_word(heap, end, zend_mm_get_storage(heap));
	if (!storage_at) {
		return "where it tells its storage is unknown";
	}
	/* The first list is that of 8 bytes, which 8.4 and newer leave empty: they need room for a second pointer in each block. */
	size_t second = list_of(heap, end, 16), third = list_of(heap, end, 24), first = second - sizeof(void *);
	if (!second || third != second + sizeof(void *) || first + BINS * sizeof(void *) > end || first <= storage_at) {
		return "where its lists of free blocks are is unknown";
	}
	free_blocks_at = first;
	return NULL;
}

void surus_layout_set_storage(zend_mm_heap *heap, zend_mm_storage *storage)
{
	*word_of(heap, storage_at) = storage;
}

bool surus_layout_is_allocated(const surus_chunk *chunk, size_t page)
{
	const unsigned char *bits = (const unsigned char *)chunk + free_pages_at;
	return bits[page / 8] >> (page % 8) & 1;
}

void surus_layout_forget_free_blocks(zend_mm_heap *heap)
{
	memset(word_of(heap, free_blocks_at), 0, BINS * sizeof(void *));
}
