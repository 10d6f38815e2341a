/* The fields of the engine's structs that belong to one request of a coroutine isolate. docs/internals/isolates.md says
 * why each is here. */
#ifndef SURUS_FIBER_VALUES_H
#define SURUS_FIBER_VALUES_H

#include "base.h"

#include "ext/standard/basic_functions.h"

/* A fiber keeps these from request to request: its stack, its persistent connections, its output buffer. */
#define KEPT_FIELDS(X)                                                                                            \
	X(EG, vm_stack) X(EG, vm_stack_top) X(EG, vm_stack_end) X(EG, vm_stack_page_size) X(EG, current_execute_data)  \
	X(EG, bailout) X(EG, jit_trace_num) X(EG, active_fiber) X(EG, main_fiber_context) X(EG, current_fiber_context) \
	SURUS_STACK_FIELDS(X) X(EG, persistent_list) X(EG, trampoline)

/* These get the idle values again when a request has ended. */
#define REQUEST_FIELDS(X)                                                                                         \
	X(EG, error_reporting) X(EG, exit_status) X(EG, fake_scope) X(EG, in_autoload) X(EG, ticks_count)              \
	X(EG, user_error_handler_error_reporting) X(EG, user_error_handler) X(EG, user_exception_handler)              \
	X(EG, user_error_handlers_error_reporting) X(EG, user_error_handlers) X(EG, user_exception_handlers)           \
	X(EG, error_handling) X(EG, exception_class) X(EG, exception) X(EG, prev_exception)                            \
	X(EG, opline_before_exception) X(EG, flags) X(EG, record_errors) X(EG, num_errors) X(EG, errors)               \
	X(EG, get_gc_buffer) X(EG, filename_override) X(EG, lineno_override) X(EG, timeout_seconds)  \
	SURUS_OOM_FIELD(X)                                                                                             \
	X(CG, unclean_shutdown) X(CG, current_linking_class) X(CG, delayed_variance_obligations)                       \
	X(CG, delayed_autoloads) X(CG, unlinked_uses)                                                                  \
	X(PG, connection_status) X(PG, ignore_user_abort) X(PG, header_is_being_sent) X(PG, http_globals)            \
	X(PG, rfc1867_protected_variables) X(PG, activated_auto_globals) X(PG, last_error_type)                      \
	X(PG, last_error_message) X(PG, last_error_file) X(PG, last_error_lineno) X(PG, in_user_include)             \
	X(PG, in_error_log) X(PG, tick_functions)                                                                                          \
	X(BG, user_shutdown_function_names) X(BG, putenv_ht) X(BG, strtok_string) X(BG, strtok_last)                   \
	X(BG, strtok_len) X(BG, ctype_string) X(BG, locale_changed) X(BG, user_compare_fci)        \
	X(BG, user_compare_fci_cache) X(BG, user_tick_functions) X(BG, serialize_lock) X(BG, serialize)                \
	X(BG, unserialize) X(BG, umask)

typedef struct {
#define SURUS_DECLARE(owner, field) __typeof__(owner(field)) owner##_##field;
	KEPT_FIELDS(SURUS_DECLARE)
	REQUEST_FIELDS(SURUS_DECLARE)
#undef SURUS_DECLARE
	sapi_globals_struct sapi;
	zend_output_globals output;
} surus_values;

#define SURUS_SAVE(owner, field) memcpy(&to->owner##_##field, &owner(field), sizeof to->owner##_##field);
#define SURUS_LOAD(owner, field) memcpy(&owner(field), &from->owner##_##field, sizeof from->owner##_##field);

static inline void surus_values_save(surus_values *to)
{
	KEPT_FIELDS(SURUS_SAVE)
	REQUEST_FIELDS(SURUS_SAVE)
	to->sapi = sapi_globals;
	to->output = output_globals;
}

static inline void surus_values_load(const surus_values *from)
{
	KEPT_FIELDS(SURUS_LOAD)
	REQUEST_FIELDS(SURUS_LOAD)
	sapi_globals = from->sapi;
	output_globals = from->output;
}

/* Sets what a request changes back to `from`; the fields that a fiber keeps stay. */
static inline void surus_values_refresh(const surus_values *from)
{
	REQUEST_FIELDS(SURUS_LOAD)
	sapi_globals = from->sapi;
}

#undef SURUS_SAVE
#undef SURUS_LOAD

#endif
