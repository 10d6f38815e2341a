/* Per-fiber context of coroutine isolates.
 *
 * The engine's globals hold the values of one fiber, the installed one. They are copied out only when another fiber of
 * the isolate runs, so a request that does not park costs nothing here. A fresh fiber starts with the idle values,
 * taken after the boot of the application. docs/internals/isolates.md lists what is swapped; everything else is shared
 * by the requests of an isolate on purpose (classes, functions, constants, statics, user globals).
 */
#include "fiber/state.h"
#include "fiber/file_state.h"
#include "fiber/ini.h"
#include "fiber/internal.h"
#include "fiber/parts.h"
#include "fiber/superglobals.h"
#include "fiber/ticks.h"
#include "fiber/values.h"
#include "isolate/isolate.h"
#include "os/state.h"
#include "persistent/pgsql.h"
#include "persistent/pool.h"
#include "task/state.h"

#include "ext/standard/file.h"
#include "ext/standard/php_filestat.h"

#define VM_STACK_SIZE (16 * 1024)

static const char *const superglobals[] = {"_GET", "_POST", "_COOKIE", "_FILES", "_SERVER", "_ENV", "_REQUEST", "_SESSION"};

zend_string *surus_superglobal_names[SURUS_SUPERGLOBALS];

static void name_superglobals(void)
{
	for (size_t i = 0; i < SURUS_SUPERGLOBALS && !surus_superglobal_names[i]; i++) {
		surus_superglobal_names[i] = zend_string_init_interned(superglobals[i], strlen(superglobals[i]), true);
	}
}

static void save_superglobals(struct surus_fiber_state *state)
{
	state->has_superglobals = false;
	for (size_t i = 0; i < SURUS_SUPERGLOBALS; i++) {
		zval *value = zend_hash_find_known_hash(&EG(symbol_table), surus_superglobal_names[i]);
		ZVAL_UNDEF(&state->superglobals[i]);
		if (value && Z_TYPE_P(value) != IS_UNDEF) {
			ZVAL_COPY(&state->superglobals[i], value);
			zend_hash_del(&EG(symbol_table), surus_superglobal_names[i]);
			state->has_superglobals = true;
		}
	}
}

static void load_superglobals(struct surus_fiber_state *state)
{
	if (!state->has_superglobals) {
		return;
	}
	for (size_t i = 0; i < SURUS_SUPERGLOBALS; i++) {
		if (Z_TYPE(state->superglobals[i]) != IS_UNDEF) {
			zend_hash_update(&EG(symbol_table), surus_superglobal_names[i], &state->superglobals[i]);
			ZVAL_UNDEF(&state->superglobals[i]);
		}
	}
	state->has_superglobals = false;
}

/* A module may refuse a change of its settings while it is active: settings are restored after the modules' parts are
 * idle, and loaded before the modules' parts. Returns whether the parts are idle still: handlers of settings may have
 * written to them. */
static bool save_state(struct surus_fiber_state *state, struct surus_idle *idle, const surus_isolate *isolate)
{
	surus_swapped.fibers++;
	/* The stat cache of the last file: the next fiber must not see it. */
	if (BG(CurrentStatFile) || BG(CurrentLStatFile)) {
		php_clear_stat_cache(0, NULL, 0);
	}
	save_superglobals(state);
	surus_values_save(&state->values);
	state->random = surus_random_save();
	surus_parts_leave(&state->parts, idle->parts);
	surus_ini_save(&state->ini, idle->ini, isolate);
	return !state->ini.count;
}

/* `are_parts_idle`: as save_state() has left them. */
static void load_state(struct surus_fiber_state *state, bool are_parts_idle, const surus_isolate *isolate)
{
	const struct surus_idle *idle = isolate->idle;
	are_parts_idle &= !state->ini.count;
	surus_ini_load(&state->ini, isolate);
	surus_values_load(&state->values);
	surus_parts_enter(&state->parts, idle->parts, are_parts_idle);
	surus_random_load(state->random);
	state->random = NULL;
	load_superglobals(state);
	if (SURUS_HAS_OOM()) {
		zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
	}
}

