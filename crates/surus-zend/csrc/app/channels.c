/* Channels: what is published on one reaches all that have subscribed to it, in all workers. The functions return a
 * surus_channel_result; Surus\Internal\ChannelResult makes exceptions of it. */
#include "app/channels.h"
#include "task/running.h"
#include "task/state.h"

static void assign(zval *place, surus_str text)
{
	ZEND_TRY_ASSIGN_REF_STRINGL(place, text.ptr, text.len);
}

/* Surus\Internal\channel_publish(string $channel, string $data, bool $binary, string $event, string $except, string &$position):
 * int. The position is "" where there is no history. */
static ZEND_FUNCTION(channel_publish)
{
	zend_string *channel, *data, *event, *except;
	bool binary;
	zval *position;
	ZEND_PARSE_PARAMETERS_START(6, 6)
		Z_PARAM_STR(channel)
		Z_PARAM_STR(data)
		Z_PARAM_BOOL(binary)
		Z_PARAM_STR(event)
		Z_PARAM_STR(except)
		Z_PARAM_ZVAL(position)
	ZEND_PARSE_PARAMETERS_END();
	surus_message message = {
		.event = surus_bytes_of(event),
		.data = surus_bytes_of(data),
		.except = surus_bytes_of(except),
		.is_binary = binary,
	};
	surus_str at = {"", 0};
	int result = surus_rs_channel_publish(surus_bytes_of(channel), &message, &at);
	assign(position, at);
	RETURN_LONG(result);
}

/* Surus\Internal\channel_members(string $channel): array<int, array{string, string}>|int. Names with what they say of themselves. */
static ZEND_FUNCTION(channel_members)
{
	zend_string *channel;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(channel)
	ZEND_PARSE_PARAMETERS_END();
	size_t count = 0;
	int result = surus_rs_channel_members(surus_bytes_of(channel), &count);
	if (result != SURUS_CHANNEL_DONE) {
		RETURN_LONG(result);
	}
	array_init_size(return_value, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		surus_str id, info;
		surus_rs_channel_member(i, &id, &info);
		zval member;
		array_init_size(&member, 2);
		add_next_index_stringl(&member, id.ptr, id.len);
		add_next_index_stringl(&member, info.ptr, info.len);
		add_next_index_zval(return_value, &member);
	}
}

/* Surus\Internal\channel_history(string $channel, string $since, int $count, string &$newest):
 * array<int, array{string, string, string, bool}>|int|null. Position, event, data, whether it is binary; null: what was published
 * since then is not kept. */
static ZEND_FUNCTION(channel_history)
{
	zend_string *channel, *since;
	zend_long most;
	zval *newest;
	ZEND_PARSE_PARAMETERS_START(4, 4)
		Z_PARAM_STR(channel)
		Z_PARAM_STR(since)
		Z_PARAM_LONG(most)
		Z_PARAM_ZVAL(newest)
	ZEND_PARSE_PARAMETERS_END();
	size_t count = 0;
	surus_str at = {"", 0};
	int result = surus_rs_channel_history(surus_bytes_of(channel), surus_bytes_of(since), most > 0 ? (uint64_t)most : 0, &count, &at);
	if (result == SURUS_CHANNEL_MISSED) {
		RETURN_NULL();
	}
	if (result != SURUS_CHANNEL_DONE) {
		RETURN_LONG(result);
	}
	assign(newest, at);
	array_init_size(return_value, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		surus_message message;
		surus_str position;
		surus_rs_channel_kept(i, &message, &position);
		zval item;
		array_init_size(&item, 4);
		add_next_index_stringl(&item, position.ptr, position.len);
		add_next_index_stringl(&item, message.event.ptr, message.event.len);
		add_next_index_stringl(&item, message.data.ptr, message.data.len);
		add_next_index_bool(&item, message.is_binary);
		add_next_index_zval(return_value, &item);
	}
}

