/* The body of a request as a PHP stream: read as it arrives, and not stored. */
#include "http/body_stream.h"
#include "http/request_class.h"

/* The maximum size of one read of the stream. */
#define BLOCK (64 * 1024)

static ssize_t body_read(php_stream *stream, char *buffer, size_t size)
{
	void *exchange = surus_request_exchange(stream->abstract);
	size_t got = exchange ? surus_rs_read_body(exchange, buffer, size) : 0;
	if (got) {
		return (ssize_t)got;
	}
	stream->eof = 1;
	if (!exchange || surus_rs_body_failed(exchange)) {
		php_error_docref(NULL, E_WARNING, exchange ? "The body ends before its end" : "The request of this stream has ended");
		return -1;
	}
	return 0;
}

static ssize_t body_write(php_stream *stream, const char *buffer, size_t size)
{
	return -1;
}

static int body_close(php_stream *stream, int close_handle)
{
	OBJ_RELEASE((zend_object *)stream->abstract);
	return 0;
}

static int body_flush(php_stream *stream)
{
	return 0;
}

static const php_stream_ops body_ops = {
	body_write, body_read, body_close, body_flush, "request", NULL, NULL, NULL, NULL
};

void surus_body_stream(zval *to, zend_object *request)
{
	php_stream *stream = php_stream_alloc(&body_ops, request, NULL, "rb");
	if (!stream) {
		ZVAL_FALSE(to);
		return;
	}
	GC_ADDREF(request);
	/* fread() gets data without an additional copy; functions that read lines use a buffer nevertheless. */
	stream->flags |= PHP_STREAM_FLAG_NO_SEEK | PHP_STREAM_FLAG_NO_BUFFER;
	stream->chunk_size = BLOCK;
	php_stream_to_zval(stream, to);
}
