/* Uncaught exceptions: how they are logged, and the place of the handler that a message names. */
#include "http/exceptions.h"
#include "task/log.h"
#include "task/state.h"

#include "Zend/zend_interfaces.h"

void surus_log_exception(zend_object *exception)
{
	zval object, text;
	ZVAL_OBJ(&object, exception);
	ZVAL_UNDEF(&text);
	EG(exception) = NULL;
	if (instanceof_function(exception->ce, zend_ce_throwable)) {
		zend_call_method_with_0_params(exception, exception->ce, NULL, "__tostring", &text);
	}
	if (Z_TYPE(text) == IS_STRING) {
		surus_logf(3, "PHP Uncaught %s", Z_STRVAL(text));
	}
	zval_ptr_dtor(&text);
	if (EG(exception)) {
		zend_clear_exception();
	}
}

void surus_report_exception(void)
{
	if (!EG(exception)) {
		return;
	}
	zend_object *exception = EG(exception);
	zend_try {
		bool is_end = zend_is_unwind_exit(exception) || zend_is_graceful_exit(exception);
		surus_log_exception(exception);
		if (!is_end && !SG(headers_sent)) {
			SG(sapi_headers).http_response_code = 500;
		}
		OBJ_RELEASE(exception);
	} zend_end_try();
}

zend_string *surus_handler_place(const surus_task *task)
{
	const zend_function *function = task->handler;
	if (!function || function->type != ZEND_USER_FUNCTION || !function->op_array.filename) {
		return NULL;
	}
	return zend_strpprintf(0, "%s:%u", ZSTR_VAL(function->op_array.filename), function->op_array.line_start);
}
