#include "fiber/parts.h"
#include "fiber/comparison.h"
#include "fiber/file_state.h"
#include "fiber/mbstring.h"
#include "hidden/hidden.h"

#include "Zend/zend_smart_str.h"
#include "ext/date/php_date.h"
#include "ext/mysqli/php_mysqli_structs.h"
#include "ext/pcre/php_pcre.h"
#include "ext/random/php_random.h"
#include "ext/standard/basic_functions.h"
#include "ext/standard/file.h"

#define MAX_PARTS 48

typedef void (*end_part)(void *address, size_t size);

static zend_module_entry *find_module(const char *name)
{
	return zend_hash_str_find_ptr(&module_registry, name, strlen(name));
}

/* pgsql's last field: open connections by their parameters, from which pg_connect() reuses one. */
static void end_connections(void *address, size_t size)
{
	HashTable *connections = (HashTable *)((char *)address + size) - 1;
	zend_hash_destroy(connections);
	zend_hash_init(connections, 0, NULL, NULL, true);
}

static bool has_connections(void *address, size_t size)
{
	const HashTable *last = (HashTable *)((char *)address + size) - 1;
	uint32_t kind = GC_ARRAY | (uint32_t)((GC_PERSISTENT | GC_NOT_COLLECTABLE) << GC_FLAGS_SHIFT);
	return size > sizeof *last && GC_TYPE_INFO(last) == kind && !last->pDestructor;
}

/* openssl's only field: the errors that openssl_error_string() has not returned yet, from malloc; newer versions have a
 * second list for a mark. */
#define ERROR_LISTS 2

static void end_errors(void *address, size_t size)
{
	void **lists = address;
	for (size_t i = 0; i < size / sizeof *lists; i++) {
		free(lists[i]);
		lists[i] = NULL;
	}
}

static bool has_errors(size_t size)
{
	return size % sizeof(void *) == 0 && size <= ERROR_LISTS * sizeof(void *);
}

/* output_add_rewrite_var(), session.use_trans_sid; like the request shutdown of PHP's URL scanner. */
static void end_links(void *address, size_t size)
{
	(void)size;
	url_adapt_state_ex_t *links = address;
	smart_str *texts[] = {&links->tag, &links->arg, &links->val, &links->buf, &links->result, &links->form_app, &links->url_app, &links->attr_val};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		smart_str_free(texts[i]);
	}
	links->active = links->tag_type = links->attr_type = 0;
}

/* Frees the result of date_get_last_errors() by the module's own functions. They must not see the cache of time zones:
 * any request's objects may point into it. */
static void end_date_errors(void *address, size_t size)
{
	(void)size;
	zend_date_globals *globals = (zend_date_globals *)((char *)address - offsetof(zend_date_globals, last_errors));
	zend_module_entry *date = find_module("date");
	char *zone = globals->timezone;
	HashTable *cache = globals->tzcache;
	globals->timezone = NULL;
	globals->tzcache = NULL;
	if (date->request_shutdown_func) {
		date->request_shutdown_func(date->type, date->module_number);
	}
	if (date->post_deactivate_func) {
		date->post_deactivate_func();
	}
	globals->timezone = zone;
	globals->tzcache = cache;
}

/* The default directory of readdir(): closed, unless a variable of the request holds it. */
static void end_directory(void *address, size_t size)
{
	(void)size;
	zend_resource **directory = address;
	if (*directory) {
		zend_list_delete(*directory);
		*directory = NULL;
	}
}

/* Modules whose globals all belong to a request. Some hold memory that the module itself must free. */
static const struct { const char *module; bool ends, starts; end_part end; } request_modules[] = {
	{"session", true, true, NULL}, {"libxml", true, true, NULL}, {"json", false, false, NULL}, {"posix", false, false, NULL},
	{"sockets", true, false, NULL}, {"bcmath", false, false, NULL}, {"intl", true, true, NULL}, {"zlib", true, false, NULL},
	{"pgsql", true, true, end_connections}, {"openssl", false, false, end_errors}, {"gmp", true, false, NULL},
};

/* The module that frees what a hidden region holds. */
static const struct { const char *region, *module; } owners[] = {
	{"filter_globals", "filter"},
	{"soap_globals", "soap"},
};

