/* A heap for tests: each block of an isolate comes from malloc and records its owner.
 *
 * The engine's heap returns pieces of large chunks, so valgrind sees no errors in them. With this one it does, and if
 * one isolate frees a block of another, the process aborts at once, with or without valgrind. The engine supports such
 * heaps (USE_ZEND_ALLOC=0); what it does not free after a fatal error is freed here.
 */
#include "isolate/checked_heap.h"
#include "isolate/isolate.h"
#include "task/running.h"
#include "task/state.h"

#include <stdlib.h>

#define ALIVE 0x5AFEB10Cu
#define FREED 0xDEADB10Cu

typedef struct block {
	struct block *previous, *next;
	surus_isolate *owner;
	size_t size;
	size_t padding;
	uint64_t mark;
} block;

_Static_assert(sizeof(block) % 16 == 0, "what follows the header is aligned as malloc's blocks are");

static bool checked;

void surus_heap_check(void)
{
	checked = true;
}

static void die(const char *what, const block *b)
{
	fprintf(stderr, "surus: checked heap: %s, block %p of %zu bytes, of isolate %p, in isolate %p\n", what, (const void *)(b + 1), b->size,
		(const void *)b->owner, (const void *)surus_entered);
	abort();
}

static block *block_of(void *pointer)
{
	block *b = (block *)pointer - 1;
	if (b->mark != ALIVE) {
		die(b->mark == FREED ? "freed twice" : "not a block", b);
	}
	if (b->owner != surus_entered) {
		die("another isolate's", b);
	}
	return b;
}

/* Like the engine's heap: the request ends with a fatal error, during which more may be allocated. */
static void check_limit(surus_isolate *isolate, size_t size)
{
	surus_checked_heap *heap = isolate->checked_heap;
	size_t limit = surus_memory_allowed(isolate);
	if (heap->reporting || heap->lifted || size <= limit - MIN(limit, heap->bytes)) {
		return;
	}
	heap->reporting = true;
	zend_try {
		zend_error_noreturn(E_ERROR, "Allowed memory size of " ZEND_LONG_FMT " bytes exhausted (tried to allocate %zu bytes)", PG(memory_limit), size);
	} zend_catch {
	} zend_end_try();
	heap->reporting = false;
	zend_bailout();
}

static void link_block(surus_checked_heap *heap, block *b)
{
	b->previous = NULL;
	b->next = heap->blocks;
	if (heap->blocks) {
		heap->blocks->previous = b;
	}
	heap->blocks = b;
	heap->count++;
	heap->bytes += b->size;
}

static void unlink_block(surus_checked_heap *heap, block *b)
{
	*(b->previous ? &b->previous->next : &heap->blocks) = b->next;
	if (b->next) {
		b->next->previous = b->previous;
	}
	heap->count--;
	heap->bytes -= b->size;
}

static void *checked_malloc(size_t size)
{
	check_limit(surus_entered, size);
	block *b = malloc(sizeof *b + size);
	if (!b) {
		abort();
	}
	b->owner = surus_entered;
	b->size = size;
	b->mark = ALIVE;
	link_block(surus_entered->checked_heap, b);
	return b + 1;
}

static void checked_free(void *pointer)
{
	if (pointer) {
		block *b = block_of(pointer);
		unlink_block(surus_entered->checked_heap, b);
		b->mark = FREED;
		free(b);
	}
}

static void *checked_realloc(void *pointer, size_t size)
{
	if (!pointer) {
		return checked_malloc(size);
	}
	block *b = block_of(pointer);
	if (size > b->size) {
		check_limit(surus_entered, size - b->size);
	}
	unlink_block(surus_entered->checked_heap, b);
	block *moved = realloc(b, sizeof *b + size);
	if (!moved) {
		abort();
	}
	moved->size = size;
	link_block(surus_entered->checked_heap, moved);
	return moved + 1;
}

void surus_checked_heap_install(surus_isolate *isolate)
{
	if (checked) {
		isolate->checked_heap = calloc(1, sizeof *isolate->checked_heap);
		zend_mm_set_custom_handlers(isolate->heap, checked_malloc, checked_free, checked_realloc);
	}
}

void surus_checked_heap_clear(surus_isolate *isolate)
{
	surus_checked_heap *heap = isolate->checked_heap;
	while (heap && heap->blocks) {
		block *b = heap->blocks;
		unlink_block(heap, b);
		b->mark = FREED;
		free(b);
	}
}

void surus_checked_heap_remove(surus_isolate *isolate)
{
	if (isolate->checked_heap) {
		surus_checked_heap_clear(isolate);
		zend_mm_set_custom_handlers(isolate->heap, NULL, NULL, NULL);
		free(isolate->checked_heap);
		isolate->checked_heap = NULL;
	}
}
