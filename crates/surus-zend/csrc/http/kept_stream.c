/* The buffer of php://input, if the server has written the body to a file: this file as a PHP stream.
 *
 * PHP (main/php_variables.c, php_stream_input_read) reads 8 KB at a time and seeks before each read. So the stream does
 * not use PHP's buffer, which would be discarded each time; the server reads larger blocks, and lets other tasks run in
 * between. */
#include "http/kept_stream.h"
#include "task/running.h"
#include "task/state.h"

typedef struct {
	uint64_t at;
	uint64_t length;
} kept_place;

static ssize_t kept_read(php_stream *stream, char *buffer, size_t size)
{
	kept_place *place = stream->abstract;
	surus_task *task = surus_running;
	size_t got = task && task->exchange ? surus_rs_read_body_at(task->exchange, place->at, buffer, size) : 0;
	place->at += got;
	stream->eof = got == 0 || place->at >= place->length;
	if (got == 0 && place->at < place->length) {
		php_error_docref(NULL, E_WARNING, "The request body cannot be read");
		return -1;
	}
	return (ssize_t)got;
}

static int kept_seek(php_stream *stream, zend_off_t offset, int whence, zend_off_t *now)
{
	kept_place *place = stream->abstract;
	uint64_t from = whence == SEEK_END ? place->length : whence == SEEK_CUR ? place->at : 0;
	if (offset < 0 ? from < -(uint64_t)offset : (uint64_t)offset > place->length - from) {
		return -1;
	}
	place->at = from + (uint64_t)offset;
	*now = (zend_off_t)place->at;
	stream->eof = 0;
	return 0;
}

static int kept_stat(php_stream *stream, php_stream_statbuf *found)
{
	const kept_place *place = stream->abstract;
	memset(found, 0, sizeof *found);
	found->sb.st_mode = S_IFREG | 0400;
	found->sb.st_size = (off_t)place->length;
	return 0;
}

static ssize_t kept_write(php_stream *stream, const char *buffer, size_t size)
{
	return -1;
}

static int kept_close(php_stream *stream, int close_handle)
{
	efree(stream->abstract);
	return 0;
}

static int kept_flush(php_stream *stream)
{
	return 0;
}

static const php_stream_ops kept_ops = {
	kept_write, kept_read, kept_close, kept_flush, "request body", kept_seek, NULL, kept_stat, NULL
};

php_stream *surus_kept_stream(uint64_t length)
{
	kept_place *place = emalloc(sizeof *place);
	*place = (kept_place){0, length};
	php_stream *stream = php_stream_alloc(&kept_ops, place, NULL, "rb");
	stream->flags |= PHP_STREAM_FLAG_NO_BUFFER;
	return stream;
}
