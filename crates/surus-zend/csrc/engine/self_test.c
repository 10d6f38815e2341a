/* Prepares PHP for the self-test: a script without a file, and fixed settings. Runs in a child of the master, which
 * exits after it. */
#include "base.h"
#include "engine/restrictions.h"

#include "Zend/zend_stream.h"

/* SCRIPT_NAME of self_test.rs. */
#define SURUS_SELF_TEST "/surus-self-test.php"

static const char *text;
static size_t text_length;
static zend_op_array *(*next_compile)(zend_file_handle *handle, int type);

static ssize_t read_script(void *at, char *buffer, size_t length)
{
	size_t *position = at;
	size_t left = text_length - *position, count = length < left ? length : left;
	memcpy(buffer, text + *position, count);
	*position += count;
	return (ssize_t)count;
}

static size_t script_length(void *at)
{
	return text_length;
}

static void close_script(void *at)
{
	efree(at);
}

/* Bypasses OPcache, which would look for the file. */
static zend_op_array *compile_script(zend_file_handle *handle, int type)
{
	if (!handle->filename || !zend_string_equals_literal(handle->filename, SURUS_SELF_TEST)) {
		return next_compile(handle, type);
	}
	handle->type = ZEND_HANDLE_STREAM;
	handle->opened_path = zend_string_copy(handle->filename);
	handle->handle.stream = (zend_stream){
		.handle = ecalloc(1, sizeof(size_t)),
		.reader = read_script,
		.fsizer = script_length,
		.closer = close_script,
	};
	return compile_file(handle, type);
}

void surus_prepare_self_test(const char *script, size_t length)
{
	text = script;
	text_length = length;
	next_compile = zend_compile_file;
	zend_compile_file = compile_script;
	surus_restrictions_lift();
	/* Settings with which a site limits its scripts, or runs code with each request. */
	static const char *const settings[][2] = {
		{"open_basedir", ""}, {"auto_prepend_file", ""}, {"auto_append_file", ""}, {"memory_limit", "128M"},
		{"max_execution_time", "0"}, {"output_buffering", "0"}, {"output_handler", ""}, {"zlib.output_compression", "0"},
		{"session.auto_start", "0"}, {"arg_separator.input", "&"}, {"variables_order", "EGPCS"}, {"max_input_vars", "1000"},
		{"zend.enable_gc", "1"}, {"mbstring.encoding_translation", "0"}, {"display_errors", "0"}, {"error_prepend_string", ""},
		{"error_append_string", ""}, {"zend.script_encoding", ""}, {"input_encoding", ""}, {"hard_timeout", "0"},
		{"max_input_nesting_level", "64"}, {"unserialize_callback_func", ""}, {"short_open_tag", "0"}, {"precision", "14"},
	};
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), settings[i][0], strlen(settings[i][0]));
		if (entry) {
			/* The old value is not freed: the process exits soon. */
			entry->value = zend_string_init(settings[i][1], strlen(settings[i][1]), 1);
		}
	}
}
