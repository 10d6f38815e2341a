#include "hidden/hidden.h"
#include "hidden/engine.h"
#include "hidden/extensions.h"
#include "hidden/find.h"
#include "hidden/library.h"
#include "hidden/opcache.h"
#include "hidden/opcache_locks.h"

#include "main/SAPI.h"
#include "main/php_main.h"
#include "Zend/zend_signal.h"

#include <stdlib.h>

#define REQUEST_REGIONS 32

static surus_region request_regions[REQUEST_REGIONS];
static size_t request_region_count;

bool surus_not_found(surus_finder *finder, const char *name, const char *why)
{
	snprintf(finder->error, finder->error_size, "PHP's hidden state \"%s\" cannot be isolated: %s", name, why);
	return false;
}

bool surus_found(surus_finder *finder, const char *name, void *address, size_t size, surus_region_init init)
{
	if (!address) {
		return surus_not_found(finder, name, "no variable behaves like it");
	}
	if (finder->count == finder->capacity) {
		return surus_not_found(finder, name, "too many regions");
	}
	for (size_t i = 0; i < finder->count; i++) {
		const surus_region *other = &finder->out[i];
		if ((char *)address < (char *)other->addr + other->size && (char *)other->addr < (char *)address + size) {
			return surus_not_found(finder, name, other->name);
		}
	}
	finder->out[finder->count++] = (surus_region){.name = name, .addr = address, .size = size, .init = init};
	return true;
}

bool surus_is_of_request(surus_finder *finder)
{
	finder->out[finder->count - 1].of_request = true;
	return true;
}

zend_ini_entry *surus_ini_entry(const char *name)
{
	return zend_hash_str_find_ptr(EG(ini_directives), name, strlen(name));
}

bool surus_in_heap(const void *pointer)
{
	void *sample = emalloc(8);
	uintptr_t chunk = ~(uintptr_t)(2 * 1024 * 1024 - 1); /* ZEND_MM_CHUNK_SIZE; chunks are aligned to it */
	bool same = ((uintptr_t)pointer & chunk) == ((uintptr_t)sample & chunk) && ((uintptr_t)pointer & 7) == 0;
	efree(sample);
	return same;
}

/* The state of the signal layer, which each request's startup and shutdown reset. */
static bool find_signals(surus_finder *finder)
{
#ifdef ZEND_SIGNALS
	size_t size = offsetof(zend_signal_globals_t, check); /* depth, blocked, running, active */
	return surus_found(finder, "zend_signal_globals", &zend_signal_globals, size, SURUS_INIT_IMAGE);
#else
	return true;
#endif
}

static bool in_scratch_request(surus_finder *finder)
{
	static char context;
	SG(server_context) = &context;
	SG(request_info).request_method = "GET";
	SG(request_info).request_uri = "/";
	SG(sapi_headers).http_response_code = 200;
	if (php_request_startup() == FAILURE) {
		php_request_shutdown(NULL);
		SG(server_context) = NULL;
		return surus_not_found(finder, "all", "a scratch request does not start");
	}
	volatile bool ok = false;
	zend_first_try {
		EG(error_reporting) = 0; /* probing provokes notices */
		ok = surus_find_engine(finder) && surus_find_library(finder) && surus_find_opcache(finder)
			&& surus_find_extensions(finder);
	} zend_catch {
		surus_not_found(finder, "all", "a scratch request failed");
	} zend_end_try();
	php_request_shutdown(NULL);
	SG(server_context) = NULL;
	SG(request_info).request_method = NULL;
	SG(request_info).request_uri = NULL;
	return ok;
}

int surus_hidden_locate(surus_region *out, size_t capacity, char *error, size_t error_size)
{
	surus_finder finder = {.out = out, .capacity = capacity, .error = error, .error_size = error_size};
	if (!in_scratch_request(&finder) || !surus_verify_engine(&finder) || !find_signals(&finder)) {
		return -1;
	}
	/* Search again: a variable that was found by chance would not be found twice. */
	surus_region *again = calloc(capacity, sizeof *again);
	if (!again) {
		surus_not_found(&finder, "all", "out of memory");
		return -1;
	}
	surus_finder second = {.out = again, .capacity = capacity, .error = error, .error_size = error_size};
	bool same = in_scratch_request(&second) && surus_verify_engine(&second) && find_signals(&second);
	for (size_t i = 0; same && i < finder.count; i++) {
		if (again[i].addr != out[i].addr || again[i].size != out[i].size) {
			same = surus_not_found(&finder, out[i].name, "two searches disagree");
		}
	}
	free(again);
	if (!same) {
		return -1;
	}
	for (size_t i = 0; i < finder.count; i++) {
		if (out[i].of_request && request_region_count < REQUEST_REGIONS) {
			request_regions[request_region_count++] = out[i];
		}
	}
	return (int)finder.count;
}

const surus_region *surus_hidden_of_request(size_t *count)
{
	*count = request_region_count;
	return request_regions;
}

bool surus_hidden_create(void)
{
	/* As in gc_globals_ctor: no roots are recorded until the zend.enable_gc handler has made the buffer. */
	if (!surus_gc->buf) {
		gc_protect(true);
	}
	return surus_library_create();
}

void surus_hidden_destroy(void)
{
	gc_enable(false);
	gc_protect(true);
	free(surus_gc->buf);
	surus_gc->buf = NULL;
	surus_opcache_lock_drop();
	surus_library_destroy();
}

void surus_hidden_entered(void)
{
	surus_opcache_entered();
}

bool surus_hidden_may_park(void)
{
#ifdef ZEND_SIGNALS
	return SIGG(depth) == 0;
#else
	return true;
#endif
}
