/* Per-fiber context of coroutine isolates.
 *
 * One fiber's values are in the engine's globals: the installed one's. They are copied out only when another fiber of
 * the isolate runs, so a request that does not park costs nothing here. A fresh fiber starts with the idle values,
 * taken when the application had booted. docs/isolates.md lists what is swapped; what is not on its list is shared by
 * the requests of an isolate on purpose (classes, functions, constants, statics, user globals).
 */
#include "fiber_state.h"
#include "internal.h"

#include "Zend/zend_interfaces.h"
#include "ext/date/php_date.h"
#include "ext/standard/basic_functions.h"
#include "ext/standard/php_filestat.h"
#include "main/rfc1867.h"

#define VM_STACK_SIZE (16 * 1024)
#define MAX_MODULES 12

/* Fields of the engine's structs that belong to a request; the type of each is the field's own. */
#define ENGINE_FIELDS(X)                                                                                          \
	X(EG, vm_stack) X(EG, vm_stack_top) X(EG, vm_stack_end) X(EG, vm_stack_page_size) X(EG, current_execute_data)  \
	X(EG, bailout) X(EG, error_reporting) X(EG, jit_trace_num) X(EG, active_fiber) X(EG, main_fiber_context)       \
	X(EG, current_fiber_context) X(EG, exit_status) X(EG, fake_scope) X(EG, in_autoload) X(EG, ticks_count)        \
	X(EG, user_error_handler_error_reporting) X(EG, user_error_handler) X(EG, user_exception_handler)              \
	X(EG, user_error_handlers_error_reporting) X(EG, user_error_handlers) X(EG, user_exception_handlers)           \
	X(EG, error_handling) X(EG, exception_class) X(EG, exception) X(EG, prev_exception)                            \
	X(EG, opline_before_exception) X(EG, flags) X(EG, record_errors) X(EG, num_errors) X(EG, errors)               \
	X(EG, get_gc_buffer) X(EG, trampoline) X(EG, filename_override) X(EG, lineno_override) X(EG, timeout_seconds)  \
	X(EG, persistent_list) SURUS_OOM_FIELD(X)                                                                                     \
	X(CG, unclean_shutdown) X(CG, current_linking_class) X(CG, delayed_variance_obligations)                       \
	X(CG, delayed_autoloads) X(CG, unlinked_uses)                                                                  \
	X(PG, connection_status) X(PG, ignore_user_abort) X(PG, header_is_being_sent)                                  \
	X(PG, http_globals) X(PG, activated_auto_globals) X(PG, last_error_type) X(PG, last_error_message)             \
	X(PG, last_error_file) X(PG, last_error_lineno) X(PG, in_user_include) X(PG, in_error_log)                     \
	X(BG, user_shutdown_function_names) X(BG, putenv_ht) X(BG, strtok_string) X(BG, strtok_last)                   \
	X(BG, strtok_table) X(BG, strtok_len) X(BG, ctype_string) X(BG, locale_changed) X(BG, user_compare_fci)        \
	X(BG, user_compare_fci_cache) X(BG, user_tick_functions) X(BG, serialize_lock) X(BG, serialize)                \
	X(BG, unserialize) X(BG, user_filter_map) X(BG, umask)

/* Modules whose globals belong to a request as a whole. Their request shutdown and startup make fresh ones. */
static const char *const request_modules[] = {"session", "mbstring", "json", "libxml", "random", "posix", "sockets", "bcmath", NULL};

static const char *const superglobals[] = {"_GET", "_POST", "_COOKIE", "_FILES", "_SERVER", "_ENV", "_REQUEST", "_SESSION"};
#define SUPERGLOBALS (sizeof superglobals / sizeof *superglobals)

typedef struct {
	zend_string *name;
	zend_string *value;
} ini_change;

typedef struct {
#define DECLARE(struct_name, field) __typeof__(struct_name(field)) struct_name##_##field;
	ENGINE_FIELDS(DECLARE)
#undef DECLARE
	sapi_globals_struct sapi;
	zend_output_globals output;
	char *timezone; /* date_default_timezone_set */
} values;

