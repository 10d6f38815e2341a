/* ext/standard's globals for files and streams. Most of them belong to a request: the default context, whose options may
 * be a user's credentials; the file that a user's stream wrapper is opening, by which PHP recognizes recursion; errors
 * of wrappers that PHP has not reported yet; what proc_close() waits for; the buffer of gethostbyname(). Tables of
 * wrappers and filters belong to the isolate. */
#include "fiber/file_state.h"

#include "ext/standard/file.h"

void surus_file_end_context(void *address, size_t size)
{
	(void)size;
	php_stream_context **context = address;
	if (*context) {
		zend_list_delete((*context)->res); /* streams that still use it have references of their own */
		*context = NULL;
	}
}

/* Begins with the errors of wrappers, whose name is not the same in all versions. */
void surus_file_end_rest(void *address, size_t size)
{
	(void)size;
	HashTable **errors = address;
	if (*errors) {
		zend_hash_destroy(*errors);
		FREE_HASHTABLE(*errors);
		*errors = NULL;
	}
#ifdef HAVE_GETHOSTBYNAME_R
	free(FG(tmp_host_buf));
	FG(tmp_host_buf) = NULL;
	FG(tmp_host_buf_len) = 0;
#endif
}

php_stream_context *surus_file_take_context(void)
{
	php_stream_context *context = FG(default_context);
	FG(default_context) = NULL;
	return context;
}

void surus_file_copy_context(const php_stream_context *from)
{
	php_stream_context *copy = php_stream_context_alloc();
	zval_ptr_dtor(&copy->options);
	ZVAL_ARR(&copy->options, zend_array_dup(Z_ARRVAL(from->options)));
	if (from->notifier) {
		copy->notifier = php_stream_notification_alloc();
		*copy->notifier = *from->notifier;
		Z_TRY_ADDREF(copy->notifier->ptr);
	}
	FG(default_context) = copy;
}
