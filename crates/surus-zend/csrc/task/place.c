/* Where PHP code stands, read off the frames of the VM. */
#include "task/place.h"

#include <stdio.h>

size_t surus_place_of(const zend_execute_data *frame, char *text, size_t size)
{
	int length = 0;
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
