#include "fiber_parts.h"
#include "hidden.h"
#include "internal.h"

#include "ext/date/php_date.h"
#include "ext/random/php_random.h"

#define MAX_PARTS 32

/* Modules whose globals are a request's, all of them. Some hold memory that the module itself must end. */
static const struct { const char *module; bool ends; } request_modules[] = {
	{"session", true}, {"libxml", true}, {"mbstring", false}, {"json", false}, {"posix", false}, {"sockets", false}, {"bcmath", false},
};

/* The module that ends what a hidden region holds. */
static const struct { const char *region, *module; } owners[] = {
	{"filter_globals", "filter"},
	{"soap_globals", "soap"},
};

typedef struct {
	char *address;
	size_t size;
	size_t offset;
	zend_module_entry *module; /* ends what the part holds; NULL: plain bytes */
	bool is_block;             /* a pointer to a block of the request's heap, or NULL when idle */
} part;

static part parts[MAX_PARTS];
static size_t part_count;
static size_t parts_size;

static zend_module_entry *find_module(const char *name)
{
	return zend_hash_str_find_ptr(&module_registry, name, strlen(name));
}

static void add_part(void *address, size_t size, zend_module_entry *module, bool is_block)
{
	if (part_count < MAX_PARTS) {
		parts[part_count++] = (part){address, size, parts_size, module, is_block};
		parts_size += ZEND_MM_ALIGNED_SIZE(size);
	}
}

void surus_parts_find(void)
{
	if (part_count) {
		return;
	}
	for (size_t i = 0; i < sizeof request_modules / sizeof *request_modules; i++) {
		zend_module_entry *module = find_module(request_modules[i].module);
		if (module && module->globals_size && module->globals_ptr) {
			add_part(module->globals_ptr, module->globals_size, request_modules[i].ends ? module : NULL, false);
		}
	}
	/* date_default_timezone_set(); the cache of time zones beside it is the isolate's. */
	zend_module_entry *date = find_module("date");
	if (date && date->globals_ptr) {
		add_part(&((zend_date_globals *)date->globals_ptr)->timezone, sizeof(char *), NULL, true);
	}
	size_t count;
	const surus_region *hidden = surus_hidden_of_request(&count);
	for (size_t i = 0; i < count; i++) {
		zend_module_entry *owner = NULL;
		for (size_t o = 0; o < sizeof owners / sizeof *owners; o++) {
			if (strcmp(hidden[i].name, owners[o].region) == 0) {
				owner = find_module(owners[o].module);
			}
		}
		add_part(hidden[i].addr, hidden[i].size, owner, false);
	}
}

size_t surus_parts_size(void)
{
	return parts_size;
}

void surus_parts_save(char *to)
{
	for (size_t i = 0; i < part_count; i++) {
		memcpy(to + parts[i].offset, parts[i].address, parts[i].size);
	}
}

void surus_parts_load(const char *from)
{
	for (size_t i = 0; i < part_count; i++) {
		memcpy(parts[i].address, from + parts[i].offset, parts[i].size);
	}
}

static void end_request(zend_module_entry *module)
{
	if (!module) {
		return;
	}
	zend_try {
		if (module->request_shutdown_func) {
			module->request_shutdown_func(module->type, module->module_number);
		}
		if (module->post_deactivate_func) {
			module->post_deactivate_func();
		}
	} zend_end_try();
}

/* The time zone of the application becomes a setting, of which requests have copies: the block would be freed by the
 * first request that sets another one. */
static void settle_timezone(void)
{
	zend_module_entry *date = find_module("date");
	char **zone = date && date->globals_ptr ? &((zend_date_globals *)date->globals_ptr)->timezone : NULL;
	if (zone && *zone) {
		zend_string *name = zend_string_init("date.timezone", sizeof "date.timezone" - 1, false);
		zend_alter_ini_entry_chars(name, *zone, strlen(*zone), PHP_INI_ALL, PHP_INI_STAGE_RUNTIME);
		zend_string_release(name);
		efree(*zone);
		*zone = NULL;
	}
}

void surus_parts_settle(void)
{
	settle_timezone();
	for (size_t i = 0; i < part_count; i++) {
		zend_module_entry *module = parts[i].module;
		end_request(module);
		if (module && module->request_startup_func) {
			module->request_startup_func(module->type, module->module_number);
		}
	}
}

/* Many parts are one number or pointer. */
static inline bool differs(const part *p, const char *idle)
{
	const char *now = p->address, *then = idle + p->offset;
	switch (p->size) {
		case sizeof(uint32_t):
			return *(const uint32_t *)(const void *)now != *(const uint32_t *)(const void *)then;
		case sizeof(uint64_t):
			return *(const uint64_t *)(const void *)now != *(const uint64_t *)(const void *)then;
		default:
			return memcmp(now, then, p->size) != 0;
	}
}

bool surus_parts_are(const char *idle)
{
	for (size_t i = 0; i < part_count; i++) {
		if (differs(&parts[i], idle)) {
			return false;
		}
	}
	return true;
}

void surus_parts_reset(const char *idle)
{
	for (size_t i = 0; i < part_count; i++) {
		part *p = &parts[i];
		if (differs(p, idle)) {
			end_request(p->module);
			if (p->is_block) {
				efree(*(char **)p->address);
			}
			memcpy(p->address, idle + p->offset, p->size);
		}
	}
}

#if PHP_VERSION_ID < 80400
void *surus_random_save(void)
{
	if (!RANDOM_G(mt19937_seeded)) {
		return NULL;
	}
	void *saved = emalloc(php_random_algo_mt19937.state_size);
	memcpy(saved, RANDOM_G(mt19937)->state, php_random_algo_mt19937.state_size);
	RANDOM_G(mt19937_seeded) = false;
	return saved;
}

void surus_random_load(void *saved)
{
	RANDOM_G(mt19937_seeded) = saved != NULL;
	if (saved) {
		memcpy(RANDOM_G(mt19937)->state, saved, php_random_algo_mt19937.state_size);
		efree(saved);
	}
}

void surus_random_reset(void)
{
	RANDOM_G(mt19937_seeded) = false;
}
#else
void *surus_random_save(void)
{
	if (!RANDOM_G(mt19937_seeded)) {
		return NULL;
	}
	php_random_status_state_mt19937 *saved = emalloc(sizeof *saved);
	*saved = RANDOM_G(mt19937);
	RANDOM_G(mt19937_seeded) = false;
	return saved;
}

void surus_random_load(void *saved)
{
	RANDOM_G(mt19937_seeded) = saved != NULL;
	if (saved) {
		RANDOM_G(mt19937) = *(php_random_status_state_mt19937 *)saved;
		efree(saved);
	}
}

void surus_random_reset(void)
{
	RANDOM_G(mt19937_seeded) = false;
}
#endif
