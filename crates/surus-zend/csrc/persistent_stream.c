/* pfsockopen() and memcached. Nobody but the application knows the protocol of a stream: what can be said is that one with
 * something to read has an answer that nobody has waited for, or was closed; it is closed. memcached has no sessions, but
 * answers, too. */
#include "persistent.h"

#include "main/php_network.h"

#include <dlfcn.h>

static int memcached_type;

#define CONSTRUCTORS(X)                          \
	X(open, NULL, "pfsockopen")                  \
	X(client, NULL, "stream_socket_client")

/* A resource of a request has it. */
static bool is_in_use(const php_stream *stream)
{
	zend_resource *resource;
	ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
		if (resource->ptr == stream) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

static bool has_answers(php_stream *stream)
{
	php_socket_t descriptor = -1;
	return stream->readpos != stream->writepos
		|| (php_stream_cast(stream, PHP_STREAM_AS_FD_FOR_SELECT | PHP_STREAM_CAST_INTERNAL, (void *)&descriptor, 0) == SUCCESS
			&& surus_is_readable(descriptor));
}

static void close_stale(void)
{
	surus_kept kept[SURUS_MAX_KEPT];
	size_t count = surus_kept_of(php_file_le_pstream(), kept, SURUS_MAX_KEPT);
	for (size_t i = 0; i < count; i++) {
		php_stream *stream = kept[i].resource->ptr;
		/* Its pool has them, and does not see them go. */
		bool is_redis = zend_string_starts_with_literal(kept[i].key, "phpredis");
		if (!is_redis && !is_in_use(stream) && has_answers(stream)) {
			surus_kept_close(&kept[i]);
		}
	}
}

#define AROUND(name, class_name, function)                             \
	static zif_handler real_##name;                                    \
	static ZEND_NAMED_FUNCTION(around_##name)                          \
	{                                                                  \
		if (zend_hash_num_elements(&EG(persistent_list))) {            \
			close_stale();                                             \
		}                                                              \
		real_##name(INTERNAL_FUNCTION_PARAM_PASSTHRU);                 \
		surus_kept_use(SURUS_KEPT_STREAM, NULL);                       \
	}
CONSTRUCTORS(AROUND)
#undef AROUND

static zif_handler real_memcached;

static ZEND_NAMED_FUNCTION(around_memcached)
{
	real_memcached(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	surus_kept_use(SURUS_KEPT_MEMCACHED, NULL);
}

void surus_streams_start(void)
{
#define STAND(name, class_name, function) real_##name = surus_replace(class_name, function, around_##name);
	CONSTRUCTORS(STAND)
#undef STAND
	memcached_type = zend_fetch_list_dtor_id("Memcached persistent connection");
	if (memcached_type) {
		real_memcached = surus_replace("memcached", "__construct", around_memcached);
	}
}

void surus_streams_clean(surus_task *task)
{
	(void)task;
	close_stale();
}

/* ---- memcached, whose resource is libmemcached's handle ---- */

/* An object of PHP's class begins with the handle. */
static bool has_object(const void *handle)
{
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (IS_OBJ_VALID(object) && object->handlers->offset
			&& (zend_string_equals_literal(object->ce->name, "Memcached")
				|| (object->ce->type == ZEND_USER_CLASS && object->handlers->free_obj != zend_object_std_dtor))
			&& *(void **)((char *)object - object->handlers->offset) == handle) {
			return true;
		}
	}
	return false;
}

void surus_memcached_clean(surus_task *task)
{
	(void)task;
	typedef const void *instance;
	uint32_t (*server_count)(const void *) = (uint32_t(*)(const void *))dlsym(RTLD_DEFAULT, "memcached_server_count");
	instance (*server)(const void *, uint32_t) = (instance(*)(const void *, uint32_t))dlsym(RTLD_DEFAULT, "memcached_server_instance_by_position");
	uint32_t (*responses)(instance) = (uint32_t(*)(instance))dlsym(RTLD_DEFAULT, "memcached_server_response_count");
	void (*quit)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "memcached_quit");
	if (!server_count || !server || !responses || !quit) {
		return;
	}
	surus_kept kept[SURUS_MAX_KEPT];
	size_t count = surus_kept_of(memcached_type, kept, SURUS_MAX_KEPT);
	for (size_t i = 0; i < count; i++) {
		void *handle = kept[i].resource->ptr;
		bool waits = false;
		for (uint32_t n = 0; n < server_count(handle); n++) {
			waits = waits || responses(server(handle, n)) > 0;
		}
		if (waits && !has_object(handle)) {
			quit(handle); /* it connects again when it is used */
		}
	}
}
