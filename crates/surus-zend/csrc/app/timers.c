/* Timers of an application: declared while it boots. Rust says when one runs, as a request that nobody has sent. */
#include "app/timers.h"
#include "app/jobs.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_closures.h"

bool surus_call_timer(surus_task *task)
{
	HashTable *timers = task->isolate->timers;
	bool due = false;
	int64_t number = timers ? surus_rs_timer(task->exchange, &due) : -1;
	zval *timer = number >= 0 ? zend_hash_index_find(timers, (zend_ulong)number) : NULL;
	if (!timer) {
		return false;
	}
	zval argument, result;
	ZVAL_BOOL(&argument, due);
	ZVAL_UNDEF(&result);
	call_user_function(NULL, NULL, timer, &result, 1, &argument);
	zval_ptr_dtor(&result);
	return true;
}

/* Surus\Internal\timer_add(string $about, int $kind, float $seconds, Closure $run): void. The closure is called with whether
 * it is due; else it only says when that will be. */
static ZEND_FUNCTION(timer_add)
{
	zend_string *about;
	zend_long kind;
	double seconds;
	zval *closure;
	ZEND_PARSE_PARAMETERS_START(4, 4)
		Z_PARAM_STR(about)
		Z_PARAM_LONG(kind)
		Z_PARAM_DOUBLE(seconds)
		Z_PARAM_OBJECT_OF_CLASS(closure, zend_ce_closure)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_running;
	if (task && task->script) {
		return; /* a test: its application's timers rest */
	}
	if (!task || task->work != SURUS_RUN_BOOT || task->isolate->in_turn || !task->exchange) {
		zend_throw_error(NULL, "Timers are declared by the script of an application while it boots, in coroutine mode");
		RETURN_THROWS();
	}
	surus_isolate *isolate = task->isolate;
	if (!isolate->timers) {
		isolate->timers = zend_new_array(0);
	}
	Z_ADDREF_P(closure);
	zend_hash_next_index_insert(isolate->timers, closure);
	surus_rs_add_timer(task->exchange, surus_bytes_of(about), (int)kind, seconds);
}

/* Surus\Internal\timer_next(float $at): void. Seconds since 1970. */
static ZEND_FUNCTION(timer_next)
{
	double at;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_DOUBLE(at)
	ZEND_PARSE_PARAMETERS_END();
	if (surus_running && surus_running->exchange) {
		surus_rs_timer_next(surus_running->exchange, at);
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_timer_add, 0, 4, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, about, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, kind, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 0)
	ZEND_ARG_OBJ_INFO(0, run, Closure, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_timer_next, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, at, IS_DOUBLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_every, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_cron, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, expression, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_timer_functions[] = {
	ZEND_NS_FE("Surus\\Internal", timer_add, arginfo_timer_add)
	ZEND_NS_FE("Surus\\Internal", timer_next, arginfo_timer_next)
	ZEND_NS_NAMED_FE("Surus", after, ZEND_FN(surus_tasks), arginfo_every)
	ZEND_NS_NAMED_FE("Surus", every, ZEND_FN(surus_tasks), arginfo_every)
	ZEND_NS_NAMED_FE("Surus", cron, ZEND_FN(surus_tasks), arginfo_cron)
	ZEND_FE_END
};
