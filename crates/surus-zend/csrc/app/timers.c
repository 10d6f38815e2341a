/* What an application does without a client: its timers, declared while it boots, and Surus\background(). */
#include "app/timers.h"
#include "app/jobs.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_closures.h"

/* The tables keep timers and what runs jobs; what is in the background leaves its table. */
static void take(surus_isolate *isolate, int64_t number, int what, zval *closure)
{
	HashTable *table = what == SURUS_BACKGROUND ? isolate->background : what == SURUS_QUEUED ? isolate->queued : isolate->timers;
	zval *found = table ? zend_hash_index_find(table, (zend_ulong)number) : NULL;
	ZVAL_UNDEF(closure);
	if (found) {
		ZVAL_COPY(closure, found);
	}
	if (found && what == SURUS_BACKGROUND) {
		zend_hash_index_del(table, (zend_ulong)number);
	}
}

bool surus_call_timer(surus_task *task)
{
	surus_isolate *isolate = task->isolate;
	int what = SURUS_TIMER_ASKED;
	int64_t number = isolate->timers || isolate->background || isolate->queued ? surus_rs_timer(task->exchange, &what) : -1;
	if (number < 0) {
		return false;
	}
	zval closure, argument, result;
	take(isolate, number, what, &closure);
	if (Z_TYPE(closure) == IS_UNDEF) {
		return true;
	}
	task->in_background = what == SURUS_BACKGROUND;
	ZVAL_BOOL(&argument, what == SURUS_TIMER_DUE);
	ZVAL_UNDEF(&result);
	call_user_function(NULL, NULL, &closure, &result, 1, &argument);
	zval_ptr_dtor(&result);
	zval_ptr_dtor(&closure);
	return true;
}

/* Surus\Internal\background_start(Closure $run): void */
static ZEND_FUNCTION(background_start)
{
	zval *closure;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT_OF_CLASS(closure, zend_ce_closure)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_running;
	surus_isolate *isolate = task ? task->isolate : NULL;
	if (!task || task->script || !surus_request_of(task)->fiber || !isolate->application || isolate->in_turn) {
		zend_throw_error(NULL, "Surus\\background() is for code that serves a request in coroutine mode; an application that boots has Surus\\after()");
		RETURN_THROWS();
	}
	if (!isolate->background) {
		isolate->background = zend_new_array(0);
	}
	zend_ulong number = (zend_ulong)isolate->background->nNextFreeElement;
	number = (zend_long)number < 0 ? 0 : number;
	Z_ADDREF_P(closure);
	zend_hash_next_index_insert(isolate->background, closure);
	if (!surus_rs_background(number)) {
		zend_hash_index_del(isolate->background, number);
		zend_throw_error(NULL, "There is no room in the background: 100 callables run, or the application was replaced");
		RETURN_THROWS();
	}
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
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_background_start, 0, 1, IS_VOID, 0)
	ZEND_ARG_OBJ_INFO(0, run, Closure, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_background, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_timer_next, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, at, IS_DOUBLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_every, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_after, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, reloads, _IS_BOOL, 0, "true")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_cron, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, expression, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, job, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_timer_functions[] = {
	ZEND_NS_FE("Surus\\Internal", timer_add, arginfo_timer_add)
	ZEND_NS_FE("Surus\\Internal", timer_next, arginfo_timer_next)
	ZEND_NS_FE("Surus\\Internal", background_start, arginfo_background_start)
	ZEND_NS_NAMED_FE("Surus", background, ZEND_FN(surus_tasks), arginfo_background)
	ZEND_NS_NAMED_FE("Surus", after, ZEND_FN(surus_tasks), arginfo_after)
	ZEND_NS_NAMED_FE("Surus", every, ZEND_FN(surus_tasks), arginfo_every)
	ZEND_NS_NAMED_FE("Surus", cron, ZEND_FN(surus_tasks), arginfo_cron)
	ZEND_FE_END
};
