/* The end of a request in a coroutine isolate: what php_request_shutdown does for a process, for one fiber. Each step
 * first checks whether the request has left anything, since most leave nothing. */
#include "base.h"
#include "fiber/ini.h"
#include "fiber/internal.h"
#include "fiber/parts.h"
#include "fiber/state.h"
#include "fiber/ticks.h"
#include "fiber/values.h"
#include "http/exceptions.h"
#include "http/form_files.h"
#include "http/response.h"
#include "os/state.h"
#include "task/state.h"

#include "ext/standard/php_filestat.h"
#include "main/rfc1867.h"

static bool is_same(const zval *a, const zval *b)
{
	return Z_TYPE_P(a) == Z_TYPE_P(b) && (Z_TYPE_P(a) == IS_UNDEF || Z_PTR_P(a) == Z_PTR_P(b));
}

static bool has_same_handlers(const surus_values *idle)
{
	return !EG(user_error_handlers).elements && !EG(user_exception_handlers).elements
		&& !EG(user_error_handlers_error_reporting).elements && is_same(&EG(user_error_handler), &idle->EG_user_error_handler)
		&& is_same(&EG(user_exception_handler), &idle->EG_user_exception_handler);
}

/* Each fiber holds its own references to the application's handlers. */
static void reset_handlers(const surus_values *idle)
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
	for (size_t i = 0; i < SURUS_SUPERGLOBALS; i++) {
		zend_hash_del(&EG(symbol_table), surus_superglobal_names[i]);
	}
	for (size_t i = 0; i < sizeof PG(http_globals) / sizeof *PG(http_globals); i++) {
		zval_ptr_dtor(&PG(http_globals)[i]);
		ZVAL_UNDEF(&PG(http_globals)[i]);
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

static void end_autoload(void)
{
	if (EG(in_autoload)) {
		zend_hash_destroy(EG(in_autoload));
		FREE_HASHTABLE(EG(in_autoload));
	}
}

static void end_all(surus_task *task, struct surus_idle *idle)
{
	/* Modules first: resetting settings must not affect a request that is still active in a module. */
	surus_parts_reset(idle->parts);
	surus_ini_reset(idle->ini, task->isolate);
	surus_random_reset();
	reset_sapi();
	if (task->built_superglobals || zend_hash_exists(&EG(symbol_table), surus_superglobal_names[SURUS_SUPERGLOBALS - 1])) {
		reset_superglobals();
	}
	reset_handlers(&idle->values);
	if (BG(CurrentStatFile) || BG(CurrentLStatFile)) {
		php_clear_stat_cache(0, NULL, 0);
	}
	free_if(BG(strtok_string), true);
	/* What follows may report an error, which frees the one before. */
	free_if(PG(last_error_message), true);
	PG(last_error_message) = NULL;
	free_if(PG(last_error_file), true);
	PG(last_error_file) = NULL;
	if (BG(putenv_ht).nTableMask != HT_MIN_MASK) {
		zend_hash_destroy(&BG(putenv_ht));
	}
	surus_ticks_end();
	end_autoload();
	free_if(EG(get_gc_buffer).start, false);
}

/* Whether end_all() would find nothing to end, as for most requests. */
static bool left_nothing(const surus_task *task, const struct surus_idle *idle)
{
	const sapi_request_info *info = &SG(request_info);
	return !EG(modified_ini_directives) && !SG(rfc1867_uploaded_files) && !info->request_body
		&& !SG(sapi_headers).headers.count && !SG(sapi_headers).mimetype && !SG(sapi_headers).http_status_line
		&& Z_TYPE(SG(callback_func)) == IS_UNDEF && !info->auth_user && !info->auth_password && !info->auth_digest
		&& !info->content_type_dup && !info->current_user && !task->built_superglobals && has_same_handlers(&idle->values)
		&& !BG(CurrentStatFile) && !BG(CurrentLStatFile) && !BG(strtok_string) && !PG(last_error_message)
		&& !PG(last_error_file) && BG(putenv_ht).nTableMask == HT_MIN_MASK && !PG(tick_functions).head && !EG(in_autoload)
		&& !EG(get_gc_buffer).start && surus_parts_are(idle->parts)
		&& !zend_hash_find_known_hash(&EG(symbol_table), surus_superglobal_names[SURUS_SUPERGLOBALS - 1]);
}

bool surus_fiber_reset(surus_task *task)
{
	if (left_nothing(task, surus_idle_of(task->isolate))) {
		surus_random_reset();
	} else {
		zend_try {
			end_all(task, surus_idle_of(task->isolate));
		} zend_end_try();
		/* Session handlers and destructors may have printed: this belongs to the response, too. */
		surus_report_exception();
		surus_output_end(task);
	}
	if (task->own_os) {
		surus_os_enter(task->isolate->os);
		surus_os_state_free(task->own_os);
		task->own_os = NULL;
	}
	surus_forget_uploads(task);
	bool clean = !CG(unclean_shutdown);
	surus_values_refresh(&surus_idle_of(task->isolate)->values);
	return clean;
}
