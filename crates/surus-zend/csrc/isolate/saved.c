/* Puts regions back to what they were.
 *
 * Bytes can be put back, memory of malloc cannot: what a pointer led to may be freed by now. PHP keeps there what outlives
 * requests. What is known of that stays as it is (`pieces`). Where any other pointer to such memory has changed, or what
 * stands next to one, as a count beside a table, the isolate must not be used again. */
#include "isolate/saved.h"
#include "hidden/engine.h"
#include "isolate/isolate.h"
#include "task/state.h"

#include "Zend/zend_globals.h"
/* Debian's extension has it; sizes are compared. */
#undef HAVE_MBREGEX
#define HAVE_MBREGEX 1
#include "ext/mbstring/mbstring.h"
#include "ext/pcre/php_pcre.h"
#include "ext/random/php_random.h"
#include "ext/standard/basic_functions.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* exif.c has it for itself. */
typedef struct {
	char *encodings[6];
	HashTable *tag_table_cache;
} exif_globals;

struct surus_saved {
	char *image;
	char *scratch; /* for the pieces */
	const surus_pages *pages;
	const surus_stack *stack;
};

typedef struct { char *address; size_t size; } piece;

#define MAX_PIECES 32
static piece pieces[MAX_PIECES];
static size_t piece_count, pieces_size;

/* Under valgrind malloc's addresses are as small as numbers, and valgrind itself sees who uses freed memory. */
static bool is_unchecked;

/* Where malloc's memory can be: below the program break, and from the lowest mapping of the process on. Zend's heaps, loaded
 * objects and OPcache's memory are there, too (is_elsewhere()). */
static uintptr_t break_start, mapped_start;

typedef struct { uintptr_t start, end; } range;

#define MAX_RANGES 1024
static range ranges[MAX_RANGES]; /* of what is neither malloc's nor a heap of PHP, sorted */
static size_t range_count;

#define WORD sizeof(uintptr_t)
/* Later mappings lie below the ones that there are, but not farther; none lies above. */
#define SPREAD ((uintptr_t)16 << 40)
#define STACK ((uintptr_t)8 << 20)
#define HIGHEST ((uintptr_t)1 << 47)
/* A table's counts stand next to the pointer to its memory. */
#define NEXT_TO (2 * WORD)

static void add_piece(void *address, size_t size)
{
	if (piece_count < MAX_PIECES) {
		pieces[piece_count++] = (piece){address, size};
		pieces_size += size;
	}
}

#define KEEP(field) add_piece(&(field), sizeof(field))

static void *globals_of(const char *name, size_t size)
{
	const zend_module_entry *module = zend_hash_str_find_ptr(&module_registry, name, strlen(name));
	return module && module->globals_size == size ? module->globals_ptr : NULL;
}

static void find_pieces(void)
{
	if (piece_count) {
		return;
	}
	KEEP(EG(persistent_list));
	KEEP(CG(script_encoding_list));
	KEEP(CG(script_encoding_list_size));
	KEEP(BG(url_adapt_session_hosts_ht));
	KEEP(BG(url_adapt_output_hosts_ht));
	KEEP(BG(url_adapt_session_ex).tags);
	KEEP(BG(url_adapt_output_ex).tags);
	/* The text that openlog() was given, which os/text.c has replaced: nobody reads it. */
	KEEP(BG(syslog_device));
	KEEP(surus_gc->buf);
	KEEP(surus_gc->buf_size);
	SURUS_RANDOM_DESCRIPTOR(KEEP)
	SURUS_STRTOD_STATE(KEEP)
	/* lcg_value() and uniqid() go on with their sequence. */
	KEEP(RANDOM_G(combined_lcg));
	KEEP(RANDOM_G(combined_lcg_seeded));
	zend_pcre_globals *pcre = globals_of("pcre", sizeof *pcre);
	if (pcre) {
		KEEP(pcre->pcre_cache);
	}
	/* The names of tags by number, which exif finds again if they are gone. */
	exif_globals *exif = globals_of("exif", sizeof *exif);
	if (exif) {
		KEEP(exif->tag_table_cache);
	}
	zend_mbstring_globals *mbstring = globals_of("mbstring", sizeof *mbstring);
	if (mbstring) {
		KEEP(mbstring->http_input_list);
		KEEP(mbstring->http_input_list_size);
		KEEP(mbstring->detect_order_list);
		KEEP(mbstring->detect_order_list_size);
		KEEP(mbstring->http_output_conv_mimetypes);
	}
}

void surus_saved_start(void)
{
	is_unchecked = getenv("SURUS_SNAPSHOT_UNCHECKED") != NULL;
}

surus_saved *surus_saved_new(void)
{
	surus_saved *saved = calloc(1, sizeof *saved);
	find_pieces();
	if (saved) {
		saved->image = malloc(surus_regions_size());
		saved->scratch = malloc(pieces_size);
	}
	if (!saved || !saved->image || !saved->scratch) {
		surus_saved_free(saved);
		return NULL;
	}
	return saved;
}

void surus_saved_free(surus_saved *saved)
{
	if (saved) {
		free(saved->image);
		free(saved->scratch);
		free(saved);
	}
}

static int by_start(const void *a, const void *b)
{
	uintptr_t first = ((const range *)a)->start, second = ((const range *)b)->start;
	return first < second ? -1 : first > second;
}

static void add_range(uintptr_t start, uintptr_t end)
{
	if (range_count < MAX_RANGES) {
		ranges[range_count++] = (range){start, end};
	}
}

