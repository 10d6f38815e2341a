/* Truncated lines of answers.
 *
 * phpredis removes two bytes as the end of each line that it reads, even if the line ended with the connection. It
 * reads `:123` as 1, and a single byte as a length of 2^64 - 1, at which PHP aborts the process. So such a line is
 * dropped: phpredis throws, as if nothing had come. Other callers may read a last line without an end.
 *
 * Of a status or an error phpredis reads the first byte, then the line. If the connection ends between them, it throws,
 * but also uses a result that it has not set (variant_reply_generic() and redis_read_multibulk_recursive() ignore what
 * redis_read_variant_line() returns): whatever value the stack has from a call before, often one that is freed already,
 * would be freed once more. So the first byte comes only when the whole line is there; else the connection ends before
 * it. */
#include "base.h"
#include "persistent/redis.h"

#include <dlfcn.h>

static bool is_phpredis(const void *caller)
{
	Dl_info library;
	const char *name = dladdr(caller, &library) && library.dli_fname ? strrchr(library.dli_fname, '/') : NULL;
	return name && strcmp(name, "/redis.so") == 0;
}

/* Longer than the lines that phpredis takes as a whole. */
#define LONGEST ((size_t)4096)

/* Waits until the buffer has a whole line. False: the connection has ended, or there is no more time. */
static bool has_line(php_stream *stream)
{
	for (;;) {
		size_t count = (size_t)(stream->writepos - stream->readpos);
		if (count >= LONGEST || (count && memchr(stream->readbuf + stream->readpos, '\n', count))) {
			return true;
		}
		if (php_stream_fill_read_buffer(stream, count + 1) != SUCCESS || (size_t)(stream->writepos - stream->readpos) <= count) {
			return false;
		}
	}
}

/* Replaces PHP's function. */
PHPAPI int _php_stream_getc(php_stream *stream)
{
	static int (*next)(php_stream *);
	if (!next) {
		next = (int (*)(php_stream *))dlsym(RTLD_NEXT, "_php_stream_getc");
	}
	int first = next(stream);
	if ((first == '+' || first == '-') && strstr(stream->ops->label, "_socket") && is_phpredis(__builtin_return_address(0))
		&& !has_line(stream)) {
		surus_redis_break_off(stream);
		return EOF;
	}
	return first;
}

/* Replaces PHP's function. */
PHPAPI char *_php_stream_get_line(php_stream *stream, char *buffer, size_t room, size_t *length)
{
	static char *(*next)(php_stream *, char *, size_t, size_t *);
	if (!next) {
		next = (char *(*)(php_stream *, char *, size_t, size_t *))dlsym(RTLD_NEXT, "_php_stream_get_line");
	}
	size_t count = 0;
	char *line = next(stream, buffer, room, &count);
	if (line && stream->eof && (count == 0 || line[count - 1] != '\n') && is_phpredis(__builtin_return_address(0))) {
		if (!buffer) {
			efree(line);
		}
		return NULL;
	}
	if (line && length) {
		*length = count;
	}
	return line;
}
