/* Isolates: what TSRM does for a thread, for a block of memory that is swapped in and out.
 *
 * On NTS builds all engine state is in plain structs. Each is a region. An isolate that is not entered keeps the
 * bytes of all regions in its image; entering copies them in. Pointers between regions stay valid because a region
 * is always at the same address when its isolate runs. Everything they point to belongs to the isolate (its heap, its
 * tables) or is immutable after startup.
 */
#include "isolate/isolate.h"
#include "connections/handle_request_end.h"
#include "hidden/hidden.h"
#include "isolate/checked_heap.h"
#include "isolate/tables.h"
#include "isolate/saved.h"
#include "os/state.h"
#include "pages/pages.h"
#include "persistent/dead.h"
#include "persistent/pgsql.h"
#include "persistent/pool.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_globals.h"
#include "Zend/zend_ini_scanner.h"
#include "Zend/zend_language_scanner.h"
#include "Zend/zend_virtual_cwd.h"
#include "ext/pcre/php_pcre.h"
#include "ext/standard/basic_functions.h"
#include "ext/standard/file.h"
#include "ext/standard/php_standard.h"

extern ZEND_API zend_php_scanner_globals language_scanner_globals;
extern ZEND_API zend_ini_scanner_globals ini_scanner_globals;

#define MAX_REGIONS 320

typedef struct {
	char *address;
	size_t size;
	size_t offset;             /* in an image */
	const char *name;
	zend_module_entry *module; /* whose globals_ctor makes a fresh one, or NULL */
	bool zero;                 /* a fresh one is zeroed, not the post-startup image */
} region;

static region regions[MAX_REGIONS];
static size_t region_count;
static size_t image_size;
static char *fresh_image; /* the process after startup */

static void add_region(const char *name, void *address, size_t size, zend_module_entry *module, bool zero)
{
	ZEND_ASSERT(region_count < MAX_REGIONS);
	region *r = &regions[region_count++];
	*r = (region){.name = name, .address = address, .size = size, .offset = image_size, .module = module, .zero = zero};
	image_size += ZEND_MM_ALIGNED_SIZE(size);
}

static bool is_region(const void *address)
{
	for (size_t i = 0; i < region_count; i++) {
		if (regions[i].address == address) {
			return true;
		}
	}
	return false;
}

bool surus_region_at(size_t index, void **address, size_t *size)
{
	if (index >= region_count) {
		return false;
	}
	*address = regions[index].address;
	*size = regions[index].size;
	return true;
}

static void save(char *image)
{
	for (size_t i = 0; i < region_count; i++) {
		memcpy(image + regions[i].offset, regions[i].address, regions[i].size);
	}
}

static void load(const char *image)
{
	for (size_t i = 0; i < region_count; i++) {
		memcpy(regions[i].address, image + regions[i].offset, regions[i].size);
	}
}

int surus_isolates_start(char *error, size_t error_size)
{
	add_region("executor_globals", &executor_globals, sizeof executor_globals, NULL, false);
	add_region("compiler_globals", &compiler_globals, sizeof compiler_globals, NULL, false);
	add_region("sapi_globals", &sapi_globals, sizeof sapi_globals, NULL, false);
	add_region("core_globals", &core_globals, sizeof core_globals, NULL, false);
	add_region("output_globals", &output_globals, sizeof output_globals, NULL, false);
	add_region("basic_globals", &basic_globals, sizeof basic_globals, NULL, false);
	add_region("file_globals", &file_globals, sizeof file_globals, NULL, false);
	add_region("language_scanner_globals", &language_scanner_globals, sizeof language_scanner_globals, NULL, false);
	add_region("ini_scanner_globals", &ini_scanner_globals, sizeof ini_scanner_globals, NULL, false);

	zend_module_entry *module;
	ZEND_HASH_FOREACH_PTR(&module_registry, module) {
		if (module->globals_size && module->globals_ptr && !is_region(module->globals_ptr)) {
			add_region(module->name, module->globals_ptr, module->globals_size, module, false);
		}
	} ZEND_HASH_FOREACH_END();

	static surus_region hidden[MAX_REGIONS / 2];
	int found = surus_hidden_locate(hidden, MAX_REGIONS / 2, error, error_size);
	if (found < 0) {
		return -1;
	}
	for (int i = 0; i < found; i++) {
		add_region(hidden[i].name, hidden[i].addr, hidden[i].size, NULL, hidden[i].init == SURUS_INIT_ZERO);
	}

	fresh_image = malloc(image_size);
	if (!fresh_image) {
		snprintf(error, error_size, "out of memory");
		return -1;
	}
	save(fresh_image);
	surus_pages_start();
	surus_saved_start();
	return 0;
}

size_t surus_regions_size(void)
{
	return image_size;
}

void surus_regions_save(char *image)
{
	save(image);
}

void surus_regions_load(const char *image)
{
	load(image);
}

const char *surus_region_name(size_t index)
{
	return regions[index].name;
}

static void leave(void)
{
	if (surus_entered) {
		save(surus_entered->image);
		surus_entered = NULL;
	}
}

surus_swaps surus_swapped;

surus_swaps surus_count_swaps(void)
{
	return surus_swapped;
}

void surus_isolate_enter(surus_isolate *isolate)
{
	if (surus_entered == isolate) {
		return;
	}
	surus_swapped.isolates++;
	leave();
	/* The heap first, then the globals; nothing allocates in between. */
	zend_mm_set_heap(isolate->heap);
	load(isolate->image);
	surus_entered = isolate;
	surus_hidden_entered();
	surus_os_enter(isolate->os);
}

void surus_isolate_touch(surus_isolate *isolate)
{
	surus_isolate_enter(isolate);
}