typedef struct {
	char *address;
	size_t size;
	size_t offset;
	zend_module_entry *module; /* ends what the part holds; NULL: plain bytes */
	bool starts;               /* the module starts again when it has ended a boot */
	bool is_block;             /* a pointer to a block of the request's heap, or NULL when idle */
	end_part end;              /* ends what no module ends, or NULL */
	int whole;                 /* number of the module whose globals it is, or -1 */
	bool holds_value;          /* begins with a value, to which each fiber has a reference of its own */
} part;

static part parts[MAX_PARTS];
static size_t part_count;
static size_t parts_size;
/* mbstring's state, after the other parts. */
static size_t mb_offset, mb_size;

static part *add_part(void *address, size_t size, zend_module_entry *module)
{
	ZEND_ASSERT(part_count < MAX_PARTS);
	part *added = &parts[part_count++];
	*added = (part){.address = address, .size = size, .offset = parts_size, .module = module, .whole = -1};
	surus_comparison_add(address, size, parts_size);
	parts_size += ZEND_MM_ALIGNED_SIZE(size);
	return added;
}

static void add_modules(void)
{
	for (size_t i = 0; i < sizeof request_modules / sizeof *request_modules; i++) {
		zend_module_entry *module = find_module(request_modules[i].module);
		if (!module || !module->globals_size || !module->globals_ptr) {
			continue;
		}
		end_part end = request_modules[i].end;
		if ((end == end_connections && !has_connections(module->globals_ptr, module->globals_size))
			|| (end == end_errors && !has_errors(module->globals_size))) {
			continue; /* laid out otherwise: it stays the isolate's */
		}
		part *added = add_part(module->globals_ptr, module->globals_size, request_modules[i].ends ? module : NULL);
		added->starts = request_modules[i].starts;
		added->end = end;
		added->whole = module->module_number;
	}
}

/* Single fields of modules whose other globals are counters of the process, or caches. */
static void add_fields(void)
{
	zend_module_entry *pcre = find_module("pcre");
	if (pcre && pcre->globals_size == sizeof(zend_pcre_globals)) {
		zend_pcre_globals *globals = pcre->globals_ptr;
		add_part(&globals->error_code, sizeof globals->error_code, NULL);
	}
	zend_module_entry *mysqli = find_module("mysqli");
	if (mysqli && mysqli->globals_size == sizeof(zend_mysqli_globals)) {
		zend_mysqli_globals *globals = mysqli->globals_ptr;
		add_part(&globals->error_no, sizeof globals->error_no, NULL);
		add_part(&globals->error_msg, sizeof globals->error_msg, NULL)->is_block = true;
		add_part(&globals->report_mode, sizeof globals->report_mode, NULL);
	}
	/* The members after these ones belong to settings. */
	add_part(&BG(url_adapt_output_ex), offsetof(url_adapt_state_ex_t, tags), NULL)->end = end_links;
	add_part(&BG(url_adapt_session_ex), offsetof(url_adapt_state_ex_t, tags), NULL)->end = end_links;
	/* date_default_timezone_set(); the cache of time zones next to it belongs to the isolate. */
	zend_module_entry *date = find_module("date");
	if (date && date->globals_ptr) {
		zend_date_globals *globals = date->globals_ptr;
		add_part(&globals->timezone, sizeof globals->timezone, NULL)->is_block = true;
		add_part(&globals->last_errors, sizeof globals->last_errors, NULL)->end = end_date_errors;
	}
	add_part(&FG(pclose_ret), sizeof FG(pclose_ret), NULL);
	add_part(&FG(user_stream_current_filename), sizeof FG(user_stream_current_filename), NULL);
	add_part(&FG(default_context), sizeof FG(default_context), NULL)->end = surus_file_end_context;
	/* The table of filters before it is the isolate's. */
	char *rest = (char *)(&FG(stream_filters) + 1);
	add_part(rest, (size_t)((char *)(&file_globals + 1) - rest), NULL)->end = surus_file_end_rest;
}

