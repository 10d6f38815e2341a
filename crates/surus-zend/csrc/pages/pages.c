/* Memory that goes back to what it was.
 *
 * The chunks of a heap lie in one range of addresses. When it is taken, the pages that are in use are written to a memfd,
 * which takes their place as a private mapping: the first write to a page makes a copy. Pages that were written once stay
 * copies ("hot") and get their content back after each request, without a fault; those that prove not to be written usually
 * go back to the file. What was free when the heap was taken needs nothing: its content is nobody's.
 *
 * Faults cost more than copies: docs/internals/snapshots.md has the figures. */
#include "pages/pages.h"
#include "pages/layout.h"
#include "pages/written.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Addresses of 8 GB, of which only what is used costs memory. The first ones are the area of mapped pointers. */
#define SLOTS 4096
#define MAP_SLOTS 8

/* Every so often hot pages that nobody has written any more go back to the file. */
#define LOOK_EVERY 64
#define IDLE_MAX 8
/* Chunks that requests have added: so many keep their memory for the next one. */
#define KEPT_SLOTS 2

typedef struct {
	bool used, touched;
	uint16_t pages; /* of its 512 that somebody has asked for */
} slot;

struct surus_pages {
	zend_mm_storage storage;
	char *base;
	slot slots[SLOTS], saved[SLOTS];
	size_t top, saved_top; /* no slot from here on was ever used */
	/* Of what was taken: */
	char *original; /* the same pages, read only */
	size_t kept;    /* bytes of them */
	size_t count;   /* pages from `base`, within which everything lies */
	uint64_t *live, *is_hot;
	uint32_t *hot;
	uint8_t *idle; /* of hot[i]: how often it was looked at and found unchanged */
	size_t hot_count;
	long faults;
	surus_pages_stats stats;
};

static size_t kept_bytes;

size_t surus_pages_kept(void)
{
	return kept_bytes;
}