struct surus_fiber_state {
	values values;
	zend_fiber_context context; /* what user fibers come back to */
	zval superglobals[SUPERGLOBALS];
	bool has_superglobals;
	ini_change *ini;
	size_t ini_count;
	struct surus_os_state *os; /* NULL: the isolate's */
	char *modules;
};

typedef struct { zend_module_entry *module; size_t offset; } request_module;

static request_module modules[MAX_MODULES];
static size_t module_count;
static size_t modules_size;
static zend_string *superglobal_names[SUPERGLOBALS];
static zend_module_entry *date_module;

struct surus_idle {
	values values;
	char *modules;
	struct surus_fiber_state *main; /* the boot's own state, while a fiber's is installed */
	surus_task *installed;          /* whose values are in place; NULL: the boot's */
};

static struct surus_idle *idle_of(surus_isolate *isolate)
{
	return isolate->idle;
}

static void find_modules(void)
{
	if (superglobal_names[0]) {
		return;
	}
	for (size_t i = 0; request_modules[i]; i++) {
		zend_module_entry *module = zend_hash_str_find_ptr(&module_registry, request_modules[i], strlen(request_modules[i]));
		if (module && module->globals_size && module->globals_ptr) {
			modules[module_count++] = (request_module){module, modules_size};
			modules_size += ZEND_MM_ALIGNED_SIZE(module->globals_size);
		}
	}
	date_module = zend_hash_str_find_ptr(&module_registry, "date", sizeof "date" - 1);
	for (size_t i = 0; i < SUPERGLOBALS; i++) {
		superglobal_names[i] = zend_string_init_interned(superglobals[i], strlen(superglobals[i]), true);
	}
}

static char **timezone_slot(void)
{
	return &((zend_date_globals *)date_module->globals_ptr)->timezone;
}

static void save_values(values *to)
{
#define SAVE(struct_name, field) memcpy(&to->struct_name##_##field, &struct_name(field), sizeof to->struct_name##_##field);
	ENGINE_FIELDS(SAVE)
#undef SAVE
	to->sapi = sapi_globals;
	to->output = output_globals;
	to->timezone = *timezone_slot();
}

static void load_values(const values *from)
{
#define LOAD(struct_name, field) memcpy(&struct_name(field), &from->struct_name##_##field, sizeof from->struct_name##_##field);
	ENGINE_FIELDS(LOAD)
#undef LOAD
	sapi_globals = from->sapi;
	output_globals = from->output;
	*timezone_slot() = from->timezone;
}

static void save_modules(char *to)
{
	for (size_t i = 0; i < module_count; i++) {
		memcpy(to + modules[i].offset, modules[i].module->globals_ptr, modules[i].module->globals_size);
	}
}

static void load_modules(const char *from)
{
	for (size_t i = 0; i < module_count; i++) {
		memcpy(modules[i].module->globals_ptr, from + modules[i].offset, modules[i].module->globals_size);
	}
}

/* Settings changed with ini_set() go back to the application's while another fiber runs. */
static void save_ini(struct surus_fiber_state *state)
{
	if (!EG(modified_ini_directives) || zend_hash_num_elements(EG(modified_ini_directives)) == 0) {
		return;
	}
	state->ini = ecalloc(zend_hash_num_elements(EG(modified_ini_directives)), sizeof *state->ini);
	zend_ini_entry *entry;
	ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
		if (entry->modified) {
			state->ini[state->ini_count++] = (ini_change){zend_string_copy(entry->name), entry->value ? zend_string_copy(entry->value) : NULL};
		}
	} ZEND_HASH_FOREACH_END();
	for (size_t i = 0; i < state->ini_count; i++) {
		zend_restore_ini_entry(state->ini[i].name, ZEND_INI_STAGE_RUNTIME);
	}
}

static void load_ini(struct surus_fiber_state *state)
{
	for (size_t i = 0; i < state->ini_count; i++) {
		ini_change *change = &state->ini[i];
		zend_string *value = change->value ? change->value : ZSTR_EMPTY_ALLOC();
		zend_alter_ini_entry_ex(change->name, value, PHP_INI_ALL, ZEND_INI_STAGE_RUNTIME, true);
		zend_string_release(change->name);
		if (change->value) {
			zend_string_release(change->value);
		}
	}
	if (state->ini) {
		efree(state->ini);
		state->ini = NULL;
		state->ini_count = 0;
	}
}

