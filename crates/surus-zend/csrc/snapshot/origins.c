#include "snapshot/origins.h"
#include "snapshot/objects.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_exceptions.h"

#include <stdio.h>
#include <stdlib.h>

/* A boot that makes more of them than this has the rest refused without its line. */
#define MOST 4096

typedef struct {
	const zend_object *object;
	const surus_isolate *isolate;
	char *text;
} origin;

static origin *origins;
static size_t count;

/* create_object of each class of an extension, by its address. */
static HashTable makers;

static zend_ulong key_of(const zend_class_entry *class)
{
	return (zend_ulong)(uintptr_t)class;
}

/* The last one of an address counts: the object before it is gone. */
static void note(const zend_object *object)
{
	char *text = NULL;
	origin *grown = count < MOST ? realloc(origins, (count + 1) * sizeof *origins) : NULL;
	if (!grown) {
		return;
	}
	origins = grown;
	if (asprintf(&text, "%s:%u", zend_get_executed_filename(), zend_get_executed_lineno()) >= 0) {
		origins[count++] = (origin){object, surus_entered, text};
	}
}

static zend_object *make(zend_class_entry *class)
{
	const zend_class_entry *internal = class;
	while (internal->type != ZEND_INTERNAL_CLASS) {
		internal = internal->parent;
	}
	/* One that was registered later has inherited this function. */
	while (internal->parent && !zend_hash_index_exists(&makers, key_of(internal))) {
		internal = internal->parent;
	}
	zend_object *(*maker)(zend_class_entry *);
	*(void **)&maker = zend_hash_index_find_ptr(&makers, key_of(internal));
	zend_object *object = maker(class);
	if (object && surus_entered && surus_entered->pages && !surus_entered->snapshot && !surus_is_memory_only(object)) {
		note(object);
	}
	return object;
}

void surus_origins_start(void)
{
	static bool started;
	if (started) {
		return;
	}
	started = true;
	surus_memory_only_start();
	zend_hash_init(&makers, 256, NULL, NULL, true);
	/* One with two names is found twice. Interfaces have another function in this place. What is never refused needs no origin, and
	 * requests make many of it. */
	zend_class_entry *class;
	ZEND_HASH_MAP_FOREACH_PTR(CG(class_table), class) {
		bool has_objects = class->type == ZEND_INTERNAL_CLASS && !(class->ce_flags & ZEND_ACC_INTERFACE);
		bool may_be_refused = has_objects && !surus_is_memory_only_class(class) && !instanceof_function(class, zend_ce_throwable);
		if (may_be_refused && class->create_object && class->create_object != make) {
			void *maker = *(void **)&class->create_object;
			zend_hash_index_add_new_ptr(&makers, key_of(class), maker);
			class->create_object = make;
		}
	} ZEND_HASH_FOREACH_END();
}

const char *surus_origin_of(const zend_object *object)
{
	for (size_t i = count; i > 0; i--) {
		if (origins[i - 1].object == object && origins[i - 1].isolate == surus_entered) {
			return origins[i - 1].text;
		}
	}
	return NULL;
}

void surus_origins_forget(void)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (origins[i].isolate == surus_entered) {
			free(origins[i].text);
		} else {
			origins[kept++] = origins[i];
		}
	}
	count = kept;
}
