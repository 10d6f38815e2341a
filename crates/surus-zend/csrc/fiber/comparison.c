#include "fiber/comparison.h"

#include "base.h"

#define MAX_BLOCKS 64
#define MAX_WORDS 256
#define MAX_REST 64

typedef uint64_t word __attribute__((aligned(1), may_alias));
typedef uint32_t half __attribute__((aligned(1), may_alias));
typedef uint64_t vector __attribute__((vector_size(32), aligned(1), may_alias));

typedef struct {
	const char *address;
	size_t offset;
} piece;

/* From 32 bytes on: the last vector may overlap the one before it. */
static struct {
	piece at;
	size_t last; /* where that vector begins */
} blocks[MAX_BLOCKS];
static size_t block_count;

/* Of 8 and of 4 bytes. What is smaller than a vector is two or more of them, which may overlap. */
static piece words[MAX_WORDS], halves[MAX_WORDS];
static size_t word_count, half_count;

/* What is smaller still. */
static struct {
	piece at;
	size_t size;
} rest[MAX_REST];
static size_t rest_count;

static size_t add_pieces(piece *to, size_t count, size_t width, const char *address, size_t size, size_t offset)
{
	for (size_t at = 0; at < size; at += width) {
		size_t from = at + width <= size ? at : size - width;
		ZEND_ASSERT(count < MAX_WORDS);
		to[count++] = (piece){address + from, offset + from};
	}
	return count;
}

void surus_comparison_add(const void *address, size_t size, size_t offset)
{
	piece at = {address, offset};
	if (size >= sizeof(vector)) {
		ZEND_ASSERT(block_count < MAX_BLOCKS);
		blocks[block_count].at = at;
		blocks[block_count++].last = size - sizeof(vector);
	} else if (size >= sizeof(word)) {
		word_count = add_pieces(words, word_count, sizeof(word), address, size, offset);
	} else if (size >= sizeof(half)) {
		half_count = add_pieces(halves, half_count, sizeof(half), address, size, offset);
	} else {
		ZEND_ASSERT(rest_count < MAX_REST);
		rest[rest_count].at = at;
		rest[rest_count++].size = size;
	}
}

/* Nearly always all are the same: so it does not stop at the first difference. */
static inline __attribute__((always_inline)) bool blocks_hold(const char *copy)
{
	vector found = {0};
	for (size_t i = 0; i < block_count; i++) {
		const char *now = blocks[i].at.address, *then = copy + blocks[i].at.offset;
		size_t last = blocks[i].last;
#pragma GCC unroll 4
		for (size_t at = 0; at < last; at += sizeof(vector)) {
			found |= *(const vector *)(const void *)(now + at) ^ *(const vector *)(const void *)(then + at);
		}
		found |= *(const vector *)(const void *)(now + last) ^ *(const vector *)(const void *)(then + last);
	}
	return !(found[0] | found[1] | found[2] | found[3]);
}

static bool blocks_hold_anywhere(const char *copy)
{
	return blocks_hold(copy);
}

#ifdef __x86_64__
static __attribute__((target("avx2"))) bool blocks_hold_with_avx2(const char *copy)
{
	return blocks_hold(copy);
}
#define BLOCKS_HOLD(copy) (__builtin_cpu_supports("avx2") ? blocks_hold_with_avx2(copy) : blocks_hold_anywhere(copy))
#else
#define BLOCKS_HOLD(copy) blocks_hold_anywhere(copy)
#endif

bool surus_comparison_holds(const char *copy)
{
	uint64_t found = 0;
	for (size_t i = 0; i < word_count; i++) {
		found |= *(const word *)(const void *)words[i].address ^ *(const word *)(const void *)(copy + words[i].offset);
	}
	for (size_t i = 0; i < half_count; i++) {
		found |= *(const half *)(const void *)halves[i].address ^ *(const half *)(const void *)(copy + halves[i].offset);
	}
	for (size_t i = 0; i < rest_count; i++) {
		found |= memcmp(rest[i].at.address, copy + rest[i].at.offset, rest[i].size) != 0;
	}
	return !found && BLOCKS_HOLD(copy);
}
