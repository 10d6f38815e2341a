/* Which handle a call uses, by its arguments. */
#include "connections/handle_frames.h"


/* What ext/sockets keeps of a socket that was made from a stream, or that a stream was made from. Both have one
 * descriptor: whoever closes one of them closes the other. */
static const zval *stream_of_socket(const zend_object *object)
{
	static const size_t stream_at = 4 * sizeof(int);
	const zval *stream = (const zval *)((const char *)object - object->handlers->offset + stream_at);
	return Z_TYPE_P(stream) == IS_RESOURCE ? stream : NULL;
}

static php_stream *stream_of_filter(const zend_resource *resource)
{
	const php_stream_filter *filter = resource->type == php_file_le_stream_filter() ? resource->ptr : NULL;
	return filter && filter->chain ? filter->chain->stream : NULL;
}

bool surus_used_resource(const zval *value, surus_used_handle *what)
{
	const zend_resource *resource = Z_RES_P(value);
	const php_stream *filtered = stream_of_filter(resource);
	resource = filtered ? filtered->res : resource;
	if (!resource) {
		return false;
	}
	what->is_kept = resource->type == php_file_le_pstream();
	what->handle = resource->type == php_file_le_stream() || what->is_kept ? resource->ptr : NULL;
	what->object = NULL;
	what->kind = &surus_stream_kind;
	what->number = (int)resource->handle;
	return what->handle;
}

bool surus_used_object(zend_object *object, surus_used_handle *what)
{
	what->object = object;
	what->kind = surus_handle_kind_of(object);
	what->handle = what->kind ? surus_handle_of(what->kind, object) : NULL;
	const zval *stream = what->handle && what->kind->is_socket ? stream_of_socket(object) : NULL;
	if (stream) {
		surus_used_handle own = *what;
		if (!surus_used_resource(stream, what)) {
			*what = own;
		}
	}
	return what->handle;
}

bool surus_used_in_frame(const zend_execute_data *frame, surus_used_handle *what)
{
	*what = (surus_used_handle){0};
	if (Z_TYPE(frame->This) == IS_OBJECT) {
		return surus_used_object(Z_OBJ(frame->This), what);
	}
	uint32_t count = ZEND_CALL_NUM_ARGS(frame);
	if (count && Z_TYPE_P(ZEND_CALL_ARG(frame, 1)) == IS_RESOURCE) {
		return surus_used_resource(ZEND_CALL_ARG(frame, 1), what);
	}
	for (uint32_t i = 1; i <= count && i <= 2; i++) {
		zval *argument = ZEND_CALL_ARG(frame, i);
		ZVAL_DEREF(argument);
		if (Z_TYPE_P(argument) == IS_OBJECT && surus_handle_kind_of(Z_OBJ_P(argument))) {
			return surus_used_object(Z_OBJ_P(argument), what);
		}
	}
	return false;
}
