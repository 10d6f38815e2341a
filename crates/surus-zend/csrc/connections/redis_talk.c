/* What phpredis (5.3.7) sends and reads: its mistakes when a connection ends in the middle of an answer.
 *
 * 1. Before it reads, it checks whether its connection has ended. If so, it connects again (redis_check_eof()) and waits
 *    there for the answer to a command that it has sent on the old connection: for ever, or for default_socket_timeout. If
 *    it cannot connect, it returns NULL and throws nothing. So a connection on which it is owed a reply, or the rest of
 *    one, has not ended for it: it reads the end, and throws. And it does not wait where nothing was sent, or nothing but AUTH and
 *    SELECT, which it sends itself after it has connected again, and both are answered.
 * 2. It removes two bytes as the end of each line, even if the line ended with the connection: it reads `:123` as 1, and a
 *    single byte as a length of 2^64 - 1, at which PHP aborts the process. Such a line is dropped; it throws, as if
 *    nothing had come. Other callers may read a last line without an end.
 * 3. Of a reply it reads the first byte, then the line. If the connection ends between them, it returns NULL and throws
 *    nothing. Of a status or an error it throws, but also uses a result that it has not set (variant_reply_generic() and redis_read_multibulk_recursive() ignore what
 *    redis_read_variant_line() returns): whatever value the stack has from a call before, often one that is freed
 *    already, would be freed once more. So the first byte comes only when the whole line is there; else the connection
 *    ends before it. */
#include "connections/redis_talk.h"
#include "base.h"
#include "persistent/redis.h"
#include "task/state.h"

#include <dlfcn.h>
#include <link.h>

/* ---- who calls ---- */

/* Its machine code; empty without phpredis. */
static struct { uintptr_t entry, from, to; } code;

static int find_code(struct dl_phdr_info *library, size_t size, void *argument)
{
	(void)size, (void)argument;
	bool is_own = false;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		uintptr_t from = library->dlpi_addr + part->p_vaddr;
		is_own = is_own || (part->p_type == PT_LOAD && code.entry - from < part->p_memsz);
	}
	for (int i = 0; is_own && i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
			code.from = library->dlpi_addr + part->p_vaddr;
			code.to = code.from + part->p_memsz;
		}
	}
	return is_own;
}

void surus_redis_talk_start(void)
{
	const zend_module_entry *module = zend_hash_str_find_ptr(&module_registry, "redis", sizeof "redis" - 1);
	if (module && module->handle) {
		code.entry = (uintptr_t)module->module_startup_func;
		dl_iterate_phdr(find_code, NULL);
	}
}

#define IS_PHPREDIS() ((uintptr_t)__builtin_return_address(0) - code.from < code.to - code.from)

/* ---- what was said ---- */

static surus_redis_talk *talk_on(const php_stream *stream)
{
	surus_task *task = surus_running_task();
	return task && task->redis_talk.stream == stream ? &task->redis_talk : NULL;
}

static bool is_fresh(const php_stream *stream)
{
	return !(stream->flags & PHP_STREAM_FLAG_WAS_WRITTEN) && stream->position == 0 && stream->readpos == stream->writepos;
}

/* "*2" or "$6", and the end of its line: moves `at` there and returns the number; -1 if it is something else. */
static long number(const char **at, const char *end, char type)
{
	long value = 0;
	const char *digit = *at + 1;
	if (*at >= end || **at != type) {
		return -1;
	}
	for (; digit < end && *digit >= '0' && *digit <= '9' && value < 1000000; digit++) {
		value = value * 10 + (*digit - '0');
	}
	if (end - digit < 2 || digit[0] != '\r' || digit[1] != '\n') {
		return -1;
	}
	*at = digit + 2;
	return value;
}

/* Whether these bytes are one command, AUTH or SELECT, as phpredis sends them after it has connected again. */
static bool is_introduction(const char *bytes, size_t count)
{
	const char *at = bytes, *end = bytes + count;
	long words = number(&at, end, '*');
	if (words != 2 && words != 3) {
		return false;
	}
	for (long i = 0; i < words; i++) {
		long length = number(&at, end, '$');
		if (length < 0 || end - at < length + 2) {
			return false;
		}
		if (i == 0 && !(length == 4 && memcmp(at, "AUTH", 4) == 0) && !(length == 6 && memcmp(at, "SELECT", 6) == 0)) {
			return false;
		}
		at += length + 2;
	}
	return at == end;
}

static bool waits_in_vain(const php_stream *stream)
{
	const surus_redis_talk *talk = talk_on(stream);
	return is_fresh(stream) || (talk && talk->introductions && talk->answers >= talk->introductions);
}

