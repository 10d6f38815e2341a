/* What each isolate has besides its heap: tables with entries that belong to the process, settings and superglobals, a
 * list of persistent connections, and the area of mapped pointers. */
#include "isolate/tables.h"
#include "isolate/original.h"
#include "pages/pages.h"
#include "task/state.h"

#include "Zend/zend_globals.h"
#include "Zend/zend_map_ptr.h"
#include "ext/standard/basic_functions.h"

/* A new table with shared entries, all made at startup and never freed through this table. */
static HashTable *copy_table(const HashTable *source, bool on_heap)
{
	HashTable *copy = pemalloc(sizeof *copy, !on_heap);
	zend_hash_init(copy, zend_hash_num_elements(source), NULL, source->pDestructor, !on_heap);
	zend_hash_real_init_mixed(copy);
	zend_string *key;
	zval *value;
	ZEND_HASH_FOREACH_STR_KEY_VAL((HashTable *)source, key, value) {
		_zend_hash_append(copy, key, value);
	} ZEND_HASH_FOREACH_END();
	return copy;
}

/* As each isolate begins with: the table, and what it leads to in one block. */
typedef struct {
	surus_original data;
	HashTable table;
} original_table;

static HashTable *copy_large_table(const HashTable *source, bool on_heap, original_table *original)
{
	if (on_heap) {
		return copy_table(source, true);
	}
	if (!original->data.size) {
		HashTable *first = copy_table(source, false);
		if (surus_original_keep(&original->data, HT_GET_DATA_ADDR(first), HT_SIZE(first))) {
			original->table = *first;
		}
		return first;
	}
	bool is_same = original->table.nNumOfElements == source->nNumOfElements && (HT_FLAGS(source) & HASH_FLAG_STATIC_KEYS);
	void *data = is_same ? surus_original_copy(&original->data) : NULL;
	if (!data) {
		return copy_table(source, false);
	}
	HashTable *copy = pemalloc(sizeof *copy, 1);
	*copy = original->table;
	HT_SET_DATA_ADDR(copy, data);
	return copy;
}

static void free_table(HashTable *table)
{
	table->pDestructor = NULL; /* the entries belong to the process */
	zend_hash_destroy(table);
	pefree(table, 1);
}

/* After a failure user entries may still be in a table; their keys are on a heap that is freed as a whole. */
static void drop_entries(HashTable *table)
{
	table->nNumUsed = 0;
	table->nNumOfElements = 0;
}

static HashTable *copy_auto_globals(const HashTable *source, bool on_heap)
{
	HashTable *copy = pemalloc(sizeof *copy, !on_heap);
	zend_hash_init(copy, zend_hash_num_elements(source), NULL, source->pDestructor, !on_heap);
	zend_string *key;
	zend_auto_global *global;
	ZEND_HASH_FOREACH_STR_KEY_PTR((HashTable *)source, key, global) {
		zend_hash_add_mem(copy, key, global, sizeof *global);
	} ZEND_HASH_FOREACH_END();
	return copy;
}

static void free_auto_globals(HashTable *table)
{
	zend_auto_global *global;
	ZEND_HASH_FOREACH_PTR(table, global) {
		pefree(global, 1);
	} ZEND_HASH_FOREACH_END();
	free_table(table);
}

static void copy_ini_directives(surus_isolate *isolate)
{
	bool persistent = !isolate->tables_on_heap;
	HashTable *source = EG(ini_directives);
	HashTable *copy = pemalloc(sizeof *copy, persistent);
	zend_hash_init(copy, zend_hash_num_elements(source), NULL, NULL, persistent);
	zend_hash_real_init_mixed(copy);
	static surus_original entries;
	size_t size = zend_hash_num_elements(source) * sizeof(zend_ini_entry);
	bool is_copied = persistent && entries.size == size && (isolate->ini_entries = surus_original_copy(&entries));
	if (!is_copied) {
		isolate->ini_entries = pemalloc(size, persistent);
	}
	zend_ini_entry *own = isolate->ini_entries;
	zend_string *key;
	zend_ini_entry *entry;
	ZEND_HASH_FOREACH_STR_KEY_PTR(source, key, entry) {
		if (!is_copied) {
			*own = *entry;
		}
		zval value;
		ZVAL_PTR(&value, own);
		_zend_hash_append(copy, key, &value);
		own++;
	} ZEND_HASH_FOREACH_END();
	if (persistent && !is_copied) {
		surus_original_keep(&entries, isolate->ini_entries, size);
	}
	zend_ini_entry *limit = isolate->memory_limit ? zend_hash_str_find_ptr(copy, ZEND_STRL("memory_limit")) : NULL;
	if (limit) {
		limit->value = isolate->memory_limit;
	}
	EG(ini_directives) = copy;
	EG(modified_ini_directives) = NULL;
	EG(error_reporting_ini_entry) = NULL;
}

const char *surus_setting_name(uint32_t *next)
{
	HashTable *all = EG(ini_directives);
	while (*next < all->nNumUsed) {
		Bucket *found = &all->arData[(*next)++];
		if (Z_TYPE(found->val) != IS_UNDEF && found->key) {
			return ZSTR_VAL(found->key);
		}
	}
	return NULL;
}

static void say_nothing(int type, zend_string *file, const uint32_t line, zend_string *message)
{
}

/* As zend_new_thread_end_handler does for a thread: writes each setting to the globals that it controls. Messages are
 * dropped: they were reported at startup. */
void surus_tables_apply_settings(void)
{
	__typeof__(zend_error_cb) error_cb = zend_error_cb;
	zend_error_cb = say_nothing;
	zend_ini_entry *entry;
	ZEND_HASH_FOREACH_PTR(EG(ini_directives), entry) {
		if (entry->on_modify) {
			entry->on_modify(entry, entry->value, entry->mh_arg1, entry->mh_arg2, entry->mh_arg3, ZEND_INI_STAGE_STARTUP);
		}
	} ZEND_HASH_FOREACH_END();
	zend_error_cb = error_cb;
}

