/* pfsockopen(). Only the application knows the protocol of a stream. Streams are closed that have unread input (an
 * answer for which nobody waits, or the end of the connection), and streams to which a request has written without an
 * answer since (it may still come). */
#include "connections/persistent_stream.h"
#include "connections/exchanges.h"
#include "connections/handle_kinds.h"
#include "connections/handle_uses.h"
#include "persistent/kept.h"

#include "main/php_network.h"

#define CONSTRUCTORS(X)                          \
	X(open, NULL, "pfsockopen")                  \
	X(client, NULL, "stream_socket_client")

/* Whether a resource of the request refers to it. */
static bool is_in_use(const php_stream *stream)
{
	zend_resource *resource;
	ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
		if (resource->ptr == stream) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

/* Whether an answer may still come. If the peer never sends anything, none is expected. */
static bool is_asked(const php_stream *stream)
{
	const surus_use *use = surus_use_find(stream);
	return use && use->phase == SURUS_ASKED && surus_stream_open(use, SURUS_READS);
}

static void forget(const php_stream *stream)
{
	surus_use *use = surus_use_find(stream);
	if (use) {
		surus_use_forget(use);
	}
}

/* If the peer has never answered, the data may have been a log line: others may write there, but an answer would belong
 * to no request. */
static void leave_question(const php_stream *stream)
{
	surus_use *use = surus_use_find(stream);
	if (use && use->phase == SURUS_ASKED) {
		use->is_mixed = true;
	}
}

static bool has_answers(php_stream *stream)
{
	php_socket_t descriptor = -1;
	return stream->readpos != stream->writepos
		|| (php_stream_cast(stream, PHP_STREAM_AS_FD_FOR_SELECT | PHP_STREAM_CAST_INTERNAL, (void *)&descriptor, 0) == SUCCESS
			&& surus_is_readable(descriptor));
}

static void close_stale(void)
{
	surus_kept_list kept = surus_kept_of(php_file_le_pstream());
	for (size_t i = 0; i < kept.count; i++) {
		php_stream *stream = kept.entries[i].resource->ptr;
		/* phpredis' pool refers to its streams, and would not notice their end. */
		bool is_redis = zend_string_starts_with_literal(kept.entries[i].key, "phpredis");
		if (!is_redis && !is_in_use(stream) && (is_asked(stream) || has_answers(stream))) {
			forget(stream);
			surus_kept_close(&kept.entries[i]);
		} else if (!is_in_use(stream)) {
			leave_question(stream);
		}
	}
	surus_kept_free(&kept);
}

#define AROUND(name, class_name, function)                             \
	static zif_handler real_##name;                                    \
	static ZEND_NAMED_FUNCTION(around_##name)                          \
	{                                                                  \
		if (zend_hash_num_elements(&EG(persistent_list))) {            \
			close_stale();                                             \
		}                                                              \
		real_##name(INTERNAL_FUNCTION_PARAM_PASSTHRU);                 \
		surus_kept_use(SURUS_KEPT_STREAM, NULL);                       \
	}
CONSTRUCTORS(AROUND)
#undef AROUND

void surus_streams_start(void)
{
#define STAND(name, class_name, function) real_##name = surus_replace(class_name, function, around_##name);
	CONSTRUCTORS(STAND)
#undef STAND
}

void surus_streams_clean(surus_task *task)
{
	(void)task;
	close_stale();
}
