/* Persistent connections of phpredis: idle streams in a pool per server. RESET (Redis 6.2) ends a session: database,
 * MULTI, WATCH, subscriptions, name, user. One that cannot be cleaned is shut down; phpredis checks connections before
 * it reuses them. */
#include "persistent/redis.h"
#include "persistent/kept.h"
#include "persistent/pool.h"

#include "main/php_network.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The beginning of phpredis' struct of a pool. */
typedef struct { zend_llist streams; } pool;

static zend_llist_element *first_of(const zend_resource *resource)
{
	const pool *of = resource->ptr;
	return of->streams.size == sizeof(php_stream *) ? of->streams.head : NULL;
}

static bool is_in_pool(const zend_resource *of, const php_stream *stream)
{
	for (zend_llist_element *element = first_of(of); element; element = element->next) {
		if (*(php_stream **)element->data == stream) {
			return true;
		}
	}
	return false;
}

/* The streams of its pool that are also in PHP's list. */
static surus_kept_list parts_of(const zend_resource *of)
{
	surus_kept_list streams = surus_kept_of(php_file_le_pstream());
	size_t all = streams.count;
	streams.count = 0;
	for (size_t i = 0; i < all; i++) {
		if (is_in_pool(of, streams.entries[i].resource->ptr)) {
			streams.entries[streams.count++] = streams.entries[i];
		}
	}
	return streams;
}

static surus_pool_kind kind = {.label = "phpredis", .parts = parts_of};

#define CONSTRUCTORS(X)                              \
	X(cluster, "rediscluster", "__construct")        \
	X(array, "redisarray", "__construct")