void surus_tables_make(surus_isolate *isolate)
{
	/* What requests add to them goes back with the heap. */
	bool on_heap = isolate->tables_on_heap = isolate->pages;
	static original_table functions, classes, constants;
	CG(function_table) = EG(function_table) = copy_large_table(CG(function_table), on_heap, &functions);
	CG(class_table) = EG(class_table) = copy_large_table(CG(class_table), on_heap, &classes);
	CG(auto_globals) = copy_auto_globals(CG(auto_globals), on_heap);
	EG(zend_constants) = copy_large_table(EG(zend_constants), on_heap, &constants);

	dtor_func_t close_persistent = EG(persistent_list).pDestructor;
	zend_hash_init(&EG(persistent_list), 8, NULL, close_persistent, 1);

	/* zend.script_encoding: its handler frees the list that it finds. */
	CG(script_encoding_list) = NULL;
	CG(script_encoding_list_size) = 0;

	zend_hash_init(&BG(url_adapt_session_hosts_ht), 0, NULL, NULL, 1);
	zend_hash_init(&BG(url_adapt_output_hosts_ht), 0, NULL, NULL, 1);
	/* Their handlers fill the table that they find, and allocate one where there is none. */
	BG(url_adapt_session_ex).tags = NULL;
	BG(url_adapt_output_ex).tags = NULL;

	void *map;
	if (isolate->pages) {
		size_t slots;
		map = surus_pages_map_area(isolate->pages, &slots);
		CG(map_ptr_size) = slots;
	} else {
		map = surus_original_zeros(CG(map_ptr_size) * sizeof(void *));
		if (!map) {
			map = pecalloc(CG(map_ptr_size), sizeof(void *), 1);
		}
	}
	CG(map_ptr_real_base) = map;
	CG(map_ptr_base) = ZEND_MAP_PTR_BIASED_BASE(map);

	copy_ini_directives(isolate);
}

/* Allocated with malloc() by the handler of url_rewriter.tags or session.trans_sid_tags. */
static void free_tags(HashTable *tags)
{
	if (tags) {
		zend_hash_destroy(tags);
		free(tags);
	}
}

static HashTable *leave_heap(HashTable *table)
{
	HashTable *copy = pemalloc(sizeof *copy, 1);
	void *data = pemalloc(HT_SIZE(table), 1);
	*copy = *table;
	memcpy(data, HT_GET_DATA_ADDR(table), HT_SIZE(table));
	HT_SET_DATA_ADDR(copy, data);
	GC_ADD_FLAGS(copy, GC_PERSISTENT);
	return copy;
}

static void ini_leaves_heap(surus_isolate *isolate)
{
	size_t size = zend_hash_num_elements(EG(ini_directives)) * sizeof(zend_ini_entry);
	zend_ini_entry *old = isolate->ini_entries, *new = pemalloc(size, 1);
	HashTable *tables[] = {EG(ini_directives) = leave_heap(EG(ini_directives)), EG(modified_ini_directives)};
	memcpy(new, old, size);
	for (size_t i = 0; i < 2; i++) {
		zval *entry;
		if (tables[i]) {
			ZEND_HASH_FOREACH_VAL(tables[i], entry) {
				Z_PTR_P(entry) = new + ((zend_ini_entry *)Z_PTR_P(entry) - old);
			} ZEND_HASH_FOREACH_END();
		}
	}
	EG(error_reporting_ini_entry) = NULL; /* looked up again */
	isolate->ini_entries = new;
}

void surus_tables_leave_heap(surus_isolate *isolate)
{
	if (!isolate->tables_on_heap) {
		return;
	}
	isolate->tables_on_heap = false;
	CG(function_table) = EG(function_table) = leave_heap(CG(function_table));
	CG(class_table) = EG(class_table) = leave_heap(CG(class_table));
	EG(zend_constants) = leave_heap(EG(zend_constants));
	CG(auto_globals) = leave_heap(CG(auto_globals));
	zval *global;
	ZEND_HASH_FOREACH_VAL(CG(auto_globals), global) {
		void *copy = pemalloc(sizeof(zend_auto_global), 1);
		Z_PTR_P(global) = memcpy(copy, Z_PTR_P(global), sizeof(zend_auto_global));
	} ZEND_HASH_FOREACH_END();
	ini_leaves_heap(isolate);
}

static void free_tables(const surus_isolate *isolate, bool clean)
{
	free_table(EG(ini_directives));
	pefree(isolate->ini_entries, 1);
	free_auto_globals(CG(auto_globals));
	if (!clean) {
		drop_entries(CG(function_table));
		drop_entries(CG(class_table));
		drop_entries(EG(zend_constants));
	}
	free_table(CG(function_table));
	free_table(CG(class_table));
	free_table(EG(zend_constants));
}

void surus_tables_free(surus_isolate *isolate, bool clean)
{
	if (!isolate->tables_on_heap) {
		free_tables(isolate, clean);
	}
	if (isolate->memory_limit) {
		zend_string_release(isolate->memory_limit);
	}
	if (CG(script_encoding_list)) {
		pefree((void *)CG(script_encoding_list), 1);
	}
	free_tags(BG(url_adapt_session_ex).tags);
	free_tags(BG(url_adapt_output_ex).tags);
	if (clean) {
		zend_hash_destroy(&BG(url_adapt_session_hosts_ht));
		zend_hash_destroy(&BG(url_adapt_output_hosts_ht));
	}
	if (!isolate->pages) {
		pefree(CG(map_ptr_real_base), 1);
	}
}