static void save_superglobals(struct surus_fiber_state *state)
{
	state->has_superglobals = false;
	for (size_t i = 0; i < SUPERGLOBALS; i++) {
		zval *value = zend_hash_find_known_hash(&EG(symbol_table), superglobal_names[i]);
		ZVAL_UNDEF(&state->superglobals[i]);
		if (value && Z_TYPE_P(value) != IS_UNDEF) {
			ZVAL_COPY(&state->superglobals[i], value);
			zend_hash_del(&EG(symbol_table), superglobal_names[i]);
			state->has_superglobals = true;
		}
	}
}

static void load_superglobals(struct surus_fiber_state *state)
{
	if (!state->has_superglobals) {
		return;
	}
	for (size_t i = 0; i < SUPERGLOBALS; i++) {
		if (Z_TYPE(state->superglobals[i]) != IS_UNDEF) {
			zend_hash_update(&EG(symbol_table), superglobal_names[i], &state->superglobals[i]);
			ZVAL_UNDEF(&state->superglobals[i]);
		}
	}
	state->has_superglobals = false;
}

/* The ini settings are restored while the session and other modules are still the fiber's own or already idle:
 * a module may refuse a change while it is active, so idle modules go in first and come out last. */
static void save_state(struct surus_fiber_state *state, struct surus_idle *idle)
{
	save_superglobals(state);
	save_modules(state->modules);
	save_values(&state->values);
	load_modules(idle->modules);
	save_ini(state);
}

static void load_state(struct surus_fiber_state *state)
{
	load_ini(state);
	load_values(&state->values);
	load_modules(state->modules);
	load_superglobals(state);
	if (SURUS_HAS_OOM()) {
		zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
	}
}

/* A new VM stack with an empty frame at its bottom, as the engine makes it for its own fibers. */
static void fresh_vm(surus_task *task, values *fresh)
{
	zend_vm_stack page = (zend_vm_stack)emalloc(VM_STACK_SIZE);
	page->top = ZEND_VM_STACK_ELEMENTS(page);
	page->end = (zval *)((char *)page + VM_STACK_SIZE);
	page->prev = NULL;
	fresh->EG_vm_stack = page;
	fresh->EG_vm_stack_top = page->top;
	fresh->EG_vm_stack_end = page->end;
	fresh->EG_vm_stack_page_size = VM_STACK_SIZE;
	fresh->EG_current_execute_data = NULL;
	fresh->EG_bailout = NULL;
	fresh->EG_active_fiber = NULL;
	fresh->EG_exception = NULL;
	fresh->EG_main_fiber_context = &task->fiber->context;
	fresh->EG_current_fiber_context = &task->fiber->context;
}

bool surus_fiber_state_make(surus_task *task)
{
	struct surus_idle *idle = idle_of(task->isolate);
	struct surus_fiber_state *state = calloc(1, sizeof *state);
	if (state) {
		state->modules = malloc(modules_size + 1);
	}
	if (!state || !state->modules) {
		free(state);
		return false;
	}
	task->fiber = state;
	state->values = idle->values;
	state->context.status = ZEND_FIBER_STATUS_RUNNING;
	fresh_vm(task, &state->values);
	zend_hash_init(&state->values.EG_persistent_list, 8, NULL, idle->values.EG_persistent_list.pDestructor, 1);
	memcpy(state->modules, idle->modules, modules_size);
	Z_TRY_ADDREF(state->values.EG_user_error_handler);
	Z_TRY_ADDREF(state->values.EG_user_exception_handler);
	return true;
}

void surus_fiber_install(surus_task *task)
{
	struct surus_idle *idle = idle_of(task->isolate);
	if (!idle) {
		return;
	}
	surus_task *next = task->work == SURUS_RUN_CALL ? task : NULL;
	if (idle->installed != next) {
		save_state(idle->installed ? idle->installed->fiber : idle->main, idle);
		if (next && !next->fiber && !surus_fiber_state_make(next)) {
			/* Out of memory: the call reports it. */
			next = NULL;
		}
		load_state(next ? next->fiber : idle->main);
		idle->installed = next;
	}
	SURUS_SET_STACK_LIMITS(task->stack.top, task->stack.base);
	surus_os_enter(next && next->fiber->os ? next->fiber->os : task->isolate->os);
}