#define AROUND(name, class_name, function)                             \
	static zif_handler real_##name;                                    \
	static ZEND_NAMED_FUNCTION(around_##name)                          \
	{                                                                  \
		real_##name(INTERNAL_FUNCTION_PARAM_PASSTHRU);                 \
		surus_kept_use(SURUS_KEPT_REDIS, NULL);                        \
	}
CONSTRUCTORS(AROUND)
#undef AROUND

static int descriptor_of(php_stream *stream)
{
	php_socket_t descriptor = -1;
	if (php_stream_cast(stream, PHP_STREAM_AS_FD_FOR_SELECT | PHP_STREAM_CAST_INTERNAL, (void *)&descriptor, 0) != SUCCESS) {
		return -1;
	}
	return descriptor;
}

void surus_redis_break_off(php_stream *stream)
{
	stream->readpos = stream->writepos = 0;
	int descriptor = descriptor_of(stream);
	if (descriptor >= 0) {
		shutdown(descriptor, SHUT_RDWR);
	}
	stream->eof = 1;
}

static surus_kept_list named_streams(void)
{
	surus_kept_list streams = surus_kept_of(php_file_le_pstream());
	size_t all = streams.count;
	streams.count = 0;
	for (size_t i = 0; i < all; i++) {
		if (zend_string_starts_with_literal(streams.entries[i].key, "phpredis")) {
			streams.entries[streams.count++] = streams.entries[i];
		}
	}
	return streams;
}

/* ---- time limits ----
 *
 * Redis::OPT_READ_TIMEOUT is an option of the stream, and phpredis sets it only when it connects. */

/* An entry stays after its stream was closed; the next one at this address reuses it. */
typedef struct limit {
	struct limit *next;
	const php_stream *stream;
	ino_t socket;
	struct timeval time;
} limit;

static limit *limits;

static limit *limit_of(const php_stream *stream)
{
	limit *found = limits;
	while (found && found->stream != stream) {
		found = found->next;
	}
	return found;
}

static bool stat_of(php_stream *stream, struct stat *file)
{
	int descriptor = descriptor_of(stream);
	return descriptor >= 0 && fstat(descriptor, file) == 0 && strstr(stream->ops->label, "_socket");
}

/* Notes the limit of each connection that was opened since. */
static void note_limits(void)
{
	surus_kept_list streams = named_streams();
	for (size_t i = 0; i < streams.count; i++) {
		php_stream *stream = streams.entries[i].resource->ptr;
		limit *known = limit_of(stream);
		struct stat file;
		if (!stat_of(stream, &file) || (known && known->socket == file.st_ino) || (!known && !(known = calloc(1, sizeof *known)))) {
			continue;
		}
		if (!known->stream) {
			known->stream = stream;
			known->next = limits;
			limits = known;
		}
		known->socket = file.st_ino;
		known->time = ((php_netstream_data_t *)stream->abstract)->timeout;
	}
	surus_kept_free(&streams);
}

static void restore_limit(php_stream *stream)
{
	const limit *known = limit_of(stream);
	struct stat file;
	if (known && stat_of(stream, &file) && known->socket == file.st_ino) {
		((php_netstream_data_t *)stream->abstract)->timeout = known->time;
	}
}

/* phpredis distinguishes connections by host and port. */
static void open_stream(INTERNAL_FUNCTION_PARAMETERS, zif_handler real)
{
	surus_pool_name name = surus_pool_name_of(&kind, execute_data, 1, 2);
	if (!surus_pool_enter(&name)) {
		surus_pool_timeout("redisexception");
		return;
	}
	real(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	surus_kept_use(SURUS_KEPT_REDIS, NULL);
	note_limits();
	surus_pool_entered(&name, NULL);
}

static zif_handler real_pconnect, real_popen;

static ZEND_NAMED_FUNCTION(around_pconnect)
{
	open_stream(INTERNAL_FUNCTION_PARAM_PASSTHRU, real_pconnect);
}

static ZEND_NAMED_FUNCTION(around_popen)
{
	open_stream(INTERNAL_FUNCTION_PARAM_PASSTHRU, real_popen);
}

void surus_redis_start(void)
{
	kind.type = zend_fetch_list_dtor_id("phpredis persistent connections pool");
	if (kind.type) {
#define STAND(name, class_name, function) real_##name = surus_replace(class_name, function, around_##name);
		CONSTRUCTORS(STAND)
#undef STAND
		real_pconnect = surus_replace("redis", "pconnect", around_pconnect);
		real_popen = surus_replace("redis", "popen", around_popen);
	}
}

/* Reads one line of an answer; returns its first character, 0 if there is none. */
static char answer(php_stream *stream, char *line, size_t size)
{
	return php_stream_get_line(stream, line, size, NULL) ? *line : 0;
}

static bool reset(php_stream *stream)
{
	char line[256];
	if (stream->readpos != stream->writepos || surus_is_readable(descriptor_of(stream))) {
		return false;
	}
	static const char whole[] = "*1\r\n$5\r\nRESET\r\n";
	if (php_stream_write(stream, whole, sizeof whole - 1) != sizeof whole - 1) {
		return false;
	}
	char first = answer(stream, line, sizeof line);
	if (first == '+') {
		return strncmp(line, "+RESET", 6) == 0;
	}
	/* An older server does not know RESET. DISCARD is an error if there is nothing to discard. */
	static const char parts[] = "*1\r\n$7\r\nDISCARD\r\n*1\r\n$7\r\nUNWATCH\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";
	return first == '-' && php_stream_write(stream, parts, sizeof parts - 1) == sizeof parts - 1
		&& answer(stream, line, sizeof line) != 0 && answer(stream, line, sizeof line) == '+'
		&& answer(stream, line, sizeof line) == '+';
}

static void clean(php_stream *stream)
{
	surus_patience patience = surus_patience_begin(stream);
	bool good = reset(stream);
	surus_patience_end(&patience, stream);
	int descriptor = descriptor_of(stream), off = 0;
	if (!good && descriptor >= 0) {
		shutdown(descriptor, SHUT_RDWR);
	} else if (descriptor >= 0) {
		restore_limit(stream);
		setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &off, sizeof off); /* Redis::OPT_TCP_KEEPALIVE */
	}
}

static void clean_all(surus_kept_list *streams)
{
	for (size_t i = 0; i < streams->count; i++) {
		clean(streams->entries[i].resource->ptr);
	}
	surus_kept_free(streams);
}

void surus_redis_clean(surus_task *task)
{
	(void)task;
	surus_kept_list pools = surus_kept_of(kind.type);
	for (size_t i = 0; i < pools.count; i++) {
		/* They are in PHP's list, so the pointers are valid. */
		surus_kept_list streams = parts_of(pools.entries[i].resource);
		clean_all(&streams);
	}
	/* Without pools (redis.pconnect.pooling_enabled) the streams are found by their names. */
	if (pools.count == 0) {
		surus_kept_list streams = named_streams();
		clean_all(&streams);
	}
	surus_kept_free(&pools);
}
