/* Surus\offload(): what it sends, what it answers and its errors are PHP (Surus\Internal\Offload, Offloaded). Here are the
 * wait for the other process, and that process's entry to PHP: a classic request with this in place of a script. */
#include "app/offload.h"
#include "app/application.h"
#include "app/jobs.h"
#include "http/exceptions.h"
#include "os/text.h"
#include "task/running.h"
#include "task/state.h"

static void call_main(void)
{
	static const char class_name[] = "Surus\\Internal\\Offloaded";
	zend_string *name = zend_string_init(class_name, sizeof class_name - 1, false);
	zend_class_entry *class = zend_lookup_class(name);
	zend_string_release(name);
	zend_function *method = class ? zend_hash_str_find_ptr(&class->function_table, "main", sizeof "main" - 1) : NULL;
	if (method) {
		zval result;
		ZVAL_UNDEF(&result);
		zend_call_known_function(method, NULL, class, &result, 0, NULL, NULL);
		zval_ptr_dtor(&result);
	}
}

void surus_offload_serve(void)
{
	/* Without a frame below it an exception that leaves the job, as exit() does, would be a fatal error. */
	zend_execute_data bottom = {.func = &surus_bottom_function};
	zend_first_try {
		EG(current_execute_data) = &bottom;
		PG(during_request_startup) = false;
		call_main();
		if (EG(exception) && (zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception)))) {
			zend_clear_exception();
		} else if (EG(exception)) {
			surus_report_exception();
		}
	} zend_end_try();
	EG(current_execute_data) = NULL;
}

/* Surus\Internal\offload(string $name, string $payload): array{int, string}. What surus_rs_offload returns, and its text. */
static ZEND_FUNCTION(offload)
{
	zend_string *name, *payload;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(name)
		Z_PARAM_STR(payload)
	ZEND_PARSE_PARAMETERS_END();
	if (surus_running && !surus_running->script && !surus_serving("Surus\\offload() is", "cannot offload anything")) {
		RETURN_THROWS();
	}
	surus_str answer;
	int result = surus_rs_offload(surus_bytes_of(name), surus_bytes_of(payload), &answer);
	array_init_size(return_value, 2);
	add_next_index_long(return_value, result);
	add_next_index_stringl(return_value, answer.ptr, answer.len);
	surus_rs_offload_copied();
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_internal_offload, 0, 2, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, payload, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_offload, 0, 1, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
	ZEND_ARG_VARIADIC_TYPE_INFO(0, arguments, IS_MIXED, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_offload_functions[] = {
	ZEND_NS_FE("Surus\\Internal", offload, arginfo_internal_offload)
	ZEND_NS_NAMED_FE("Surus", offload, ZEND_FN(surus_tasks), arginfo_offload)
	ZEND_FE_END
};