static bool is_owed(const surus_redis_talk *talk)
{
	return talk->owed > 0 || talk->type || talk->body;
}

/* The connection has ended, and it knows. */
static void note_end(surus_redis_talk *talk)
{
	if (talk) {
		talk->owed = 0;
		talk->type = 0;
		talk->body = false;
	}
}

/* More parts than any reply has that is worth waiting for. */
#define MANY (1L << 30)

/* The line of a reply, or of a part of one: of an array its parts follow, of a string its bytes. See Redis' serialization
 * protocol, version 2. */
static void note_line(surus_redis_talk *talk, const char *line)
{
	char type = talk->type ? talk->type : *line;
	long value = type == '*' || type == '$' ? strtol(line + !talk->type, NULL, 10) : 0;
	talk->type = 0;
	talk->owed -= talk->owed > 0;
	if (type == '*' && value > 0 && value < MANY) {
		talk->owed += value;
	}
	talk->body = type == '$' && value >= 0;
	talk->answers++;
}

/* ---- in place of PHP's functions ---- */

#define NEXT(result, name, ...)                                        \
	static result (*next)(__VA_ARGS__);                                \
	if (!next) {                                                       \
		next = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name);        \
	}

PHPAPI ssize_t _php_stream_write(php_stream *stream, const char *bytes, size_t count)
{
	NEXT(ssize_t, "_php_stream_write", php_stream *, const char *, size_t)
	if (!IS_PHPREDIS()) {
		return next(stream, bytes, count);
	}
	bool fresh = is_fresh(stream), introduces = is_introduction(bytes, count);
	ssize_t written = next(stream, bytes, count);
	surus_task *task = surus_running_task();
	if (task) {
		surus_redis_talk *talk = &task->redis_talk;
		bool goes_on = introduces && !fresh && talk->stream == stream && talk->introductions;
		if (!goes_on) {
			*talk = (surus_redis_talk){.stream = stream};
		}
		talk->introductions += goes_on || (introduces && fresh);
		talk->owed = written == (ssize_t)count;
	}
	return written;
}

PHPAPI bool _php_stream_eof(php_stream *stream)
{
	NEXT(bool, "_php_stream_eof", php_stream *)
	bool is_over = next(stream);
	if (is_over && IS_PHPREDIS()) {
		const surus_redis_talk *talk = talk_on(stream);
		return !talk || !is_owed(talk);
	}
	return is_over;
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

PHPAPI int _php_stream_getc(php_stream *stream)
{
	NEXT(int, "_php_stream_getc", php_stream *)
	if (!IS_PHPREDIS()) {
		return next(stream);
	}
	bool vain = waits_in_vain(stream);
	int first = vain ? EOF : next(stream);
	if (vain || (first != EOF && strstr(stream->ops->label, "_socket") && !has_line(stream))) {
		surus_redis_break_off(stream);
		first = EOF;
	}
	surus_redis_talk *talk = talk_on(stream);
	if (first == EOF) {
		note_end(talk);
	} else if (talk) {
		talk->type = (char)first;
	}
	return first;
}

PHPAPI char *_php_stream_get_line(php_stream *stream, char *buffer, size_t room, size_t *length)
{
	NEXT(char *, "_php_stream_get_line", php_stream *, char *, size_t, size_t *)
	if (!IS_PHPREDIS()) {
		return next(stream, buffer, room, length);
	}
	if (waits_in_vain(stream)) {
		surus_redis_break_off(stream);
		note_end(talk_on(stream));
		return NULL;
	}
	size_t count = 0;
	char *line = next(stream, buffer, room, &count);
	bool is_whole = line && count && line[count - 1] == '\n';
	surus_redis_talk *talk = talk_on(stream);
	if (talk && is_whole) {
		note_line(talk, line);
	} else {
		note_end(talk);
	}
	if (line && !is_whole && stream->eof) {
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

PHPAPI ssize_t _php_stream_read(php_stream *stream, char *buffer, size_t count)
{
	NEXT(ssize_t, "_php_stream_read", php_stream *, char *, size_t)
	if (!IS_PHPREDIS()) {
		return next(stream, buffer, count);
	}
	bool vain = waits_in_vain(stream);
	if (vain) {
		surus_redis_break_off(stream);
	}
	ssize_t got = vain ? 0 : next(stream, buffer, count);
	surus_redis_talk *talk = talk_on(stream);
	if (got <= 0) {
		note_end(talk);
	} else if (talk) {
		talk->body = false;
	}
	return got;
}
