/* Truncated lines of answers.
 *
 * phpredis removes two bytes as the end of each line that it reads, even if the line ended with the connection. It
 * reads `:123` as 1, and a single byte as a length of 2^64 - 1, at which PHP aborts the process. So such a line is
 * dropped: phpredis throws, as if nothing had come. Other callers may read a last line without an end. */
#include "base.h"

#include <dlfcn.h>

static bool is_phpredis(const void *caller)
{
	Dl_info library;
	const char *name = dladdr(caller, &library) && library.dli_fname ? strrchr(library.dli_fname, '/') : NULL;
	return name && strcmp(name, "/redis.so") == 0;
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