/* A new VM stack with an empty frame at its bottom, as the engine makes it for its Fibers, and the task's C stack. */
static void fresh_vm(surus_task *task, surus_values *fresh)
{
	zend_vm_stack page = (zend_vm_stack)emalloc(VM_STACK_SIZE);
	page->top = ZEND_VM_STACK_ELEMENTS(page);
	page->end = (zval *)((char *)page + VM_STACK_SIZE);
	page->prev = NULL;
	fresh->EG_vm_stack = page;
	fresh->EG_vm_stack_top = page->top;
	fresh->EG_vm_stack_end = page->end;
	fresh->EG_vm_stack_page_size = VM_STACK_SIZE;
	SURUS_FRESH_STACK_LIMITS(fresh, task->stack);
	fresh->EG_current_execute_data = NULL;
	fresh->EG_bailout = NULL;
	fresh->EG_active_fiber = NULL;
	fresh->EG_exception = NULL;
	fresh->EG_main_fiber_context = &task->fiber->context;
	fresh->EG_current_fiber_context = &task->fiber->context;
}

bool surus_fiber_state_make(surus_task *task)
{
	struct surus_idle *idle = surus_idle_of(task->isolate);
	struct surus_fiber_state *state = calloc(1, sizeof *state);
	if (!state || !surus_parts_make(&state->parts, idle->parts)) {
		free(state);
		return false;
	}
	task->fiber = state;
	state->values = idle->values;
	state->context.status = ZEND_FIBER_STATUS_RUNNING;
	fresh_vm(task, &state->values);
	zend_hash_init(&state->values.EG_persistent_list, 8, NULL, idle->values.EG_persistent_list.pDestructor, 1);
	Z_TRY_ADDREF(state->values.EG_user_error_handler);
	Z_TRY_ADDREF(state->values.EG_user_exception_handler);
	task->isolate->fibers++;
	return true;
}

void surus_fiber_install(surus_task *task)
{
	struct surus_idle *idle = surus_idle_of(task->isolate);
	if (!idle) {
		return;
	}
	surus_task *next = task->work == SURUS_RUN_CALL || task->work == SURUS_RUN_SNAPSHOT ? task : NULL;
	if (idle->installed != next) {
		surus_memory_lift(task->isolate);
		bool are_parts_idle = save_state(idle->installed ? idle->installed->fiber : idle->main, idle, task->isolate);
		if (next && !next->fiber && !surus_fiber_state_make(next)) {
			/* Out of memory: the call reports it. */
			next = NULL;
		}
		load_state(next ? next->fiber : idle->main, are_parts_idle, task->isolate);
		idle->installed = next;
		task->isolate->connections = next ? &idle->main->values.EG_persistent_list : NULL;
		surus_memory_limit(task->isolate);
	}
	surus_os_enter(next && next->own_os ? next->own_os : task->isolate->os);
}

/* The base output buffer, which a fiber keeps from request to request. */
static void free_output(zend_stack *handlers)
{
	while (!zend_stack_is_empty(handlers)) {
		php_output_handler_free(zend_stack_top(handlers));
		zend_stack_del_top(handlers);
	}
	zend_stack_destroy(handlers);
}

void surus_fiber_begin(surus_task *task)
{
	struct surus_idle *idle = surus_idle_of(task->isolate);
	if (idle && idle->context) {
		surus_file_copy_context(idle->context);
	}
	if (idle && idle->ticks.all.head) {
		surus_ticks_copy(&idle->ticks);
	}
}

void surus_fiber_take_shutdown_functions(surus_task *task)
{
	HashTable **of_boot = &surus_idle_of(task->isolate)->main->values.BG_user_shutdown_function_names;
	BG(user_shutdown_function_names) = *of_boot;
	*of_boot = NULL;
}

void surus_fiber_state_free(surus_task *task)
{
	struct surus_fiber_state *state = task->fiber;
	struct surus_idle *idle = surus_idle_of(task->isolate);
	surus_isolate_enter(task->isolate);
	surus_pool_leave(task, false);
	if (idle && idle->installed == task) {
		surus_memory_lift(task->isolate);
		bool are_parts_idle = save_state(state, idle, task->isolate);
		load_state(idle->main, are_parts_idle, task->isolate);
		idle->installed = NULL;
		task->isolate->connections = NULL;
		surus_memory_limit(task->isolate);
	}
	if (!surus_is_abandoned(task)) {
		zend_try {
			surus_parts_free(&state->parts, idle->parts);
			free_output(&state->values.output.handlers);
			surus_pgsql_before_close(&state->values.EG_persistent_list);
			zend_hash_graceful_reverse_destroy(&state->values.EG_persistent_list);
			zval_ptr_dtor(&state->values.EG_user_error_handler);
			zval_ptr_dtor(&state->values.EG_user_exception_handler);
		} zend_end_try();
		zend_vm_stack page = state->values.EG_vm_stack;
		while (page) {
			zend_vm_stack previous = page->prev;
			efree(page);
			page = previous;
		}
	}
	surus_os_enter(task->isolate->os);
	surus_os_state_free(task->own_os);
	task->own_os = NULL;
	surus_parts_drop(&state->parts);
	free(state);
	task->isolate->fibers--;
	task->fiber = NULL;
}