void surus_parts_find(void)
{
	if (part_count) {
		return;
	}
	add_modules();
	add_fields();
	size_t count;
	const surus_region *hidden = surus_hidden_of_request(&count);
	for (size_t i = 0; i < count; i++) {
		zend_module_entry *owner = NULL;
		for (size_t o = 0; o < sizeof owners / sizeof *owners; o++) {
			if (strcmp(hidden[i].name, owners[o].region) == 0) {
				owner = find_module(owners[o].module);
			}
		}
		part *added = add_part(hidden[i].addr, hidden[i].size, owner);
		added->starts = true;
		added->holds_value = strcmp(hidden[i].name, "assert_globals") == 0; /* assert.callback */
		added->end = strcmp(hidden[i].name, "default_dir") == 0 ? end_directory : NULL;
	}
	mb_offset = parts_size;
	mb_size = surus_mb_find();
	parts_size += ZEND_MM_ALIGNED_SIZE(mb_size);
}

bool surus_parts_own_module(int module_number)
{
	for (size_t i = 0; i < part_count; i++) {
		if (parts[i].whole == module_number) {
			return true;
		}
	}
	return false;
}

bool surus_parts_cover(const void *address)
{
	for (size_t i = 0; i < part_count; i++) {
		const char *at = address;
		if (at >= parts[i].address && at < parts[i].address + parts[i].size) {
			return true;
		}
	}
	return false;
}

size_t surus_parts_size(void)
{
	return parts_size;
}

static void save(char *to)
{
	for (size_t i = 0; i < part_count; i++) {
		memcpy(to + parts[i].offset, parts[i].address, parts[i].size);
	}
}

static void load(const char *from)
{
	for (size_t i = 0; i < part_count; i++) {
		memcpy(parts[i].address, from + parts[i].offset, parts[i].size);
	}
}

void surus_parts_save(char *to)
{
	save(to);
	if (mb_size) {
		surus_mb_save(to + mb_offset);
	}
}

/* The parts of a fiber that differ from the idle ones, in their order. */
struct surus_own_parts {
	uint64_t which;
	size_t room;
	char bytes[];
};

static inline bool is_own(const struct surus_own_parts *own, size_t i)
{
	return own->which >> i & 1;
}

/* The address of a part in a copy of those that differ. */
static const char *own_part(const struct surus_own_parts *own, size_t which)
{
	const char *at = own->bytes;
	for (size_t i = 0; i < which; i++) {
		at += is_own(own, i) ? ZEND_MM_ALIGNED_SIZE(parts[i].size) : 0;
	}
	return at;
}

static struct surus_own_parts *save_own(struct surus_own_parts *own, const char *idle)
{
	uint64_t which = 0;
	size_t size = 0;
	for (size_t i = 0; i < part_count; i++) {
		if (memcmp(parts[i].address, idle + parts[i].offset, parts[i].size) != 0) {
			which |= (uint64_t)1 << i;
			size += ZEND_MM_ALIGNED_SIZE(parts[i].size);
		}
	}
	if (!own || own->room < size) {
		free(own);
		own = pemalloc(sizeof *own + size, true);
		own->room = size;
	}
	own->which = which;
	char *to = own->bytes;
	for (size_t i = 0; i < part_count; i++) {
		if (is_own(own, i)) {
			memcpy(to, parts[i].address, parts[i].size);
			memcpy(parts[i].address, idle + parts[i].offset, parts[i].size);
			to += ZEND_MM_ALIGNED_SIZE(parts[i].size);
		}
	}
	return own;
}

static void load_own(const struct surus_own_parts *own)
{
	const char *from = own->bytes;
	for (size_t i = 0; i < part_count; i++) {
		if (is_own(own, i)) {
			memcpy(parts[i].address, from, parts[i].size);
			from += ZEND_MM_ALIGNED_SIZE(parts[i].size);
		}
	}
}

void surus_parts_leave(surus_fiber_parts *of, const char *idle)
{
	if (!surus_comparison_holds(idle)) {
		of->own = save_own(of->own, idle);
	} else if (of->own) {
		free(of->own);
		of->own = NULL;
	}
	if (mb_size) {
		surus_mb_save(of->mb);
		surus_mb_load(idle + mb_offset);
	}
}

