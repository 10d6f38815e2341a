#include "app/queue.h"
#include "app/jobs.h"
#include "http/exceptions.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_closures.h"

/* Surus\Internal\queue(string $verb, string $head, string $payload = ''): array{int, string, string}. What surus_rs_queue
 * returns, and its texts. */
static ZEND_FUNCTION(queue)
{
	zend_string *verb, *head, *payload = ZSTR_EMPTY_ALLOC();
	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(verb)
		Z_PARAM_STR(head)
		Z_PARAM_OPTIONAL
		Z_PARAM_STR(payload)
	ZEND_PARSE_PARAMETERS_END();
	surus_str answer, bytes;
	void *exchange = surus_running ? surus_running->exchange : NULL;
	int result = surus_rs_queue(exchange, surus_bytes_of(verb), surus_bytes_of(head), surus_bytes_of(payload), &answer, &bytes);
	array_init_size(return_value, 3);
	add_next_index_long(return_value, result);
	add_next_index_stringl(return_value, answer.ptr, answer.len);
	add_next_index_stringl(return_value, bytes.ptr, bytes.len);
	surus_rs_queue_copied();
}

/* Surus\Internal\queue_serve(string $queues, Closure $run): void. While an application boots: what runs its jobs. */
static ZEND_FUNCTION(queue_serve)
{
	zend_string *queues;
	zval *closure;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR(queues)
		Z_PARAM_OBJECT_OF_CLASS(closure, zend_ce_closure)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_running;
	if (task && task->script) {
		return; /* a test: nobody takes jobs for its application */
	}
	if (!task || task->work != SURUS_RUN_BOOT || task->isolate->in_turn || !task->exchange) {
		zend_throw_error(NULL, "Queues are declared by the script of an application while it boots, in coroutine mode");
		RETURN_THROWS();
	}
	surus_isolate *isolate = task->isolate;
	if (!isolate->queued) {
		isolate->queued = zend_new_array(1);
	}
	Z_ADDREF_P(closure);
	zend_hash_index_update(isolate->queued, 0, closure);
	surus_rs_queue_serve(task->exchange, surus_bytes_of(queues));
}

/* Surus\Internal\queue_job(): array{string, string}. What is to be run. */
static ZEND_FUNCTION(queue_job)
{
	ZEND_PARSE_PARAMETERS_NONE();
	surus_str head = {0}, payload = {0};
	if (surus_running && surus_running->exchange) {
		surus_rs_queue_job(surus_running->exchange, &head, &payload);
	}
	array_init_size(return_value, 2);
	add_next_index_stringl(return_value, head.len ? head.ptr : "", head.len);
	add_next_index_stringl(return_value, payload.len ? payload.ptr : "", payload.len);
}

/* Surus\Internal\queue_end(string $ending): void. How it has ended. */
static ZEND_FUNCTION(queue_end)
{
	zend_string *ending;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(ending)
	ZEND_PARSE_PARAMETERS_END();
	if (surus_running && surus_running->exchange) {
		surus_rs_queue_end(surus_running->exchange, surus_bytes_of(ending));
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_queue, 0, 2, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, verb, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, head, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, payload, IS_STRING, 0, "''")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_queue_serve, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, queues, IS_STRING, 0)
	ZEND_ARG_OBJ_INFO(0, run, Closure, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_queue_job, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_queue_end, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, ending, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_dispatch, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, queue, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, payload, IS_MIXED, 0, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, delay, IS_DOUBLE, 0, "0.0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, priority, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, unique, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_batch, 0, 1, Surus\\Batch, 0)
	ZEND_ARG_TYPE_INFO(0, queue, IS_STRING, 0)
	ZEND_ARG_OBJ_TYPE_MASK(0, payloads, Traversable, MAY_BE_ARRAY, "[]")
ZEND_END_ARG_INFO()

const zend_function_entry surus_queue_functions[] = {
	ZEND_NS_FE("Surus\\Internal", queue, arginfo_queue)
	ZEND_NS_FE("Surus\\Internal", queue_serve, arginfo_queue_serve)
	ZEND_NS_FE("Surus\\Internal", queue_job, arginfo_queue_job)
	ZEND_NS_FE("Surus\\Internal", queue_end, arginfo_queue_end)
	ZEND_NS_NAMED_FE("Surus", batch, ZEND_FN(surus_tasks), arginfo_batch)
	ZEND_NS_NAMED_FE("Surus", dispatch, ZEND_FN(surus_tasks), arginfo_dispatch)
	ZEND_FE_END
};