struct surus_os_state *surus_task_own_os_state(void)
{
	surus_task *task = surus_running;
	if (!task->fiber) {
		return task->isolate->os;
	}
	if (!task->fiber->os) {
		task->fiber->os = surus_os_fork(task->isolate->os);
	}
	return task->fiber->os;
}

void surus_fiber_state_free(surus_task *task)
{
	struct surus_fiber_state *state = task->fiber;
	struct surus_idle *idle = idle_of(task->isolate);
	surus_isolate_enter(task->isolate);
	if (idle && idle->installed == task) {
		save_state(state, idle);
		load_state(idle->main);
		idle->installed = NULL;
	}
	if (task->event != SURUS_ABANDONED) {
		zend_try {
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
	surus_os_state_free(state->os);
	free(state->modules);
	free(state);
	task->fiber = NULL;
}

const zend_execute_data *surus_fiber_frame(surus_task *task)
{
	struct surus_idle *idle = idle_of(task->isolate);
	return idle && idle->installed == task ? EG(current_execute_data) : task->fiber->values.EG_current_execute_data;
}

void surus_fiber_take_idle(surus_isolate *isolate)
{
	find_modules();
	struct surus_idle *idle = calloc(1, sizeof *idle);
	struct surus_fiber_state *main = calloc(1, sizeof *main);
	idle->modules = malloc(modules_size + 1);
	main->modules = malloc(modules_size + 1);
	idle->main = main;

	/* What the application set while it booted is what its requests start with. */
	if (EG(modified_ini_directives)) {
		zend_ini_entry *entry;
		ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
			entry->modified = false;
		} ZEND_HASH_FOREACH_END();
		zend_hash_destroy(EG(modified_ini_directives));
		FREE_HASHTABLE(EG(modified_ini_directives));
		EG(modified_ini_directives) = NULL;
	}
	save_modules(idle->modules);
	save_values(&idle->values);

	values *v = &idle->values;
	v->BG_user_shutdown_function_names = NULL;
	v->BG_strtok_string = NULL;
	zend_stack_init(&v->EG_user_error_handlers_error_reporting, sizeof(int));
	zend_stack_init(&v->EG_user_error_handlers, sizeof(zval));
	zend_stack_init(&v->EG_user_exception_handlers, sizeof(zval));
	zend_llist_init(&v->sapi.sapi_headers.headers, sizeof(sapi_header_struct), (void (*)(void *))sapi_free_header, 0);
	zend_hash_init(&v->BG_putenv_ht, 0, NULL, NULL, 0);
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
	isolate->idle = idle;
}

void surus_fiber_drop_idle(surus_isolate *isolate)
{
	struct surus_idle *idle = idle_of(isolate);
	if (idle) {
		free(idle->main->modules);
		free(idle->main);
		free(idle->modules);
		free(idle);
		isolate->idle = NULL;
	}
}

/* ---- the end of a request ---- */

/* Each fiber holds references of its own to the application's handlers. */
static void reset_handlers(values *idle)
{
	zend_stack *handlers[] = {&EG(user_error_handlers), &EG(user_exception_handlers)};
	for (size_t i = 0; i < 2; i++) {
		while (!zend_stack_is_empty(handlers[i])) {
			zval_ptr_dtor(zend_stack_top(handlers[i]));
			zend_stack_del_top(handlers[i]);
		}
		zend_stack_destroy(handlers[i]);
	}
	zend_stack_destroy(&EG(user_error_handlers_error_reporting));
	zval_ptr_dtor(&EG(user_error_handler));
	zval_ptr_dtor(&EG(user_exception_handler));
	ZVAL_COPY(&EG(user_error_handler), &idle->EG_user_error_handler);
	ZVAL_COPY(&EG(user_exception_handler), &idle->EG_user_exception_handler);
}

static void reset_sapi(void)
{
	if (SG(rfc1867_uploaded_files)) {
		destroy_uploaded_files_hash();
	}
	if (SG(request_info).request_body) {
		php_stream_close(SG(request_info).request_body);
		SG(request_info).request_body = NULL;
	}
	zend_llist_destroy(&SG(sapi_headers).headers);
	if (SG(sapi_headers).mimetype) {
		efree(SG(sapi_headers).mimetype);
	}
	if (SG(sapi_headers).http_status_line) {
		efree(SG(sapi_headers).http_status_line);
	}
	if (Z_TYPE(SG(callback_func)) != IS_UNDEF) {
		zval_ptr_dtor(&SG(callback_func));
	}
	char **owned[] = {&SG(request_info).auth_user, &SG(request_info).auth_password, &SG(request_info).auth_digest,
		(char **)&SG(request_info).content_type_dup, &SG(request_info).current_user};
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
		if (*owned[i]) {
			efree(*owned[i]);
			*owned[i] = NULL;
		}
	}
}