static inline bool has_bit(const uint64_t *map, size_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static inline void set_bit(uint64_t *map, size_t i)
{
	map[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void clear_bit(uint64_t *map, size_t i)
{
	map[i / 64] &= ~((uint64_t)1 << (i % 64));
}

/* ---- the storage of Zend's heap ---- */

static size_t slots_for(size_t size)
{
	return (size + SURUS_CHUNK - 1) / SURUS_CHUNK;
}

static size_t slot_of(const surus_pages *pages, const void *address)
{
	return (size_t)((const char *)address - pages->base) / SURUS_CHUNK;
}

static void use(surus_pages *pages, size_t first, size_t from, size_t size)
{
	size_t end = first + slots_for(size);
	for (size_t i = from; i < end; i++) {
		size_t rest = size - (i - first) * SURUS_CHUNK;
		pages->slots[i] = (slot){true, true, (uint16_t)((MIN(rest, SURUS_CHUNK) + SURUS_PAGE - 1) / SURUS_PAGE)};
	}
	pages->top = MAX(pages->top, end);
}

static void *allocate(zend_mm_storage *storage, size_t size, size_t alignment)
{
	surus_pages *pages = storage->data;
	size_t wanted = slots_for(size), run = 0;
	if (alignment > SURUS_CHUNK) {
		return NULL;
	}
	for (size_t i = MAP_SLOTS; i < SLOTS; i++) {
		run = pages->slots[i].used ? 0 : run + 1;
		if (run == wanted) {
			size_t first = i + 1 - wanted;
			char *start = pages->base + first * SURUS_CHUNK;
			/* Zend's heap takes new memory for zeroed where a chunk has its maps: in its first page. */
			if (pages->slots[first].touched) {
				memset(start, 0, SURUS_PAGE);
			}
			use(pages, first, first, size);
			return start;
		}
	}
	return NULL;
}

/* Memory goes back to the system, but for what is put back anyway. */
static void release(surus_pages *pages, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++) {
		pages->slots[i].used = false;
		if (!pages->saved[i].used) {
			madvise(pages->base + i * SURUS_CHUNK, SURUS_CHUNK, MADV_DONTNEED);
			pages->slots[i].touched = false;
		}
	}
}

static void release_chunk(zend_mm_storage *storage, void *chunk, size_t size)
{
	surus_pages *pages = storage->data;
	size_t first = slot_of(pages, chunk);
	release(pages, first, first + slots_for(size));
}

static bool truncate_chunk(zend_mm_storage *storage, void *chunk, size_t old_size, size_t new_size)
{
	surus_pages *pages = storage->data;
	size_t first = slot_of(pages, chunk);
	release(pages, first + slots_for(new_size), first + slots_for(old_size));
	use(pages, first, first, new_size);
	return true;
}

static bool extend_chunk(zend_mm_storage *storage, void *chunk, size_t old_size, size_t new_size)
{
	surus_pages *pages = storage->data;
	size_t first = slot_of(pages, chunk), have = slots_for(old_size), wanted = slots_for(new_size);
	if (first + wanted > SLOTS) {
		return false;
	}
	for (size_t i = first + have; i < first + wanted; i++) {
		if (pages->slots[i].used) {
			return false;
		}
	}
	use(pages, first, first, new_size);
	return true;
}

static char *reserve(void)
{
	size_t size = SLOTS * SURUS_CHUNK;
	char *range = mmap(NULL, size + SURUS_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (range == MAP_FAILED) {
		return NULL;
	}
	char *base = (char *)(((uintptr_t)range + SURUS_CHUNK - 1) & ~(SURUS_CHUNK - 1));
	if (base > range) {
		munmap(range, (size_t)(base - range));
	}
	munmap(base + size, SURUS_CHUNK - (size_t)(base - range));
	madvise(base, size, MADV_NOHUGEPAGE);
	return base;
}

void surus_pages_start(void)
{
	surus_written_start();
}

surus_pages *surus_pages_new(zend_mm_heap **heap, const char **error)
{
	surus_pages *pages = calloc(1, sizeof *pages);
	*error = "there is no room for its memory: 8 GB of addresses, which are not used as long as there is nothing in them";
	if (!pages || !(pages->base = reserve())) {
		free(pages);
		return NULL;
	}
	zend_mm_storage made = {.handlers = {allocate, release_chunk, truncate_chunk, extend_chunk}, .data = pages};
	memcpy(&pages->storage, &made, sizeof made);
	*heap = zend_mm_startup_ex(&made.handlers, pages, 0);
	surus_chunk *first = (surus_chunk *)(pages->base + MAP_SLOTS * SURUS_CHUNK);
	*error = *heap && pages->slots[MAP_SLOTS].used ? surus_layout_find(*heap, first) : "it has no first chunk";
	if (*error) {
		surus_pages_free(pages);
		return NULL;
	}
	surus_layout_set_storage(*heap, &pages->storage);
	if (zend_mm_get_storage(*heap) != &pages->storage) {
		*error = "it has another storage";
		surus_pages_free(pages);
		return NULL;
	}
	return pages;
}

void surus_pages_free(surus_pages *pages)
{
	munmap(pages->base, SLOTS * SURUS_CHUNK);
	if (pages->original) {
		munmap(pages->original, pages->count * SURUS_PAGE);
		kept_bytes -= pages->kept;
	}
	free(pages->live);
	free(pages->is_hot);
	free(pages->hot);
	free(pages->idle);
	free(pages);
}

bool surus_pages_have(const surus_pages *pages, const void *address)
{
	/* The engine keeps the area of mapped pointers by its address less one. */
	return (const char *)address + 1 >= pages->base && (const char *)address < pages->base + SLOTS * SURUS_CHUNK;
}

void *surus_pages_map_area(surus_pages *pages, size_t *slots)
{
	*slots = MAP_SLOTS * SURUS_CHUNK / sizeof(void *);
	return pages->base;
}

/* ---- taking ---- */

static void note_present(void *who, size_t page)
{
	set_bit(who, page);
}

/* Marks what is in use: allocated, and written at some time, if the kernel tells. */
static void find_live(surus_pages *pages, size_t map_area_used)
{
	uint64_t *present = calloc(pages->count / 64, sizeof *present);
	bool is_told = present && surus_written_find(pages->base, pages->count, note_present, present);
	for (size_t i = 0; i < (map_area_used + SURUS_PAGE - 1) / SURUS_PAGE; i++) {
		set_bit(pages->live, i);
	}
	surus_chunk *first = (surus_chunk *)(pages->base + MAP_SLOTS * SURUS_CHUNK);
	for (size_t i = MAP_SLOTS; i < pages->top; i++) {
		if (!pages->slots[i].used) {
			continue;
		}
		surus_chunk *here = (surus_chunk *)(pages->base + i * SURUS_CHUNK), *chunk = first;
		while (chunk != here && (chunk = chunk->next) != first) {
		}
		bool is_chunk = chunk == here;
		for (size_t page = 0; page < pages->slots[i].pages; page++) {
			size_t at = i * SURUS_CHUNK_PAGES + page;
			if ((!is_chunk || surus_layout_is_allocated(here, page)) && (!is_told || has_bit(present, at))) {
				set_bit(pages->live, at);
			}
		}
	}
	free(present);
	for (size_t i = 0; i < pages->count; i++) {
		pages->stats.live += has_bit(pages->live, i);
	}
}

/* Puts the file in the place of the slot's pages, up to the last one that is live. */
static bool map_slot(surus_pages *pages, int file, size_t number)
{
	size_t end = 0;
	for (size_t i = 0; i < SURUS_CHUNK_PAGES; i++) {
		size_t page = number * SURUS_CHUNK_PAGES + i;
		if (has_bit(pages->live, page)) {
			end = i + 1;
			off_t at = (off_t)(page * SURUS_PAGE);
			if (pwrite(file, pages->base + at, SURUS_PAGE, at) != (ssize_t)SURUS_PAGE) {
				return false;
			}
		}
	}
	if (!end) {
		return true;
	}
	char *start = pages->base + number * SURUS_CHUNK;
	int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
	if (mmap(start, end * SURUS_PAGE, PROT_READ | PROT_WRITE, flags, file, (off_t)(number * SURUS_CHUNK)) == MAP_FAILED) {
		return false;
	}
	madvise(start, end * SURUS_PAGE, MADV_NOHUGEPAGE);
	return true;
}

static bool map_all(surus_pages *pages, int file)
{
	size_t size = pages->count * SURUS_PAGE;
	if (ftruncate(file, (off_t)size) != 0) {
		return false;
	}
	for (size_t i = 0; i < pages->top; i++) {
		if (!map_slot(pages, file, i)) {
			return false;
		}
	}
	char *original = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
	pages->original = original == MAP_FAILED ? NULL : original;
	return pages->original;
}

const char *surus_pages_take(surus_pages *pages, size_t map_area_used)
{
	zend_mm_heap *heap = ((surus_chunk *)(pages->base + MAP_SLOTS * SURUS_CHUNK))->heap;
	surus_written_open();
	surus_layout_forget_free_blocks(heap);
	pages->top = MAX(pages->top, MAP_SLOTS);
	pages->count = pages->top * SURUS_CHUNK_PAGES;
	pages->live = calloc(pages->count / 64, sizeof *pages->live);
	pages->is_hot = calloc(pages->count / 64, sizeof *pages->is_hot);
	pages->hot = calloc(pages->count, sizeof *pages->hot);
	pages->idle = calloc(pages->count, sizeof *pages->idle);
	if (!pages->live || !pages->is_hot || !pages->hot || !pages->idle) {
		return "there is no memory for it";
	}
	find_live(pages, map_area_used);
	int file = memfd_create("surus snapshot", MFD_CLOEXEC);
	bool mapped = file >= 0 && map_all(pages, file);
	if (file >= 0) {
		close(file); /* the mappings stay */
	}
	if (!mapped) {
		return "there is no memory for it";
	}
	pages->kept = pages->stats.live * SURUS_PAGE;
	kept_bytes += pages->kept;
	memcpy(pages->saved, pages->slots, sizeof pages->saved);
	pages->saved_top = pages->top;
	pages->faults = -1;
	return NULL;
}

/* ---- putting back ---- */

static void make_hot(void *who, size_t page)
{
	surus_pages *pages = who;
	if (has_bit(pages->live, page) && !has_bit(pages->is_hot, page)) {
		set_bit(pages->is_hot, page);
		pages->idle[pages->hot_count] = 0;
		pages->hot[pages->hot_count++] = (uint32_t)page;
	}
}

static inline bool is_unchanged(const surus_pages *pages, size_t page)
{
	return memcmp(pages->base + page * SURUS_PAGE, pages->original + page * SURUS_PAGE, SURUS_PAGE) == 0;
}

static void find_written(surus_pages *pages)
{
	pages->stats.scans++;
	if (surus_written_find(pages->base, pages->count, make_hot, pages)) {
		return;
	}
	for (size_t i = 0; i < pages->count; i++) {
		if (has_bit(pages->live, i) && !has_bit(pages->is_hot, i) && !is_unchanged(pages, i)) {
			make_hot(pages, i);
		}
	}
}

static void put_back(surus_pages *pages)
{
	for (size_t i = 0; i < pages->hot_count; i++) {
		size_t at = (size_t)pages->hot[i] * SURUS_PAGE;
		memcpy(pages->base + at, pages->original + at, SURUS_PAGE);
	}
	pages->stats.restored += pages->hot_count;
}

/* As put_back(), and gives those to the file that were unchanged again and again. */
static void put_back_and_look(surus_pages *pages)
{
	size_t kept = 0;
	for (size_t i = 0; i < pages->hot_count; i++) {
		size_t page = pages->hot[i];
		char *at = pages->base + page * SURUS_PAGE;
		uint8_t idle = pages->idle[i];
		if (!is_unchanged(pages, page)) {
			memcpy(at, pages->original + page * SURUS_PAGE, SURUS_PAGE);
			pages->stats.restored++;
			idle = 0;
		} else if (++idle >= IDLE_MAX && madvise(at, SURUS_PAGE, MADV_DONTNEED) == 0) {
			clear_bit(pages->is_hot, page);
			continue;
		}
		pages->hot[kept] = (uint32_t)page;
		pages->idle[kept++] = idle;
	}
	pages->hot_count = kept;
}

static void forget_new_slots(surus_pages *pages)
{
	size_t kept = 0, top = pages->saved_top;
	for (size_t i = MAP_SLOTS; i < pages->top; i++) {
		slot was = pages->saved[i], now = pages->slots[i];
		if (!was.used && now.touched && ++kept > KEPT_SLOTS) {
			madvise(pages->base + i * SURUS_CHUNK, SURUS_CHUNK, MADV_DONTNEED);
			now.touched = false;
			kept--;
		}
		pages->slots[i] = (slot){was.used, was.used || now.touched, was.pages};
		if (now.touched) {
			top = MAX(top, i + 1);
		}
	}
	pages->top = top;
}

void surus_pages_restore(surus_pages *pages)
{
	forget_new_slots(pages);
	if (surus_written_has_faulted(&pages->faults)) {
		find_written(pages);
	}
	if (++pages->stats.times % LOOK_EVERY == 0) {
		put_back_and_look(pages);
	} else {
		put_back(pages);
	}
	surus_written_note_faults(&pages->faults);
}

surus_pages_stats surus_pages_count(const surus_pages *pages)
{
	surus_pages_stats stats = pages->stats;
	stats.hot = pages->hot_count;
	return stats;
}
