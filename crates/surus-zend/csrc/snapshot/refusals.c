#include "snapshot/refusals.h"
#include "snapshot/holders.h"
#include "snapshot/objects.h"
#include "snapshot/origins.h"
#include "task/log.h"

#include "main/php_streams.h"

/* More would be of no use in a log. */
#define MOST_LINES 10

static unsigned check_objects(void)
{
	unsigned wrong = 0;
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (!IS_OBJ_VALID(object) || surus_is_memory_only(object)) {
			continue;
		}
		if (++wrong <= MOST_LINES) {
			zend_string *path = surus_path_to(object);
			const char *origin = surus_origin_of(object);
			surus_logf(3, "The boot leaves an object of %s in %s%s%s. It has something outside of PHP's memory, which no request could put back: "
				"make it in the request", ZSTR_VAL(object->ce->name), path ? ZSTR_VAL(path) : "a place that is not known",
				origin ? ", made in " : "", origin ? origin : "");
			if (path) {
				zend_string_release(path);
			}
		}
	}
	return wrong;
}

/* A context of streams, a class that stream_wrapper_register() was told; and persistent streams stay anyway. */
static bool is_memory_only(const char *type)
{
	return strcmp(type, "stream-context") == 0 || strcmp(type, "stream factory") == 0 || strcmp(type, "persistent stream") == 0;
}

static unsigned check_resources(void)
{
	unsigned wrong = 0;
	zend_resource *resource;
	ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
		const char *type = resource->type >= 0 ? zend_rsrc_list_get_rsrc_type(resource) : NULL;
		if (!type || is_memory_only(type)) {
			continue;
		}
		const php_stream *stream = strcmp(type, "stream") == 0 ? resource->ptr : NULL;
		const char *path = stream && stream->orig_path ? stream->orig_path : NULL;
		if (++wrong <= MOST_LINES) {
			surus_logf(3, "The boot leaves a resource of type %s open%s%s: close it, or open it in the request", type, path ? ", of " : "",
				path ? path : "");
		}
	} ZEND_HASH_FOREACH_END();
	return wrong;
}

bool surus_can_be_kept(void)
{
	bool can = check_objects() + check_resources() == 0;
	surus_origins_forget();
	return can;
}
