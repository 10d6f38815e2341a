/* Hidden state of the engine, of ext/spl and of ext/standard's arrays and directories. */
#include "hidden/engine.h"
#include "hidden/find.h"
#include "hidden/hidden.h"
#include "hidden/layout.h"
#include "hidden/probe.h"

#include "Zend/zend_fibers.h"
#include "Zend/zend_gc.h"

surus_gc_globals *surus_gc;

static void **spl_functions; /* NULL where they are module globals */
static void **spl_extensions;

static void run(const char *code)
{
	zend_eval_string(code, NULL, "surus scratch request");
}

/* Found by gc_protect(), which sets exactly one byte of it. */
static bool find_gc(surus_finder *finder)
{
	bool enabled = gc_enable(true); /* makes the buffer when zend.enable_gc=0 left it out */
	bool was_protected = gc_protected();
	surus_probe probe;
	if (!surus_probe_open(&probe, "libphp")) {
		return surus_not_found(finder, "gc_globals", "libphp is not a shared object");
	}
	static const bool pattern[] = {true, false, true, true, false, true, false, false};
	for (size_t i = 0; i < sizeof pattern / sizeof *pattern; i++) {
		gc_protect(pattern[i]);
		surus_probe_keep_value(&probe, 1, pattern[i]);
	}
	gc_protect(was_protected);
	char *flag = surus_probe_only(&probe);
	char *start = flag ? flag - offsetof(surus_gc_globals, gc_protected) : NULL;
	bool inside = start && surus_probe_covers(&probe, start, sizeof(surus_gc_globals));
	surus_probe_close(&probe);
	if (!inside) {
		return surus_not_found(finder, "gc_globals", "no single byte follows gc_protect()");
	}
	surus_gc_globals *gc = (surus_gc_globals *)start;
	zend_gc_status status;
	zend_gc_get_status(&status);
	if (!gc->buf || !gc->gc_enabled || gc->gc_active || gc->gc_full || gc->buf_size < 16 * 1024
		|| gc->gc_threshold != status.threshold || gc->num_roots != status.num_roots || gc->gc_runs != status.runs
		|| gc->collected != status.collected || gc->first_unused > gc->buf_size) {
		return surus_not_found(finder, "gc_globals", "its layout is another one");
	}
	gc_enable(false);
	bool follows = !gc->gc_enabled;
	gc_enable(enabled);
	surus_gc = gc;
	if (!follows) {
		return surus_not_found(finder, "gc_globals", "gc_enable() does not change it");
	}
	return surus_found(finder, "gc_globals", gc, sizeof *gc, SURUS_INIT_ZERO);
}

/* A counter. It is 0 during a request, and 1 after its end: if it were not swapped, the end of any request would forbid
 * Fibers and parking in all others. */
static bool find_fiber_blocking(surus_finder *finder)
{
	surus_probe probe;
	if (zend_fiber_switch_blocked() || !surus_probe_open(&probe, "libphp")) {
		return surus_not_found(finder, "zend_fiber_switch_blocking", "it cannot be probed");
	}
	static const int steps[] = {1, 1, 1, -1, 1, -1, -1, -1};
	unsigned long depth = 0;
	surus_probe_keep_value(&probe, 4, depth);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		if (steps[i] > 0) {
			zend_fiber_switch_block();
		} else {
			zend_fiber_switch_unblock();
		}
		depth += steps[i];
		surus_probe_keep_value(&probe, 4, depth);
	}
	void *address = surus_probe_only(&probe);
	surus_probe_close(&probe);
	return surus_found(finder, "zend_fiber_switch_blocking", address, sizeof(uint32_t), SURUS_INIT_IMAGE);
}

/* Whether a word points to a hash table with the number of elements given by `context`. */
static bool is_table_of(const void *address, void *context)
{
	HashTable *table = *(HashTable *const *)address;
	return surus_in_heap(table) && zend_hash_num_elements(table) == *(uint32_t *)context && table->pDestructor;
}

