/* WebSockets whose handler is an object: between two events none of them has a fiber. What the next one needs is kept here: the
 * object, the request, and the values that its code has set.
 */
#include "app/conversation.h"
#include "app/websocket.h"
#include "http/request_class.h"
#include "task/running.h"
#include "task/state.h"

typedef struct {
	zend_object *object;  /* Surus\Internal\Conversation */
	zval request;         /* a Surus\Http\Request */
	zend_object *context; /* between two events, or NULL: app/context.c */
} conversation;

static void free_conversation(zval *value)
{
	conversation *one = Z_PTR_P(value);
	OBJ_RELEASE(one->object);
	zval_ptr_dtor(&one->request);
	if (one->context) {
		OBJ_RELEASE(one->context);
	}
	efree(one);
}

static conversation *find(const surus_task *task, uint64_t *number, int *event)
{
	HashTable *all = task->isolate->conversations;
	*number = all && task->exchange ? surus_rs_conversation(task->exchange, event) : 0;
	return *number ? zend_hash_index_find_ptr(all, (zend_ulong)*number) : NULL;
}

static void call(zend_object *object, const char *method)
{
	zend_function *function = zend_hash_str_find_ptr(&object->ce->function_table, method, strlen(method));
	zval result;
	ZVAL_UNDEF(&result);
	GC_ADDREF(object);
	zend_call_known_function(function, object, object->ce, &result, 0, NULL, NULL);
	OBJ_RELEASE(object);
	zval_ptr_dtor(&result);
}

bool surus_conversation_turn(surus_task *task)
{
	uint64_t number;
	int event = SURUS_SOCKET_OPENS;
	conversation *one = find(task, &number, &event);
	if (event == SURUS_SOCKET_OPENS) {
		return false;
	}
	/* Its client has got 101 long ago. */
	SG(headers_sent) = 1;
	SG(request_info).no_headers = 1;
	if (one) {
		task->context = one->context;
		one->context = NULL;
		call(one->object, event == SURUS_SOCKET_IS_OVER ? "end" : "messages");
	}
	return true;
}

void surus_conversation_exits(surus_task *task)
{
	uint64_t number;
	int event;
	if (find(task, &number, &event)) {
		surus_rs_websocket_close(number, 1000, (surus_str){"", 0});
	}
}

bool surus_conversation_rest(surus_task *task)
{
	uint64_t number;
	int event = SURUS_SOCKET_OPENS;
	conversation *one = find(task, &number, &event);
	if (!one) {
		return false;
	}
	if (event != SURUS_SOCKET_IS_OVER) {
		one->context = task->context;
		task->context = NULL;
		return true;
	}
	surus_request_detach(&one->request);
	if (task->isolate->had_fatal) {
		/* No destructor runs. */
		GC_ADDREF(one->object);
		Z_ADDREF(one->request);
	}
	zend_hash_index_del(task->isolate->conversations, (zend_ulong)number);
	return false;
}

void surus_conversations_free(surus_isolate *isolate)
{
	HashTable *all = isolate->conversations;
	isolate->conversations = NULL;
	if (all) {
		zend_array_release(all);
	}
}

/* Surus\Internal\websocket_converse(int $number, Conversation $conversation, Request $request): bool. From now on the object is told
 * what happens. */
static ZEND_FUNCTION(websocket_converse)
{
	zend_long number;
	zval *object, *request;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_LONG(number)
		Z_PARAM_OBJECT(object)
		Z_PARAM_OBJECT_OF_CLASS(request, surus_request_class)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_request_of(surus_running);
	if (!task || !task->fiber || !task->exchange || !surus_rs_websocket_converse(task->exchange, (uint64_t)number)) {
		RETURN_FALSE;
	}
	surus_isolate *isolate = task->isolate;
	if (!isolate->conversations) {
		isolate->conversations = emalloc(sizeof *isolate->conversations);
		zend_hash_init(isolate->conversations, 8, NULL, free_conversation, false);
	}
	conversation *one = emalloc(sizeof *one);
	one->object = Z_OBJ_P(object);
	GC_ADDREF(one->object);
	ZVAL_COPY(&one->request, request);
	one->context = NULL;
	zend_hash_index_add_new_ptr(isolate->conversations, (zend_ulong)number, one);
	RETURN_TRUE;
}

/* Surus\Internal\websocket_next(int $number, bool &$binary): ?string. Null: no message has come. */
static ZEND_FUNCTION(websocket_next)
{
	zend_long number;
	zval *kind;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(number)
		Z_PARAM_ZVAL(kind)
	ZEND_PARSE_PARAMETERS_END();
	bool binary = false;
	surus_str message;
	if (!surus_rs_websocket_next((uint64_t)number, &binary, &message)) {
		RETURN_NULL();
	}
	RETVAL_STRINGL_FAST(message.ptr, message.len);
	surus_assign_bool(kind, binary);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_websocket_converse, 0, 3, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
	ZEND_ARG_OBJ_INFO(0, conversation, Surus\\Internal\\Conversation, 0)
	ZEND_ARG_OBJ_INFO(0, request, Surus\\Http\\Request, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_websocket_next, 0, 2, IS_STRING, 1)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(1, binary, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_conversation_functions[] = {
	ZEND_NS_FE("Surus\\Internal", websocket_converse, arginfo_websocket_converse)
	ZEND_NS_FE("Surus\\Internal", websocket_next, arginfo_websocket_next)
	ZEND_FE_END
};