/* Forbids requests to switch OPcache off: it would stay off for all later requests. */
static void keep_opcache(void)
{
	zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), "opcache.enable", sizeof "opcache.enable" - 1);
	if (entry) {
		entry->modifiable = ZEND_INI_SYSTEM;
	}
}

void surus_fiber_take_idle(surus_isolate *isolate)
{
	keep_opcache();
	surus_superglobals_arm();
	surus_parts_find();
	name_superglobals();
	struct surus_idle *idle = calloc(1, sizeof *idle);
	struct surus_fiber_state *main = calloc(1, sizeof *main);
	idle->parts = malloc(surus_parts_size() + 1);
	surus_parts_make_room(&main->parts);
	idle->main = main;

	idle->context = surus_file_take_context();
	surus_parts_settle();
	/* Requests start with the settings that the application has made during its boot. */
	if (EG(modified_ini_directives)) {
		zend_ini_entry *entry;
		ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
			entry->modified = false;
		} ZEND_HASH_FOREACH_END();
		zend_hash_destroy(EG(modified_ini_directives));
		FREE_HASHTABLE(EG(modified_ini_directives));
		EG(modified_ini_directives) = NULL;
	}
	idle->ini = surus_ini_take_idle(isolate);
	surus_parts_save(idle->parts);
	surus_parts_take_fresh(idle->parts);
	surus_values_save(&idle->values);

	surus_values *v = &idle->values;
	v->BG_user_shutdown_function_names = NULL;
	v->BG_strtok_string = NULL;
	idle->ticks = surus_ticks_of_boot();
	v->BG_user_tick_functions = NULL;
	v->PG_tick_functions.head = v->PG_tick_functions.tail = v->PG_tick_functions.traverse_ptr = NULL;
	v->PG_tick_functions.count = 0;
	zend_stack_init(&v->EG_user_error_handlers_error_reporting, sizeof(int));
	zend_stack_init(&v->EG_user_error_handlers, sizeof(zval));
	zend_stack_init(&v->EG_user_exception_handlers, sizeof(zval));
	zend_llist_init(&v->sapi.sapi_headers.headers, sizeof(sapi_header_struct), (void (*)(void *))sapi_free_header, 0);
	zend_hash_init(&v->BG_putenv_ht, 0, NULL, BG(putenv_ht).pDestructor, 0);
	v->sapi.sapi_headers.mimetype = NULL;
	v->sapi.sapi_headers.http_status_line = NULL;
	v->sapi.sapi_headers.send_default_content_type = 1;
	v->sapi.sapi_headers.http_response_code = 200;
	v->sapi.headers_sent = 0;
	v->sapi.read_post_bytes = 0;
	v->sapi.post_read = 0;
	v->sapi.rfc1867_uploaded_files = NULL;
	v->sapi.global_request_time = 0;
	memset(&v->sapi.request_info, 0, sizeof v->sapi.request_info);
	ZVAL_UNDEF(&v->sapi.callback_func);
	zend_stack_init(&v->output.handlers, sizeof(php_output_handler *));
	v->output.active = v->output.running = NULL;
	v->output.output_start_filename = NULL;
	v->output.flags = PHP_OUTPUT_ACTIVATED;
	v->PG_last_error_message = NULL;
	v->PG_last_error_file = NULL;
	v->PG_last_error_type = 0;
	v->EG_in_autoload = NULL;
	v->EG_get_gc_buffer.start = v->EG_get_gc_buffer.end = v->EG_get_gc_buffer.cur = NULL;
	for (size_t i = 0; i < sizeof v->PG_http_globals / sizeof *v->PG_http_globals; i++) {
		ZVAL_UNDEF(&v->PG_http_globals[i]);
	}
	FG(default_context) = idle->context; /* code that runs outside of requests goes on with it */
	isolate->idle = idle;
}

void surus_fiber_drop_idle(surus_isolate *isolate)
{
	struct surus_idle *idle = surus_idle_of(isolate);
	if (idle) {
		surus_parts_drop(&idle->main->parts);
		free(idle->main);
		free(idle->parts);
		free(idle->ini);
		free(idle);
		isolate->idle = NULL;
	}
}

