/* Layouts of hidden structs by PHP version: copies of definitions in PHP's .c files that no header has.
 * surus_hidden_locate checks each against known values, so that a PHP with another layout is refused. */
#ifndef SURUS_HIDDEN_LAYOUT_H
#define SURUS_HIDDEN_LAYOUT_H

#include "base.h"

/* Zend/zend_gc.c */
typedef struct {
	void *buf;
	bool gc_enabled;
	bool gc_active;
	bool gc_protected;
	bool gc_full;
	uint32_t unused;
	uint32_t first_unused;
	uint32_t gc_threshold;
	uint32_t buf_size;
	uint32_t num_roots;
	uint32_t gc_runs;
	uint32_t collected;
#if PHP_VERSION_ID >= 80300
	uint64_t activated_at;
	uint64_t collector_time;
	uint64_t dtor_time;
	uint64_t free_time;
#endif
#if PHP_VERSION_ID >= 80400
	uint32_t dtor_idx;
	uint32_t dtor_end;
	void *dtor_fiber;
	bool dtor_fiber_running;
#endif
} surus_gc_globals;

/* ext/standard/assert.c */
typedef struct {
	zval callback;
	char *cb;
	bool active;
	bool bail;
	bool warning;
	bool exception;
} surus_assert_globals;

/* ext/standard/iptc.c: psheader, bytes */
#define SURUS_IPTC_HEADER 28

/* ext/standard/php_array.h; private to ext/standard */
typedef struct {
	void *multisort_func;
	bool compare_deprecation_thrown;
} surus_array_globals;

/* ext/filter/php_filter.h */
typedef struct {
	zval post_array;
	zval get_array;
	zval cookie_array;
	zval env_array;
	zval server_array;
	zend_long default_filter;
	zend_long default_filter_flags;
} surus_filter_globals;

/* ext/soap/php_soap.h */
typedef struct {
	HashTable defEncNs;
	HashTable defEnc;
	HashTable defEncIndex;
	HashTable *typemap;
	int cur_uniq_ns;
	int soap_version;
	void *sdl;
#if PHP_VERSION_ID < 80400
	bool use_soap_error_handler;
#endif
	char *error_code;
	zval error_object;
#if PHP_VERSION_ID < 80400
	char cache;
#else
	bool use_soap_error_handler;
#endif
	char cache_mode;
	char cache_enabled;
	char *cache_dir;
	zend_long cache_ttl;
	zend_long cache_limit;
	HashTable *mem_cache;
	void *encoding;
	HashTable *class_map;
	int features;
	HashTable wsdl_cache;
	int cur_uniq_ref;
	HashTable *ref_map;
} surus_soap_globals;

/* ext/opcache/ZendAccelerator.h, zend_accel_globals from `cwd` on. Before it are the flags and the ini directives;
 * after it the text of `key`, which is only valid within one include. */
typedef struct {
	zend_string *cwd;
	zend_string *include_path;
	char include_path_key[32];
	char cwd_key[32];
	int include_path_key_len;
	bool include_path_check;
	int cwd_key_len;
	bool cwd_check;
	int auto_globals_mask;
	time_t request_time;
	time_t last_restart_time;
	HashTable xlat_table; /* made and destroyed within one compilation: must not be swapped */
	zend_ulong root_hash;
#if PHP_VERSION_ID >= 80400
	void *preloaded_internal_run_time_cache;
	size_t preloaded_internal_run_time_cache_size;
#endif
#if PHP_VERSION_ID >= 80500
	bool preloading;
#endif
	void *mem;
	void *current_persistent_script;
	const void *cache_opline;
	void *cache_persistent_script;
} surus_accel_tail;

/* The flags at the front of zend_accel_globals. */
typedef struct {
	bool counted;
	bool enabled;
	bool locked;
	bool accelerator_enabled;
	bool pcre_reseted;
} surus_accel_front;

#define SURUS_ACCEL_DIRECTIVES_MAX 1024 /* bytes within which `cwd` must lie */

/* ext/mbstring/php_mbregex.c; fiber/mbstring.c compares a fresh one. */
typedef struct {
	void *default_type;
	void *current_type;
	const void *current_encoding;
	HashTable cache;
	zval search_string;
	zval *search_string_value;
	size_t search_position;
	void *search_pattern;
	void *search_registers;
	unsigned int options;
	void *syntax;
} surus_mb_regex;

#endif
