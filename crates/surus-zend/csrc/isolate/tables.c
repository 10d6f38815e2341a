/* What each isolate has besides its heap: tables with entries that belong to the process, settings and superglobals, a
 * list of persistent connections, and the area of mapped pointers. */
#include "isolate/tables.h"
#include "task/state.h"

#include "Zend/zend_globals.h"
#include "Zend/zend_map_ptr.h"
#include "ext/standard/basic_functions.h"

/* A new table with shared entries, all made at startup and never freed through this table. */
static HashTable *copy_table(const HashTable *source)
{
	HashTable *copy = pemalloc(sizeof *copy, 1);
	zend_hash_init(copy, zend_hash_num_elements(source), NULL, source->pDestructor, 1);
	zend_hash_real_init_mixed(copy);
	zend_string *key;
	zval *value;
	ZEND_HASH_FOREACH_STR_KEY_VAL((HashTable *)source, key, value) {
		_zend_hash_append(copy, key, value);
	} ZEND_HASH_FOREACH_END();
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

static HashTable *copy_auto_globals(const HashTable *source)
{
	HashTable *copy = pemalloc(sizeof *copy, 1);
	zend_hash_init(copy, zend_hash_num_elements(source), NULL, source->pDestructor, 1);
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
	HashTable *source = EG(ini_directives);
	HashTable *copy = pemalloc(sizeof *copy, 1);
	zend_hash_init(copy, zend_hash_num_elements(source), NULL, NULL, 1);
	zend_hash_real_init_mixed(copy);
	isolate->ini_entries = pemalloc(zend_hash_num_elements(source) * sizeof(zend_ini_entry), 1);
	zend_ini_entry *own = isolate->ini_entries;
	zend_string *key;
	zend_ini_entry *entry;
	ZEND_HASH_FOREACH_STR_KEY_PTR(source, key, entry) {
		*own = *entry;
		zval value;
		ZVAL_PTR(&value, own);
		_zend_hash_append(copy, key, &value);
		if (isolate->memory_limit && zend_string_equals_literal(key, "memory_limit")) {
			own->value = isolate->memory_limit;
		}
		own++;
	} ZEND_HASH_FOREACH_END();
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
	CG(function_table) = EG(function_table) = copy_table(CG(function_table));
	CG(class_table) = EG(class_table) = copy_table(CG(class_table));
	CG(auto_globals) = copy_auto_globals(CG(auto_globals));
	EG(zend_constants) = copy_table(EG(zend_constants));

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

	void *map = pecalloc(CG(map_ptr_size), sizeof(void *), 1);
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

void surus_tables_free(surus_isolate *isolate, bool clean)
{
	free_table(EG(ini_directives));
	pefree(isolate->ini_entries, 1);
	if (isolate->memory_limit) {
		zend_string_release(isolate->memory_limit);
	}
	free_auto_globals(CG(auto_globals));
	if (CG(script_encoding_list)) {
		pefree((void *)CG(script_encoding_list), 1);
	}
	if (!clean) {
		drop_entries(CG(function_table));
		drop_entries(CG(class_table));
		drop_entries(EG(zend_constants));
	}
	free_table(CG(function_table));
	free_table(CG(class_table));
	free_table(EG(zend_constants));
	free_tags(BG(url_adapt_session_ex).tags);
	free_tags(BG(url_adapt_output_ex).tags);
	if (clean) {
		zend_hash_destroy(&BG(url_adapt_session_hosts_ht));
		zend_hash_destroy(&BG(url_adapt_output_hosts_ht));
	}
	pefree(CG(map_ptr_real_base), 1);
}
