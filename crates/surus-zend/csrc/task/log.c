/* Log lines from C, and PHP backtraces read off the VM's frames without allocating in PHP's heap. */
#include "task/log.h"

#include <stdarg.h>
#include <stdio.h>

#define MAX_FRAMES 50

void surus_logf(int level, const char *format, ...)
{
	char line[2048];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	if (length > 0) {
		size_t size = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
		surus_rs_log(level, (surus_str){line, size});
	}
}

void surus_log_backtrace(const zend_execute_data *frame, const char *title)
{
	surus_logf(4, "%s", title);
	for (int depth = 0; frame && depth < MAX_FRAMES; frame = frame->prev_execute_data) {
		const zend_function *function = frame->func;
		if (!function || (!ZEND_USER_CODE(function->type) && !function->common.function_name)) {
			continue;
		}
		const char *class_name = function->common.scope ? ZSTR_VAL(function->common.scope->name) : "";
		const char *separator = function->common.scope ? "::" : "";
		const char *name = function->common.function_name ? ZSTR_VAL(function->common.function_name) : "{main}";
		if (ZEND_USER_CODE(function->type)) {
			const zend_op *opline = frame->opline;
			uint32_t line = opline ? opline->lineno : 0;
			if (opline && opline->opcode == ZEND_HANDLE_EXCEPTION && EG(opline_before_exception)) {
				line = EG(opline_before_exception)->lineno;
			}
			surus_logf(4, "  #%d %s%s%s() at %s:%u", depth, class_name, separator, name,
				ZSTR_VAL(function->op_array.filename), line);
		} else {
			surus_logf(4, "  #%d %s%s%s() [internal]", depth, class_name, separator, name);
		}
		depth++;
	}
}
