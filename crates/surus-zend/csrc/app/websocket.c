/* WebSockets: a request that has accepted one receives and sends messages until it is over. Each has a number, so that other
 * requests of the application can send to it. */
#include "app/websocket.h"
#include "app/jobs.h"
#include "task/running.h"
#include "task/state.h"

static bool are_possible(void)
{
	const surus_task *task = surus_running;
	return !(task && task->isolate->in_turn) && surus_rs_has_websockets();
}

/* Surus\Internal\has_websockets(): bool. Whether requests of this application can become WebSockets. */
static ZEND_FUNCTION(has_websockets)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(are_possible());
}

/* Surus\Internal\websocket_extensions(string $offers): string. The answer; "" if there is none. */
static ZEND_FUNCTION(websocket_extensions)
{
	zend_string *offers;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(offers)
	ZEND_PARSE_PARAMETERS_END();
	surus_str answer;
	if (surus_rs_websocket_extensions(surus_bytes_of(offers), &answer)) {
		RETURN_STRINGL(answer.ptr, answer.len);
	}
	RETURN_EMPTY_STRING();
}

/* Surus\Internal\websocket_accept(int $maxMessage): int. Its number. */
static ZEND_FUNCTION(websocket_accept)
{
	zend_long max_message;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(max_message)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_serving("WebSockets are", "have no WebSockets");
	if (!task) {
		RETURN_THROWS();
	}
	surus_task *request = surus_request_of(task);
	if (!request->fiber || !are_possible()) {
		zend_throw_error(NULL, "WebSockets need coroutine mode: here a request occupies a whole isolate or process");
		RETURN_THROWS();
	}
	if (!SG(headers_sent)) {
		sapi_send_headers();
	}
	uint64_t number = surus_rs_websocket_accept(request->exchange, max_message > 0 ? (size_t)max_message : 0);
	if (!number) {
		zend_throw_error(NULL, "This request has been answered already: it cannot become a WebSocket");
		RETURN_THROWS();
	}
	RETURN_LONG((zend_long)number);
}

static void refuse_to_wait(void)
{
	zend_throw_error(NULL, "Nothing can wait for a WebSocket here: PHP compiles a file or collects cycles");
}

/* Surus\Internal\websocket_receive(int $number, ?float $seconds, bool &$binary): string|bool. False: no more will come; true:
 * the time is over. */
static ZEND_FUNCTION(websocket_receive)
{
	zend_long number;
	double seconds = -1;
	bool for_ever = true;
	zval *kind;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_LONG(number)
		Z_PARAM_DOUBLE_OR_NULL(seconds, for_ever)
		Z_PARAM_ZVAL(kind)
	ZEND_PARSE_PARAMETERS_END();
	bool binary = false;
	surus_str message;
	switch (surus_rs_websocket_receive((uint64_t)number, for_ever ? -1 : seconds > 0 ? seconds : 0, &binary, &message)) {
		case SURUS_WOKEN:
			RETVAL_STRINGL_FAST(message.ptr, message.len);
			surus_assign_bool(kind, binary);
			return;
		case SURUS_TIME_OVER:
			RETURN_TRUE;
		case SURUS_CANNOT_WAIT:
			refuse_to_wait();
			RETURN_THROWS();
	}
	RETURN_FALSE;
}

/* Surus\Internal\websocket_send(int $number, string $message, bool $binary): bool. False: it is over. */
static ZEND_FUNCTION(websocket_send)
{
	zend_long number;
	zend_string *message;
	bool binary;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_LONG(number)
		Z_PARAM_STR(message)
		Z_PARAM_BOOL(binary)
	ZEND_PARSE_PARAMETERS_END();
	switch (surus_rs_websocket_send((uint64_t)number, surus_bytes_of(message), binary)) {
		case SURUS_NOT_TEXT:
			zend_value_error("A text of a WebSocket is UTF-8, which this is not: sendBinary() sends other bytes");
			RETURN_THROWS();
		case SURUS_CANNOT_WAIT:
			refuse_to_wait();
			RETURN_THROWS();
		case SURUS_WEBSOCKET_OVER:
			RETURN_FALSE;
	}
	RETURN_TRUE;
}