/* From 8.3 on these may be module globals, which are already regions. */
static bool spl_has_globals(void)
{
	zend_module_entry *spl = zend_hash_str_find_ptr(&module_registry, "spl", 3);
	return spl && spl->globals_size > 0;
}

static bool find_spl_functions(surus_finder *finder)
{
	surus_probe probe;
	if (!surus_probe_open(&probe, "libphp")) {
		return surus_not_found(finder, "spl_autoload_functions", "it cannot be probed");
	}
	surus_probe_keep_value(&probe, 8, 0);
	uint32_t count = 1;
	/* Methods, since any function may be disabled. */
	run("spl_autoload_register('DateTimeZone::listIdentifiers');");
	surus_probe_keep(&probe, 8, is_table_of, &count);
	count = 2;
	run("spl_autoload_register('DateTimeZone::listAbbreviations');");
	surus_probe_keep(&probe, 8, is_table_of, &count);
	count = 1;
	run("spl_autoload_unregister('DateTimeZone::listIdentifiers');");
	surus_probe_keep(&probe, 8, is_table_of, &count);
	spl_functions = surus_probe_only(&probe);
	surus_probe_close(&probe);
	return surus_found(finder, "spl_autoload_functions", spl_functions, sizeof(void *), SURUS_INIT_ZERO);
}

static bool set_spl_extensions(zend_string *text)
{
	zval function, argument, result;
	ZVAL_STRING(&function, "spl_autoload_extensions");
	ZVAL_STR(&argument, text);
	bool ok = call_user_function(NULL, NULL, &function, &result, 1, &argument) == SUCCESS;
	zval_ptr_dtor(&function);
	zval_ptr_dtor(&result);
	return ok;
}

static bool find_spl_extensions(surus_finder *finder)
{
	surus_probe probe;
	if (!surus_probe_open(&probe, "libphp")) {
		return surus_not_found(finder, "spl_autoload_extensions", "it cannot be probed");
	}
	surus_probe_keep_value(&probe, 8, 0);
	bool set = true;
	for (int i = 0; i < 2; i++) {
		zend_string *text = zend_strpprintf(0, ".surus%d", i);
		set = set && set_spl_extensions(text);
		surus_probe_keep_value(&probe, 8, (unsigned long)text);
		zend_string_release(text);
	}
	spl_extensions = set ? surus_probe_only(&probe) : NULL;
	surus_probe_close(&probe);
	return surus_found(finder, "spl_autoload_extensions", spl_extensions, sizeof(void *), SURUS_INIT_ZERO);
}

static surus_array_globals *sorting;
static void *seen_while_sorting;

static zend_result string_while_sorting(zend_object *object, zval *to, int type)
{
	(void)object;
	if (type != IS_STRING) {
		return FAILURE;
	}
	seen_while_sorting = sorting->multisort_func;
	ZVAL_EMPTY_STRING(to);
	return SUCCESS;
}

/* Whether array_multisort() keeps its comparison functions in `globals` while it compares. Afterwards, some releases
 * restore the old value, others leave a pointer to freed memory. */
static bool holds_comparisons(surus_array_globals *globals)
{
	static zend_object_handlers handlers;
	memcpy(&handlers, &std_object_handlers, sizeof handlers);
	handlers.cast_object = string_while_sorting;
	zval element;
	object_init(&element);
	Z_OBJ(element)->handlers = &handlers;
	zend_hash_str_update(&EG(symbol_table), "a", 1, &element);
	sorting = globals;
	seen_while_sorting = globals->multisort_func = NULL;
	run("$a = [$a, $a, $a]; array_multisort($a, SORT_ASC, SORT_STRING); unset($a);");
	globals->multisort_func = NULL;
	return surus_in_heap(seen_while_sorting);
}

/* usort() records there that it has warned about a comparison that returns a bool; array_multisort() keeps the
 * comparison functions of its columns there, while __toString of an element may run. */