static void reset_superglobals(void)
{
	for (size_t i = 0; i < SUPERGLOBALS; i++) {
		zend_hash_del(&EG(symbol_table), superglobal_names[i]);
	}
	for (size_t i = 0; i < sizeof PG(http_globals) / sizeof *PG(http_globals); i++) {
		zval_ptr_dtor(&PG(http_globals)[i]);
		ZVAL_UNDEF(&PG(http_globals)[i]);
	}
}

static void end_module(zend_module_entry *module)
{
	if (module->request_shutdown_func) {
		zend_try {
			module->request_shutdown_func(module->type, module->module_number);
		} zend_end_try();
	}
}

static void reset_modules(struct surus_idle *idle)
{
	for (size_t i = 0; i < module_count; i++) {
		zend_module_entry *module = modules[i].module;
		if (memcmp(module->globals_ptr, idle->modules + modules[i].offset, module->globals_size) == 0) {
			continue;
		}
		end_module(module);
		memcpy(module->globals_ptr, idle->modules + modules[i].offset, module->globals_size);
	}
}

static void free_if(void *pointer, bool is_string)
{
	if (pointer) {
		if (is_string) {
			zend_string_release((zend_string *)pointer);
		} else {
			efree(pointer);
		}
	}
}

void surus_fiber_reset(surus_task *task)
{
	struct surus_idle *idle = idle_of(task->isolate);
	values *fresh = &idle->values;
	zend_try {
		/* Modules first: an active session refuses changes of its settings. */
		reset_modules(idle);
		zend_ini_deactivate();
		reset_sapi();
		reset_superglobals();
		reset_handlers(fresh);
		php_clear_stat_cache(0, NULL, 0);
		free_if(BG(strtok_string), true);
		free_if(PG(last_error_message), true);
		free_if(PG(last_error_file), true);
		zend_hash_destroy(&BG(putenv_ht));
		if (*timezone_slot() != fresh->timezone) {
			free_if(*timezone_slot(), false);
		}
		if (BG(user_tick_functions)) {
			zend_llist_destroy(BG(user_tick_functions));
			efree(BG(user_tick_functions));
			BG(user_tick_functions) = NULL;
		}
		if (EG(in_autoload)) {
			zend_hash_destroy(EG(in_autoload));
			FREE_HASHTABLE(EG(in_autoload));
		}
		zend_get_gc_buffer *buffer = &EG(get_gc_buffer);
		free_if(buffer->start, false);
	} zend_end_try();
	if (task->fiber->os) {
		surus_os_enter(task->isolate->os);
		surus_os_state_free(task->fiber->os);
		task->fiber->os = NULL;
	}
	/* Handlers of the idle state are shared; everything else becomes as fresh, but for the fiber's own stack, list of
	 * persistent connections and base handler of output. */
	values own;
	save_values(&own);
	values next = *fresh;
	next.EG_vm_stack = own.EG_vm_stack;
	next.EG_vm_stack_top = own.EG_vm_stack_top;
	next.EG_vm_stack_end = own.EG_vm_stack_end;
	next.EG_vm_stack_page_size = own.EG_vm_stack_page_size;
	next.EG_current_execute_data = own.EG_current_execute_data;
	next.EG_bailout = own.EG_bailout;
	next.EG_main_fiber_context = own.EG_main_fiber_context;
	next.EG_current_fiber_context = own.EG_current_fiber_context;
	next.EG_persistent_list = own.EG_persistent_list;
	next.EG_jit_trace_num = own.EG_jit_trace_num;
	next.output = own.output;
	load_values(&next);
}
