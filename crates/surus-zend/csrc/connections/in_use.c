/* Surus\ConnectionInUse: two requests use one connection at a time. The message names both and the remedy. */
#include "connections/in_use.h"
#include "task/log.h"
#include "task/place.h"
#include "task/running.h"
#include "task/state.h"

#include "ext/spl/spl_exceptions.h"

static zend_class_entry *in_use_class;

#define MEND_JOBS "A connection serves one task at a time: give each its own, or use a pool (docs/concurrency.md)"
#define MEND "A connection serves one request at a time: declare it scoped, or use a pool (docs/guide/11-databases.md)"

/* "GET /orders", without the query string, which may contain secrets. */
static zend_string *name_of(const surus_task *task)
{
	surus_request_info info;
	surus_rs_request_info(task->exchange, &info);
	return zend_strpprintf(0, "%.*s %.*s", (int)info.method.len, info.method.ptr, (int)info.path.len, info.path.ptr);
}

/* "at /srv/app/Orders.php:41": the place of a frame in PHP code. */
static zend_string *place_of(const zend_execute_data *frame)
{
	while (frame && (!frame->func || !ZEND_USER_CODE(frame->func->type))) {
		frame = frame->prev_execute_data;
	}
	if (!frame) {
		return zend_strpprintf(0, "in the engine");
	}
	return zend_strpprintf(0, "at %s:%u", ZSTR_VAL(frame->func->op_array.filename), frame->opline ? frame->opline->lineno : 0);
}

static zend_string *function_of(const zend_execute_data *frame)
{
	const zend_function *function = frame ? frame->func : NULL;
	if (!function || !function->common.function_name) {
		return zend_strpprintf(0, "it");
	}
	const zend_class_entry *scope = function->common.scope;
	return zend_strpprintf(0, "%s%s%s()", scope ? ZSTR_VAL(scope->name) : "", scope ? "::" : "",
		ZSTR_VAL(function->common.function_name));
}

void surus_throw_in_use(const char *class, surus_task *task, const zend_execute_data *use, const char *begun)
{
	zend_string *user = surus_running ? name_of(surus_running) : zend_strpprintf(0, "a request");
	zend_string *call = function_of(EG(current_execute_data)), *place = place_of(EG(current_execute_data));
	if (!task) {
		zend_throw_exception_ex(in_use_class, 0, "%s was in use by a request that was given up, and is broken: %s wants %s %s. "
			MEND, class, ZSTR_VAL(user), ZSTR_VAL(call), ZSTR_VAL(place));
	} else {
		zend_string *other = name_of(task), *other_place = place_of(use ? use : task->frame);
		zend_string *other_call = use ? function_of(use) : zend_strpprintf(0, "%s", begun);
		bool is_own = surus_running && task->exchange == surus_running->exchange;
		zend_throw_exception_ex(in_use_class, 0, "%s is in use by another %s: %s %s %s %s, and %s wants %s %s. %s",
			class, is_own ? "task of the request" : "request", ZSTR_VAL(other), use ? "waits in" : "has begun", ZSTR_VAL(other_call),
			ZSTR_VAL(other_place), ZSTR_VAL(user), ZSTR_VAL(call), ZSTR_VAL(place), is_own ? MEND_JOBS : MEND);
		zend_string_release(other);
		zend_string_release(other_place);
		zend_string_release(other_call);
	}
	zend_string_release(user);
	zend_string_release(call);
	zend_string_release(place);
}

/* `what`: what other requests have done, so that this one cannot go on. */
static void throw_spoilt(const char *class, const char *what)
{
	zend_string *user = surus_running ? name_of(surus_running) : zend_strpprintf(0, "a request");
	zend_string *call = function_of(EG(current_execute_data)), *place = place_of(EG(current_execute_data));
	zend_throw_exception_ex(in_use_class, 0, "%s %s: %s wants %s %s. " MEND, class, what, ZSTR_VAL(user), ZSTR_VAL(call),
		ZSTR_VAL(place));
	zend_string_release(user);
	zend_string_release(call);
	zend_string_release(place);
}

void surus_throw_executed_since(const char *class)
{
	throw_spoilt(class, "is in use by another request, which has executed it since");
}

void surus_throw_mixed(const char *class)
{
	throw_spoilt(class, "is in use by several requests, which have written to it before anything was answered, and is closed: "
		"nobody knows whose the answer is");
}

void surus_log_unended(surus_task *task, const zend_class_entry *class, const char *begun)
{
	zend_string *name = name_of(task);
	surus_logf(4, "%s has ended and left %s open on a %s that other requests can use: it is ended", ZSTR_VAL(name),
		begun, ZSTR_VAL(class->name));
	zend_string_release(name);
}

/* "GET /orders in socket_accept() at /srv/app/Orders.php:41" */
static void describe(const surus_task *task, const zend_execute_data *frame, char *text, size_t size)
{
	surus_request_info info;
	char place[512] = "";
	surus_rs_request_info(task->exchange, &info);
	surus_place_of(frame, place, sizeof place);
	snprintf(text, size, "%.*s %.*s in %s", (int)info.method.len, info.method.ptr, (int)info.path.len, info.path.ptr, place);
}

void surus_descriptor_closed(surus_task *waiter, int descriptor)
{
	char waits[1024], closes[1024] = "the server";
	describe(waiter, waiter->frame, waits, sizeof waits);
	if (surus_running) {
		describe(surus_running, EG(current_execute_data), closes, sizeof closes);
	}
	surus_logf(4, "A descriptor (%d) is closed by %s, while another request waits for it: %s gets an error (EBADF)",
		descriptor, closes, waits);
}

void surus_register_connection_in_use(void)
{
	zend_class_entry entry;
	INIT_NS_CLASS_ENTRY(entry, "Surus", "ConnectionInUse", NULL);
	in_use_class = zend_register_internal_class_ex(&entry, spl_ce_LogicException);
}