/* Surus\Internal\channel_subscribers(string $channel): int. In all workers. */
static ZEND_FUNCTION(channel_subscribers)
{
	zend_string *channel;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(channel)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_LONG((zend_long)surus_rs_channel_subscribers(surus_bytes_of(channel)));
}

/* Surus\Internal\channel_subscribe(int $number, string $channel, bool $wanted, string $since): int. `number` is that of a WebSocket.
 * SURUS_CHANNEL_MISSED: it has subscribed, but not all since then is kept. */
static ZEND_FUNCTION(channel_subscribe)
{
	zend_long number;
	zend_string *channel, *since;
	bool wanted;
	ZEND_PARSE_PARAMETERS_START(4, 4)
		Z_PARAM_LONG(number)
		Z_PARAM_STR(channel)
		Z_PARAM_BOOL(wanted)
		Z_PARAM_STR(since)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_LONG(surus_rs_channel_subscribe((uint64_t)number, surus_bytes_of(channel), wanted, surus_bytes_of(since)));
}

/* Surus\Internal\channel_join(int $number, string $channel, string $member, string $info): int. No member: it leaves. */
static ZEND_FUNCTION(channel_join)
{
	zend_long number;
	zend_string *channel, *member, *info;
	ZEND_PARSE_PARAMETERS_START(4, 4)
		Z_PARAM_LONG(number)
		Z_PARAM_STR(channel)
		Z_PARAM_STR(member)
		Z_PARAM_STR(info)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_LONG(surus_rs_channel_join((uint64_t)number, surus_bytes_of(channel), surus_bytes_of(member), surus_bytes_of(info)));
}

/* Surus\Internal\channel_stream(string $channel, string $since, int $retry): int. The response of the request, if it is an event stream
 * without a body, goes on with what is published on this channel. */
static ZEND_FUNCTION(channel_stream)
{
	zend_string *channel, *since;
	zend_long retry;
	ZEND_PARSE_PARAMETERS_START(3, 3)
		Z_PARAM_STR(channel)
		Z_PARAM_STR(since)
		Z_PARAM_LONG(retry)
	ZEND_PARSE_PARAMETERS_END();
	void *exchange = surus_current_exchange();
	if (!exchange) {
		RETURN_LONG(SURUS_CHANNEL_NO_SERVER);
	}
	RETURN_LONG(surus_rs_channel_stream(exchange, surus_bytes_of(channel), surus_bytes_of(since), retry));
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_channel_publish, 0, 6, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, data, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, binary, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, event, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, except, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(1, position, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_MASK_EX(arginfo_channel_members, 0, 1, MAY_BE_ARRAY | MAY_BE_LONG)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_MASK_EX(arginfo_channel_history, 0, 4, MAY_BE_ARRAY | MAY_BE_LONG | MAY_BE_NULL)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, since, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, count, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(1, newest, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_channel_subscribers, 0, 1, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_channel_subscribe, 0, 4, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, wanted, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, since, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_channel_join, 0, 4, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, member, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, info, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_channel_stream, 0, 3, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, since, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, retry, IS_LONG, 0)
ZEND_END_ARG_INFO()

const zend_function_entry surus_channel_functions[] = {
	ZEND_NS_FE("Surus\\Internal", channel_publish, arginfo_channel_publish)
	ZEND_NS_FE("Surus\\Internal", channel_members, arginfo_channel_members)
	ZEND_NS_FE("Surus\\Internal", channel_history, arginfo_channel_history)
	ZEND_NS_FE("Surus\\Internal", channel_subscribers, arginfo_channel_subscribers)
	ZEND_NS_FE("Surus\\Internal", channel_subscribe, arginfo_channel_subscribe)
	ZEND_NS_FE("Surus\\Internal", channel_join, arginfo_channel_join)
	ZEND_NS_FE("Surus\\Internal", channel_stream, arginfo_channel_stream)
	ZEND_FE_END
};