static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		if (header->p_type == PT_LOAD) {
			uintptr_t start = info->dlpi_addr + header->p_vaddr;
			add_range(start, start + header->p_memsz);
		}
	}
	return 0;
}

/* The stack, and mappings that others share with this process: OPcache's. */
static void add_shared(void)
{
	char line[512], access[8];
	unsigned long start, end;
	FILE *maps = fopen("/proc/self/maps", "re");
	while (maps && fgets(line, sizeof line, maps)) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, access) != 3) {
			continue;
		}
		if (strstr(line, "[heap]")) {
			break_start = start;
		} else if (strstr(line, "[stack]")) {
			add_range(start > STACK ? start - STACK : 0, end); /* it grows */
		} else if (access[3] == 's') {
			add_range(start, end);
		}
		/* The program and its heap lie below what the kernel maps elsewhere. */
		if (!mapped_start && break_start && start > (uintptr_t)sbrk(0)) {
			mapped_start = start > SPREAD ? start - SPREAD : start;
		}
	}
	if (maps) {
		fclose(maps);
	}
}

/* Once: objects and shared memory come before isolates, and stay. */
static void find_ranges(void)
{
	if (!range_count) {
		dl_iterate_phdr(add_object, NULL);
		add_shared();
		qsort(ranges, range_count, sizeof *ranges, by_start);
	}
}

static bool is_elsewhere(uintptr_t address)
{
	size_t low = 0, high = range_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (ranges[middle].end <= address) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low < range_count && ranges[low].start <= address;
}

const char *surus_saved_take(surus_saved *saved, const surus_pages *pages, const surus_stack *stack)
{
	find_ranges();
	if (piece_count == MAX_PIECES || range_count == MAX_RANGES || !mapped_start) {
		return "the memory of this process is laid out otherwise";
	}
	saved->pages = pages;
	saved->stack = stack;
	surus_regions_save(saved->image);
	return NULL;
}

/* Whether it can be the address of a block of malloc. Numbers are smaller, or far larger. */
static bool is_foreign(const surus_saved *saved, uintptr_t word)
{
	if (word >= mapped_start) {
		return word < HIGHEST && !surus_pages_have(saved->pages, (const void *)word) && !is_elsewhere(word)
			&& !(word >= (uintptr_t)saved->stack->base && word <= (uintptr_t)saved->stack->top);
	}
	return word >= break_start && word < (uintptr_t)sbrk(0);
}

static bool is_kept(const char *address)
{
	for (size_t i = 0; i < piece_count; i++) {
		if (address + WORD > pieces[i].address && address < pieces[i].address + pieces[i].size) {
			return true;
		}
	}
	return false;
}

static uintptr_t word_at(const char *address)
{
	uintptr_t word;
	memcpy(&word, address, sizeof word);
	return word;
}

/* Whether the word at `at`, which has changed, is a pointer to malloc's memory, or stands next to one that has not changed. */
static bool is_of_malloc(const surus_saved *saved, const char *now, const char *then, size_t at, size_t size)
{
	size_t from = at > NEXT_TO ? at - NEXT_TO : 0, until = MIN(at + NEXT_TO + WORD, size - size % WORD);
	for (size_t i = from; i < until; i += WORD) {
		uintptr_t new = word_at(now + i), old = word_at(then + i);
		if ((i == at || new == old) && !is_kept(now + i) && (is_foreign(saved, new) || is_foreign(saved, old))) {
			return true;
		}
	}
	return false;
}

static bool is_in(const char *address, const void *start, size_t size)
{
	return address >= (const char *)start && address < (const char *)start + size;
}

/* What looks like an address and is none, or one that nobody follows. The collector has numbers only, but for its buffer, which
 * stays. The trampoline has what was called last by __call(), the scanner of ini files where it was in the last one. */
static bool is_harmless(const char *address)
{
	return is_in(address, surus_gc, sizeof *surus_gc) || is_in(address, &EG(trampoline), sizeof EG(trampoline))
		|| is_in(address, &ini_scanner_globals, sizeof ini_scanner_globals);
}

static bool can_be_put_back(const surus_saved *saved, const char *now, const char *then, size_t size, size_t *at)
{
	for (*at = 0; !is_unchecked && *at + WORD <= size; *at += WORD) {
		if (word_at(now + *at) != word_at(then + *at) && !is_kept(now + *at) && !is_harmless(now + *at) && is_of_malloc(saved, now, then, *at, size)) {
			return false;
		}
	}
	return true;
}

const char *surus_saved_restore(const surus_saved *saved, size_t *at)
{
	void *address;
	size_t size;
	const char *image = saved->image;
	for (size_t i = 0; surus_region_at(i, &address, &size); i++) {
		if (memcmp(address, image, size) != 0 && !can_be_put_back(saved, address, image, size, at)) {
			return surus_region_name(i);
		}
		image += ZEND_MM_ALIGNED_SIZE(size);
	}
	char *kept = saved->scratch;
	for (size_t i = 0; i < piece_count; i++) {
		kept = (char *)memcpy(kept, pieces[i].address, pieces[i].size) + pieces[i].size;
	}
	surus_regions_load(saved->image);
	kept = saved->scratch;
	for (size_t i = 0; i < piece_count; i++) {
		memcpy(pieces[i].address, kept, pieces[i].size);
		kept += pieces[i].size;
	}
	return NULL;
}
