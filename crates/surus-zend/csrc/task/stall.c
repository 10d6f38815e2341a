/* A call that blocks the event loop is noticed by another thread, and reported on this one, at the next interrupt of the
 * PHP code that has made it: src/serve/stalls.rs. */
#include "task/stall.h"
#include "task/log.h"
#include "task/place.h"

#include "Zend/zend_atomic.h"

#include <stdio.h>
#include <unistd.h>
#include <sys/uio.h>

static zend_atomic_bool noted;

/* Copies memory that the other thread may just be freeing: what is not mapped any more is an error, not a crash. */
static bool peek(void *to, const void *from, size_t size)
{
	struct iovec here = {to, size};
	struct iovec there = {(void *)(uintptr_t)from, size};
	return from && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* The text of a string, up to `size` - 1 bytes. */
static bool peek_name(char *to, size_t size, const zend_string *from)
{
	size_t length;
	if (!from || !peek(&length, &from->len, sizeof length) || length >= size || !peek(to, from->val, length)) {
		return false;
	}
	to[length] = '\0';
	return true;
}

size_t surus_stall_function(char *text, size_t size)
{
	zend_execute_data frame;
	zend_internal_function function;
	char name[128], scope[128] = "";
	if (!peek(&frame, EG(current_execute_data), sizeof frame) || !peek(&function, frame.func, sizeof function)
		|| function.type != ZEND_INTERNAL_FUNCTION || !peek_name(name, sizeof name, function.function_name)) {
		return 0;
	}
	zend_class_entry *class = function.scope;
	zend_string *class_name;
	if (class && (!peek(&class_name, &class->name, sizeof class_name) || !peek_name(scope, sizeof scope, class_name))) {
		return 0;
	}
	int length = snprintf(text, size, "%s%s%s()", scope, class ? "::" : "", name);
	return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

void surus_stall_note(void)
{
	zend_atomic_bool_store_ex(&noted, true);
	zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
}

void surus_stall_report(void)
{
	if (zend_atomic_bool_exchange_ex(&noted, false)) {
		surus_rs_stalled();
	}
}

size_t surus_running_place(char *text, size_t size)
{
	return surus_place_of(EG(current_execute_data), text, size);
}

void surus_running_backtrace(const char *title)
{
	surus_log_backtrace(EG(current_execute_data), title);
}