void *surus_isolate_peek(surus_isolate *isolate, void *address)
{
	if (surus_entered != isolate) {
		for (size_t i = 0; i < region_count; i++) {
			char *at = address;
			if (at >= regions[i].address && at < regions[i].address + regions[i].size) {
				return isolate->image + regions[i].offset + (at - regions[i].address);
			}
		}
	}
	return address;
}

/* The constructor and destructor of pcre's globals also make and free what belongs to the process: character tables,
 * JIT stack, contexts. An isolate has only its own cache. */
static zend_pcre_globals *pcre_globals_of(const region *r)
{
	return r->module && strcmp(r->module->name, "pcre") == 0 ? (zend_pcre_globals *)r->address : NULL;
}

static void fresh_globals(void)
{
	for (size_t i = 0; i < region_count; i++) {
		region *r = &regions[i];
		zend_pcre_globals *pcre = pcre_globals_of(r);
		if (pcre) {
			if (!SURUS_PCRE_CACHE_IS_OF_REQUEST(pcre)) {
				zend_hash_init(&pcre->pcre_cache, 0, NULL, pcre->pcre_cache.pDestructor, 1);
			}
		} else if (r->module && r->module->globals_ctor) {
			memset(r->address, 0, r->size);
			r->module->globals_ctor(r->address);
		} else if (r->zero) {
			memset(r->address, 0, r->size);
		}
	}
}

static bool make_heap(surus_isolate *isolate, bool for_snapshots, const char **error)
{
	*error = "out of memory";
	if (for_snapshots) {
		isolate->pages = surus_pages_new(&isolate->heap, error);
		return isolate->pages;
	}
	isolate->heap = zend_mm_startup();
	return isolate->heap;
}

surus_isolate *surus_isolate_new(const char *memory_limit, bool for_snapshots, const char **error)
{
	surus_isolate *isolate = calloc(1, sizeof *isolate);
	char *image = isolate ? malloc(image_size) : NULL;
	*error = "out of memory";
	if (!image || !make_heap(isolate, for_snapshots, error)) {
		free(image);
		free(isolate);
		return NULL;
	}
	leave();
	isolate->image = image;
	isolate->os = surus_os_state_new();
	zend_mm_set_heap(isolate->heap);
	load(fresh_image);
	surus_entered = isolate;
	surus_checked_heap_install(isolate);
	if (memory_limit) {
		isolate->memory_limit = zend_string_init(memory_limit, strlen(memory_limit), 1);
	}
	surus_tables_make(isolate);
	fresh_globals();
	surus_hidden_create();
	surus_tables_apply_settings();
	surus_os_enter(isolate->os);
	return isolate;
}

void surus_isolate_free(surus_isolate *isolate, bool clean)
{
	surus_handles_forget(isolate);
	surus_isolate_enter(isolate);
	surus_pool_end(isolate);
	if (clean) {
		zend_try {
			surus_pdo_list_dead();
			surus_pgsql_before_close(&EG(persistent_list));
			zend_hash_graceful_reverse_destroy(&EG(persistent_list));
		} zend_end_try();
		for (size_t i = 0; i < region_count; i++) {
			zend_pcre_globals *pcre = pcre_globals_of(&regions[i]);
			if (pcre && !SURUS_PCRE_CACHE_IS_OF_REQUEST(pcre)) {
				zend_hash_destroy(&pcre->pcre_cache);
			} else if (!pcre && regions[i].module && regions[i].module->globals_dtor) {
				regions[i].module->globals_dtor(regions[i].address);
			}
		}
	}
	surus_pdo_forget_dead(isolate);
	surus_hidden_destroy();
	surus_tables_free(isolate, clean);
	surus_checked_heap_remove(isolate);
	surus_entered = NULL;
	load(fresh_image);
	if (isolate->pages) {
		surus_pages_free(isolate->pages);
	} else {
		zend_mm_shutdown(isolate->heap, true, true);
	}
	surus_saved_free(isolate->saved);
	free(isolate->snapshot);
	surus_os_state_free(isolate->os);
	free(isolate->image);
	free(isolate);
}

/* What a request's fiber takes of the heap before it runs code, as long as it is parked: its VM stack and output buffer. */
#define FIBER_MEMORY (20 * 1024)

size_t surus_memory_allowed(const surus_isolate *isolate)
{
	return PG(memory_limit) > 0 ? (size_t)PG(memory_limit) + isolate->left_behind + isolate->fibers * FIBER_MEMORY : SIZE_MAX;
}

void surus_memory_lift(surus_isolate *isolate)
{
	if (isolate->checked_heap) {
		isolate->checked_heap->lifted = true;
	} else {
		zend_set_memory_limit(SIZE_MAX);
	}
}

void surus_memory_limit(surus_isolate *isolate)
{
	if (isolate->checked_heap) {
		isolate->checked_heap->lifted = false;
		return;
	}
	if (zend_set_memory_limit(surus_memory_allowed(isolate)) == FAILURE) {
		zend_set_memory_limit(zend_memory_usage(true)); /* not a byte more */
	}
}

void surus_memory_forgive(surus_isolate *isolate)
{
	isolate->left_behind = isolate->checked_heap ? isolate->checked_heap->bytes : zend_memory_usage(true);
	surus_memory_limit(isolate);
}

surus_isolate_stats surus_isolate_memory(surus_isolate *isolate)
{
	surus_isolate_enter(isolate);
	if (isolate->checked_heap) {
		size_t bytes = isolate->checked_heap->bytes;
		return (surus_isolate_stats){.memory_usage = bytes, .memory_peak = bytes, .memory_held = bytes};
	}
	return (surus_isolate_stats){
		.memory_usage = zend_memory_usage(false),
		.memory_peak = zend_memory_peak_usage(false),
		.memory_held = zend_memory_usage(true),
	};
}