static bool find_array_globals(surus_finder *finder)
{
	surus_probe probe;
	if (!surus_probe_open(&probe, "libphp")) {
		return surus_not_found(finder, "array_globals", "it cannot be probed");
	}
	run("$a = ['a', 'b', 'c'];");
	for (int i = 0; i < 3; i++) {
		run("usort($a, fn () => false);");
		surus_probe_keep_value(&probe, 1, true);
		run("usort($a, fn () => 0);");
		surus_probe_keep_value(&probe, 1, false);
	}
	run("unset($a);");
	char *flag = surus_probe_only(&probe);
	surus_array_globals *globals
		= flag ? (surus_array_globals *)(flag - offsetof(surus_array_globals, compare_deprecation_thrown)) : NULL;
	if (globals && !surus_probe_covers(&probe, globals, sizeof *globals)) {
		globals = NULL;
	}
	surus_probe_close(&probe);
	if (!globals) {
		return surus_not_found(finder, "array_globals", "no single byte follows usort()");
	}
	if (!holds_comparisons(globals)) {
		return surus_not_found(finder, "array_globals", "array_multisort() does not use it");
	}
	return surus_found(finder, "array_globals", globals, sizeof *globals, SURUS_INIT_ZERO)
		&& surus_is_of_request(finder);
}

/* Calls `function`, opendir() or dir(); returns the resource that it has made, held by `result`; NULL if it is
 * disabled. */
static zend_resource *open_directory(const char *function, zval *result)
{
	zval name, path;
	ZVAL_STRING(&name, function);
	ZVAL_STRING(&path, "/");
	ZVAL_UNDEF(result);
	if (zend_hash_exists(EG(function_table), Z_STR(name))) {
		call_user_function(NULL, NULL, &name, result, 1, &path);
	}
	zval_ptr_dtor(&name);
	zval_ptr_dtor(&path);
	zval *handle = Z_TYPE_P(result) == IS_OBJECT ? OBJ_PROP_NUM(Z_OBJ_P(result), 1) : result;
	return Z_TYPE_P(handle) == IS_RESOURCE ? Z_RES_P(handle) : NULL;
}

/* The directory that readdir() lists without an argument. */
static bool find_default_dir(surus_finder *finder)
{
	const char *function = zend_hash_str_exists(EG(function_table), "opendir", 7) ? "opendir" : "dir";
	if (!zend_hash_str_exists(EG(function_table), function, strlen(function))) {
		return true; /* nothing sets it */
	}
	surus_probe probe;
	if (!surus_probe_open(&probe, "libphp")) {
		return surus_not_found(finder, "default_dir", "it cannot be probed");
	}
	char *open_basedir = PG(open_basedir);
	PG(open_basedir) = NULL;
	surus_probe_keep_value(&probe, 8, 0);
	zval directories[3];
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
		surus_probe_keep_value(&probe, 8, (unsigned long)open_directory(function, &directories[i]));
	}
	PG(open_basedir) = open_basedir;
	zend_resource **address = surus_probe_only(&probe);
	surus_probe_close(&probe);
	if (address && *address) {
		zend_list_delete(*address);
		*address = NULL;
	}
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
		zval_ptr_dtor(&directories[i]);
	}
	return surus_found(finder, "default_dir", address, sizeof *address, SURUS_INIT_ZERO) && surus_is_of_request(finder);
}

bool surus_find_engine(surus_finder *finder)
{
	return find_gc(finder) && find_fiber_blocking(finder)
		&& (spl_has_globals() || (find_spl_functions(finder) && find_spl_extensions(finder)))
		&& find_array_globals(finder) && find_default_dir(finder);
}

bool surus_verify_engine(surus_finder *finder)
{
	if ((spl_functions && *spl_functions) || (spl_extensions && *spl_extensions)) {
		return surus_not_found(finder, "spl_autoload_functions", "the end of a request does not clear it");
	}
	if (!zend_fiber_switch_blocked()) {
		return surus_not_found(finder, "zend_fiber_switch_blocking", "the end of a request does not set it");
	}
	return true;
}