/* Surus\Internal\websocket_close(int $number, int $code, string $reason): void */
static ZEND_FUNCTION(websocket_close)
{
	zend_long number, code;
	zend_string *reason;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_LONG(number)
		Z_PARAM_LONG(code)
		Z_PARAM_STR(reason)
	ZEND_PARSE_PARAMETERS_END();
	if (!surus_rs_websocket_close((uint64_t)number, code, surus_bytes_of(reason))) {
		zend_value_error("A WebSocket is closed with a code of 1000 to 1003, 1007 to 1014 or 3000 to 4999, and a reason of at most "
			"123 bytes of UTF-8: these are " ZEND_LONG_FMT " and %zu bytes", code, ZSTR_LEN(reason));
		RETURN_THROWS();
	}
}

/* Surus\Internal\websocket_end(int $number): ?array{int, string}. Code and reason; null: it is open. */
static ZEND_FUNCTION(websocket_end)
{
	zend_long number;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(number)
	ZEND_PARSE_PARAMETERS_END();
	int code;
	surus_str reason;
	if (surus_rs_websocket_end((uint64_t)number, &code, &reason)) {
		array_init_size(return_value, 2);
		add_next_index_long(return_value, code);
		add_next_index_stringl(return_value, reason.ptr, reason.len);
	}
}

/* Surus\publish(string $channel, string $message, bool $binary = false): void */
static ZEND_FUNCTION(publish)
{
	zend_string *topic, *message;
	bool binary = false;
	ZEND_PARSE_PARAMETERS_START(2, 3)
		Z_PARAM_STR(topic)
		Z_PARAM_STR(message)
		Z_PARAM_OPTIONAL
		Z_PARAM_BOOL(binary)
	ZEND_PARSE_PARAMETERS_END();
	surus_message published = {.data = surus_bytes_of(message), .event = {"", 0}, .except = {"", 0}, .is_binary = binary};
	surus_str position;
	switch (surus_rs_channel_publish(surus_bytes_of(topic), &published, &position)) {
		case SURUS_CHANNEL_DONE:
			return;
		case SURUS_CHANNEL_NAME:
			zend_value_error("The name of a channel is 1 to 200 bytes of UTF-8");
			RETURN_THROWS();
		case SURUS_CHANNEL_NOT_TEXT:
			zend_value_error("A text that is published is UTF-8, which this is not: publish it with binary: true");
			RETURN_THROWS();
		case SURUS_CHANNEL_TOO_LARGE:
			zend_value_error("A message that is published has at most 65536 bytes: this has %zu", ZSTR_LEN(message));
			RETURN_THROWS();
		case SURUS_CHANNEL_NO_SERVER:
			zend_throw_error(NULL, "Surus\\publish() is for code that a server runs: nobody is connected to this process");
			RETURN_THROWS();
		default:
			zend_throw_error(NULL, "The history of this channel cannot be written: is shared_memory too small, or Redis (channels_redis) not there?");
			RETURN_THROWS();
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_has_websockets, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_websocket_extensions, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, offers, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_websocket_accept, 0, 1, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, maxMessage, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_MASK_EX(arginfo_websocket_receive, 0, 3, MAY_BE_STRING | MAY_BE_BOOL)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, seconds, IS_DOUBLE, 1)
	ZEND_ARG_TYPE_INFO(1, binary, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_websocket_send, 0, 3, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, binary, _IS_BOOL, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_websocket_close, 0, 3, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, code, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, reason, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_websocket_end, 0, 1, IS_ARRAY, 1)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_publish, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, binary, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

const zend_function_entry surus_websocket_functions[] = {
	ZEND_NS_FE("Surus\\Internal", has_websockets, arginfo_has_websockets)
	ZEND_NS_FE("Surus\\Internal", websocket_extensions, arginfo_websocket_extensions)
	ZEND_NS_FE("Surus\\Internal", websocket_accept, arginfo_websocket_accept)
	ZEND_NS_FE("Surus\\Internal", websocket_receive, arginfo_websocket_receive)
	ZEND_NS_FE("Surus\\Internal", websocket_send, arginfo_websocket_send)
	ZEND_NS_FE("Surus\\Internal", websocket_close, arginfo_websocket_close)
	ZEND_NS_FE("Surus\\Internal", websocket_end, arginfo_websocket_end)
	ZEND_NS_FE("Surus", publish, arginfo_publish)
	ZEND_FE_END
};