void surus_parts_enter(const surus_fiber_parts *of, const char *idle, bool are_idle)
{
	if (!are_idle) {
		load(idle);
	}
	if (of->own) {
		load_own(of->own);
	}
	if (mb_size) {
		surus_mb_load(of->mb);
	}
}

void surus_parts_take_fresh(char *idle)
{
	if (mb_size) {
		surus_mb_take_fresh(idle + mb_offset);
	}
}

bool surus_parts_make_room(surus_fiber_parts *new)
{
	*new = (surus_fiber_parts){.mb = mb_size ? malloc(mb_size) : NULL};
	return new->mb || !mb_size;
}

bool surus_parts_make(surus_fiber_parts *new, const char *idle)
{
	if (!surus_parts_make_room(new)) {
		return false;
	}
	for (size_t i = 0; i < part_count; i++) {
		if (parts[i].holds_value) {
			Z_TRY_ADDREF_P((zval *)(void *)(idle + parts[i].offset));
		}
	}
	if (mb_size) {
		surus_mb_make(new->mb, idle + mb_offset);
	}
	return true;
}

void surus_parts_free(surus_fiber_parts *old, const char *idle)
{
	for (size_t i = 0; i < part_count; i++) {
		if (parts[i].holds_value) {
			bool own = old->own && is_own(old->own, i);
			zval value; /* the idle one stays */
			memcpy(&value, own ? own_part(old->own, i) : idle + parts[i].offset, sizeof value);
			zval_ptr_dtor(&value);
		}
	}
	if (mb_size) {
		surus_mb_free(old->mb);
	}
}

void surus_parts_drop(surus_fiber_parts *old)
{
	free(old->own);
	free(old->mb);
	*old = (surus_fiber_parts){0};
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

/* Turns the time zone of the application into a setting, of which each request has a copy: the first request that sets
 * another zone would free the block. */
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

/* Frees the request's block and what the part points to, if there is any. */
static void end_rest(const part *p)
{
	if (p->end) {
		p->end(p->address, p->size);
	}
	if (p->is_block && *(char **)p->address) {
		efree(*(char **)p->address);
		*(char **)p->address = NULL;
	}
}

void surus_parts_settle(void)
{
	settle_timezone();
	for (size_t i = 0; i < part_count; i++) {
		zend_module_entry *module = parts[i].module;
		end_request(module);
		end_rest(&parts[i]);
		if (module && parts[i].starts && module->request_startup_func) {
			module->request_startup_func(module->type, module->module_number);
		}
	}
	if (mb_size) {
		surus_mb_settle();
	}
}

bool surus_parts_are(const char *idle)
{
	return surus_comparison_holds(idle) && (!mb_size || surus_mb_is(idle + mb_offset));
}

void surus_parts_reset(const char *idle)
{
	for (size_t i = 0; i < part_count; i++) {
		part *p = &parts[i];
		if (memcmp(p->address, idle + p->offset, p->size) != 0) {
			end_request(p->module);
			end_rest(p);
			if (p->holds_value) {
				zval_ptr_dtor((zval *)(void *)p->address);
			}
			memcpy(p->address, idle + p->offset, p->size);
			if (p->holds_value) {
				Z_TRY_ADDREF_P((zval *)(void *)p->address);
			}
		}
	}
	if (mb_size && !surus_mb_is(idle + mb_offset)) {
		surus_mb_reset(idle + mb_offset);
	}
}

void *surus_random_save(void)
{
	if (!RANDOM_G(mt19937_seeded)) {
		return NULL;
	}
	void *saved = emalloc(SURUS_RANDOM_SIZE);
	memcpy(saved, SURUS_RANDOM_STATE(), SURUS_RANDOM_SIZE);
	RANDOM_G(mt19937_seeded) = false;
	return saved;
}

void surus_random_load(void *saved)
{
	RANDOM_G(mt19937_seeded) = saved != NULL;
	if (saved) {
		memcpy(SURUS_RANDOM_STATE(), saved, SURUS_RANDOM_SIZE);
		efree(saved);
	}
}

void surus_random_reset(void)
{
	RANDOM_G(mt19937_seeded) = false;
}
