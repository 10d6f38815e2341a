/* Request bodies that the server has written to files are not written a second time.
 *
 * A form is read by PHP's parser (main/rfc1867.c), so limits and errors are the same as in PHP. In place of the content
 * of a file that the server has stored separately, the parser gets a mark. Before it writes data, it calls a callback,
 * which may change the number of bytes: here it becomes the length of the file. PHP checks that length as usual, and
 * then calls write(), which exchanges the stored file with PHP's (src/blocking/hand_over.rs).
 *
 * Any other body is read through php://input (http/kept_stream.c).
 */
#include "http/form_files.h"
#include "http/kept_stream.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_virtual_cwd.h"
#include "main/rfc1867.h"

static int (*next_callback)(unsigned int event, void *data, void **extra);
static void (*next_reader)(void);
static bool parser_is_plain;

/* A script that accesses an upload adds its random name to PHP's realpath cache. The cache belongs to the process, and
 * such an entry is never used again: these entries would fill it. */
static void note_upload(surus_task *task, const char *name)
{
	char **names = name ? realloc(task->uploads, (task->upload_count + 1) * sizeof *names) : NULL;
	if (!names) {
		return;
	}
	task->uploads = names;
	names[task->upload_count] = strdup(name);
	task->upload_count += names[task->upload_count] != NULL;
}

void surus_forget_uploads(surus_task *task)
{
	for (uint32_t i = 0; i < task->upload_count; i++) {
		realpath_cache_del(task->uploads[i], strlen(task->uploads[i]));
		free(task->uploads[i]);
	}
	free(task->uploads);
	task->uploads = NULL;
	task->upload_count = 0;
}

static int on_form(unsigned int event, void *data, void **extra)
{
	surus_task *task = surus_request_of(surus_running);
	if (event == MULTIPART_EVENT_START && task && parser_is_plain) {
		surus_rs_mark_files(task->exchange);
	}
	if (event == MULTIPART_EVENT_FILE_END) {
		surus_rs_forget_file();
		if (task) {
			note_upload(task, ((multipart_event_file_end *)data)->temp_filename);
		}
	}
	int result = next_callback ? next_callback(event, data, extra) : SUCCESS;
	if (event == MULTIPART_EVENT_FILE_DATA && task && result != FAILURE) {
		multipart_event_file_data *found = data;
		uint64_t length;
		if (found->offset == 0 && surus_rs_hand_over_file(task->exchange, (surus_str){found->data, found->length}, &length)) {
			SG(read_post_bytes) += (int64_t)length - (int64_t)found->length;
			*found->newlength = (size_t)length;
		}
	}
	return result;
}

/* A form that PHP does not read now may be read later: by request_parse_body() of PHP 8.4. */
static bool is_form(void)
{
	static const char *const kinds[] = {"multipart/form-data", "application/x-www-form-urlencoded"};
	const char *type = SG(request_info).content_type;
	for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++) {
		if (strncasecmp(type, kinds[i], strlen(kinds[i])) == 0) {
			return true;
		}
	}
	return false;
}

void surus_adopt_body(void)
{
	surus_task *task = surus_request_of(surus_running);
	bool too_large = SG(post_max_size) > 0 && SG(request_info).content_length > SG(post_max_size);
	if (!task || task->work != SURUS_RUN_CLASSIC || SG(request_info).request_body || SG(request_info).post_entry || SG(post_read) || too_large || is_form()) {
		return;
	}
	uint64_t length;
	if (surus_rs_take_body_file(task->exchange, &length)) {
		SG(request_info).request_body = surus_kept_stream(length);
		SG(read_post_bytes) = (int64_t)length;
		SG(post_read) = 1;
	}
}

static void read_post(void)
{
	surus_adopt_body();
	if (next_reader && !SG(post_read)) {
		next_reader();
	}
}

void surus_form_files_start(void)
{
	/* Others that read or transform forms would break the marks, or get marks instead of content. */
	parser_is_plain = !zend_ini_long("mbstring.encoding_translation", sizeof "mbstring.encoding_translation" - 1, 0)
		&& !zend_hash_str_exists(&module_registry, "uploadprogress", sizeof "uploadprogress" - 1);
	next_callback = php_rfc1867_callback;
	php_rfc1867_callback = on_form;
	next_reader = sapi_module.default_post_reader;
	sapi_module.default_post_reader = read_post;
}
