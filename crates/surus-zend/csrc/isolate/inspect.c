/* What runs and what is loaded, for people who look at a running server. Read off the engine's structs without
 * allocating in PHP's heap. */
#include "base.h"
#include "isolate/isolate.h"
#include "task/state.h"

#include <stdio.h>

size_t surus_task_place(surus_task *task, char *text, size_t size)
{
	surus_isolate_enter(task->isolate);
	const zend_execute_data *frame = task->frame;
	int length = 0;
	/* The innermost function that was called, and the line that has called it. */
	for (int depth = 0; frame && depth < 50; depth++, frame = frame->prev_execute_data) {
		const zend_function *function = frame->func;
		if (!function) {
			continue;
		}
		if (ZEND_USER_CODE(function->type)) {
			length += snprintf(text + length, size - (size_t)length, "%s%s:%u", length ? " at " : "",
				ZSTR_VAL(function->op_array.filename), frame->opline ? frame->opline->lineno : 0);
			break;
		}
		if (function->common.function_name && !length) {
			const zend_class_entry *scope = function->common.scope;
			length = snprintf(text, size, "%s%s%s()", scope ? ZSTR_VAL(scope->name) : "", scope ? "::" : "",
				ZSTR_VAL(function->common.function_name));
		}
		if (length < 0 || (size_t)length >= size) {
			break;
		}
	}
	return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

void surus_isolate_files(surus_isolate *isolate, void *list)
{
	surus_isolate_enter(isolate);
	zend_string *file;
	ZEND_HASH_MAP_FOREACH_STR_KEY(&EG(included_files), file) {
		if (file) {
			surus_rs_file(list, surus_bytes_of(file));
		}
	} ZEND_HASH_FOREACH_END();
}
