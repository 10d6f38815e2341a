/* Persistent connections in PHP's EG(persistent_list): which ones a request has used, and those that objects of a
 * booted isolate continue to use. */
#include "persistent/kept.h"
#include "task/running.h"
#include "task/state.h"

#include "main/php_network.h"

#include <poll.h>

static const char ADOPTED[] = "surus: adopted ";

zif_handler surus_replace(const char *class_name, const char *name, zif_handler with)
{
	HashTable *functions = CG(function_table);
	if (class_name) {
		zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), class_name, strlen(class_name));
		functions = class ? &class->function_table : NULL;
	}
	zend_function *function = functions ? zend_hash_str_find_ptr(functions, name, strlen(name)) : NULL;
	if (!function || function->type != ZEND_INTERNAL_FUNCTION) {
		return NULL;
	}
	zif_handler before = function->internal_function.handler;
	function->internal_function.handler = with;
	return before;
}

bool surus_is_readable(int descriptor)
{
	if (surus_rs_is_quiet(descriptor)) {
		return false;
	}
	struct pollfd state = {.fd = descriptor, .events = POLLIN | POLLRDHUP};
	return descriptor < 0 || poll(&state, 1, 0) != 0;
}

static php_netstream_data_t *socket_of(php_stream *stream)
{
	/* The struct of ext/openssl's sockets begins with it. */
	return stream && strstr(stream->ops->label, "_socket") ? stream->abstract : NULL;
}

surus_patience surus_patience_begin(php_stream *stream)
{
	php_netstream_data_t *socket = socket_of(stream);
	if (!socket) {
		return (surus_patience){NULL};
	}
	surus_patience patience = {stream, socket->timeout};
	socket->timeout = (struct timeval){.tv_sec = SURUS_PATIENCE_MS / 1000, .tv_usec = SURUS_PATIENCE_MS % 1000 * 1000};
	return patience;
}

void surus_patience_end(const surus_patience *patience, php_stream *stream)
{
	if (patience->stream && patience->stream == stream) {
		socket_of(stream)->timeout = patience->before;
	}
}

/* ---- used by a request ---- */

void surus_kept_use(unsigned kind, const void *handle)
{
	surus_task *task = surus_request_of(surus_running);
	if (!task || task->script || zend_hash_num_elements(&EG(persistent_list)) == 0) {
		return;
	}
	surus_used *used = &task->used;
	used->kinds |= kind;
	for (unsigned i = 0; i < used->count && i < SURUS_USED_HANDLES; i++) {
		if (used->handles[i] == handle) {
			return;
		}
	}
	if (handle) {
		if (used->count < SURUS_USED_HANDLES) {
			used->handles[used->count] = handle;
		}
		used->count++;
	}
}

bool surus_kept_was_used(const surus_task *task, const void *handle)
{
	const surus_used *used = &task->used;
	for (unsigned i = 0; i < used->count && i < SURUS_USED_HANDLES; i++) {
		if (used->handles[i] == handle) {
			return true;
		}
	}
	return used->count > SURUS_USED_HANDLES; /* more than are noted: all of them */
}

static bool is_of(const zend_string *key, const zend_resource *resource, int type)
{
	return key && type && resource->type == type && !zend_string_starts_with_cstr(key, ADOPTED, sizeof ADOPTED - 1);
}

surus_kept_list surus_kept_of(int type)
{
	surus_kept_list list = {NULL, 0};
	uint32_t room = type ? zend_hash_num_elements(&EG(persistent_list)) : 0;
	if (room == 0) {
		return list;
	}
	list.entries = safe_pemalloc(room, sizeof *list.entries, 0, true);
	zend_string *key;
	zend_resource *resource;
	ZEND_HASH_FOREACH_STR_KEY_PTR(&EG(persistent_list), key, resource) {
		if (is_of(key, resource, type)) {
			list.entries[list.count++] = (surus_kept){.key = key, .resource = resource};
		}
	} ZEND_HASH_FOREACH_END();
	return list;
}

void surus_kept_free(surus_kept_list *list)
{
	pefree(list->entries, true);
	*list = (surus_kept_list){NULL, 0};
}

bool surus_kept_has(int type, const void *handle)
{
	zend_string *key;
	zend_resource *resource;
	ZEND_HASH_FOREACH_STR_KEY_PTR(&EG(persistent_list), key, resource) {
		if (resource->ptr == handle && is_of(key, resource, type)) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

void surus_kept_close(const surus_kept *kept)
{
	zend_hash_del(&EG(persistent_list), kept->key);
}

/* ---- used by objects of a booted isolate ---- */

static HashTable *list_of_isolate(void)
{
	surus_task *task = surus_request_of(surus_running);
	return task && task->isolate->connections ? task->isolate->connections : &EG(persistent_list);
}

void surus_kept_adopt(const surus_kept *kept)
{
	char key[64];
	int length = snprintf(key, sizeof key, "%s%p", ADOPTED, kept->resource->ptr);
	zval entry;
	ZVAL_NEW_PERSISTENT_RES(&entry, -1, kept->resource->ptr, kept->resource->type);
	zend_hash_str_update(list_of_isolate(), key, (size_t)length, &entry);
	/* This destroys only the entry, not the connection. */
	kept->resource->type = -1;
	zend_hash_del(&EG(persistent_list), kept->key);
}

void surus_kept_sweep(int type, bool (*done)(void *handle))
{
	HashTable *list = list_of_isolate();
	zend_string *key;
	zend_resource *resource;
	ZEND_HASH_FOREACH_STR_KEY_PTR(list, key, resource) {
		if (key && resource->type == type && zend_string_starts_with_cstr(key, ADOPTED, sizeof ADOPTED - 1) && done(resource->ptr)) {
			zend_hash_del(list, key);
		}
	} ZEND_HASH_FOREACH_END();
}
