/* A request on a snapshot ends as any request of an isolate that serves one at a time (app/application.c), and then the memory
 * of the isolate is put back: its heap by pages/, its globals by isolate/saved.c. */
#include "snapshot/snapshot.h"
#include "connections/handle_request_end.h"
#include "connections/quiet.h"
#include "fiber/parts.h"
#include "fiber/state.h"
#include "hidden/engine.h"
#include "hidden/hidden.h"
#include "hidden/opcache.h"
#include "http/exceptions.h"
#include "http/response.h"
#include "isolate/saved.h"
#include "pages/pages.h"
#include "snapshot/objects.h"
#include "snapshot/refusals.h"
#include "task/fiber_stacks.h"
#include "task/log.h"
#include "task/state.h"

#include "Zend/zend_gc.h"

#include <stdlib.h>

struct surus_snapshot {
	/* What the isolate and its task know of their memory. */
	php_output_handler *output;
	uint32_t superglobals, scanned_functions, scanned_classes;
	size_t left_behind;
	zend_long resources; /* those of the boot have smaller numbers */
};

/* How often destructors of what was collected may leave something to collect. */
#define MOST_COLLECTIONS 10

static bool collect_all(void)
{
	for (int i = 0; i < MOST_COLLECTIONS && surus_gc->num_roots; i++) {
		gc_collect_cycles();
	}
	return surus_gc->num_roots == 0;
}

/* What has no destructor needs no mark at the end of each request, which would change its memory. */
static void mark_those_without_destructor(void)
{
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (IS_OBJ_VALID(object) && object->handlers->dtor_obj == zend_objects_destroy_object && !object->ce->destructor) {
			GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
		}
	}
}

static bool take(surus_task *task)
{
	surus_isolate *isolate = task->isolate;
	struct surus_snapshot *snapshot = malloc(sizeof *snapshot);
	isolate->saved = surus_saved_new();
	if (!snapshot || !isolate->saved) {
		free(snapshot);
		surus_logf(3, "There is no memory for a snapshot");
		return false;
	}
	*snapshot = (struct surus_snapshot){
		.output = task->output,
		.superglobals = isolate->superglobals,
		.scanned_functions = isolate->scanned_functions,
		.scanned_classes = isolate->scanned_classes,
		.left_behind = isolate->left_behind,
		.resources = EG(regular_list).nNextFreeElement,
	};
	/* No root is in the collector's buffer, whose content is not put back. */
	surus_gc->unused = 0;
	surus_gc->first_unused = 1;
	/* OPcache forgets its last look-up, which is of the boot. */
	surus_hidden_entered();
	const char *error = surus_pages_take(isolate->pages, CG(map_ptr_last) * sizeof(void *));
	if (!error) {
		error = surus_saved_take(isolate->saved, isolate->pages, &task->stack);
	}
	if (error) {
		free(snapshot);
		surus_logf(3, "There can be no snapshot: %s", error);
		return false;
	}
	isolate->snapshot = snapshot;
	return true;
}

surus_outcome surus_run_snapshot(surus_task *task)
{
	surus_isolate *isolate = task->isolate;
	if (!task->fiber || !isolate->pages || isolate->checked_heap) {
		surus_logf(3, "There can be no snapshot: this isolate has another heap");
		return SURUS_FATAL;
	}
	static zend_function bottom_function = {ZEND_INTERNAL_FUNCTION};
	zend_execute_data bottom = {.func = &bottom_function};
	EG(current_execute_data) = &bottom;
	SG(server_context) = task->exchange;
	surus_memory_only_start();
	volatile bool good = false;
	zend_first_try {
		surus_fiber_take_shutdown_functions(task);
		surus_output_begin(task);
		good = collect_all();
		if (!good) {
			surus_logf(3, "There can be no snapshot: garbage is left, of which destructors make ever more");
		}
		good = good && surus_can_be_kept();
	} zend_catch {
		good = false;
	} zend_end_try();
	surus_report_exception();
	SG(server_context) = NULL;
	EG(current_execute_data) = NULL;
	surus_handles_forget_task(task);
	surus_random_reset();
	if (!good || CG(unclean_shutdown) || isolate->collector_left) {
		return SURUS_FATAL;
	}
	mark_those_without_destructor();
	return take(task) ? SURUS_OK : SURUS_FATAL;
}

bool surus_snapshot_is_taken(const surus_isolate *isolate)
{
	return isolate->snapshot;
}

void surus_snapshot_begin(void)
{
	surus_opcache_set_time(time(NULL));
}

void surus_snapshot_destruct(surus_task *task)
{
	if (CG(unclean_shutdown) || task->isolate->had_fatal) {
		return;
	}
	zend_try {
		zend_call_destructors();
	} zend_end_try();
	surus_report_exception();
}

/* The newest first, as PHP does it: what depends on another one was made after it. */
static void close_resources(zend_long from)
{
	HashTable *list = &EG(regular_list);
	EG(flags) |= EG_FLAGS_IN_RESOURCE_SHUTDOWN;
	for (uint32_t i = list->nNumUsed; i-- > 0;) {
		zval *entry = ZEND_HASH_ELEMENT(list, i);
		if (Z_TYPE_P(entry) == IS_UNDEF) {
			continue;
		}
		zend_resource *resource = Z_RES_P(entry);
		if (resource->handle >= from && resource->type >= 0) {
			zend_list_close(resource);
		}
	}
	EG(flags) &= ~(zend_uchar)EG_FLAGS_IN_RESOURCE_SHUTDOWN;
}

/* As zend_objects_store_free_object_storage(), but for what is memory only. */
static void free_objects(void)
{
	zend_objects_store *objects = &EG(objects_store);
	for (uint32_t i = objects->top; i-- > 1;) {
		zend_object *object = objects->object_buckets[i];
		if (!IS_OBJ_VALID(object) || (OBJ_FLAGS(object) & IS_OBJ_FREE_CALLED) || surus_is_memory_only(object)) {
			continue;
		}
		GC_ADD_FLAGS(object, IS_OBJ_FREE_CALLED);
		GC_ADDREF(object);
		object->handlers->free_obj(object);
	}
}

/* As the end of a request of the module "streams": persistent streams go on without what the request knew them by. */
static void leave_persistent_streams(void)
{
	zend_resource *resource;
	ZEND_HASH_FOREACH_PTR(&EG(persistent_list), resource) {
		if (resource->type != php_file_le_pstream()) {
			continue;
		}
		php_stream *stream = resource->ptr;
		stream->res = NULL;
		if (stream->ctx) {
			zend_list_delete(stream->ctx);
			stream->ctx = NULL;
		}
	} ZEND_HASH_FOREACH_END();
}

bool surus_snapshot_free_rest(surus_task *task)
{
	surus_quiet quiet;
	surus_quiet_begin(&quiet);
	OG(flags) |= PHP_OUTPUT_DISABLED;
	volatile bool good = true;
	zend_try {
		if (task->isolate->had_fatal) {
			surus_free_fiber_stacks();
		}
		close_resources(task->isolate->snapshot->resources);
		free_objects();
		leave_persistent_streams();
	} zend_catch {
		good = false;
	} zend_end_try();
	surus_quiet_end(&quiet);
	surus_handles_forget_task(task);
	return good;
}

bool surus_snapshot_put_back(surus_task *task)
{
	surus_isolate *isolate = task->isolate;
	const struct surus_snapshot *snapshot = isolate->snapshot;
	size_t at;
	SG(server_context) = NULL;
	surus_hidden_entered(); /* as when it was taken */
	const char *changed = surus_saved_restore(isolate->saved, &at);
	if (changed) {
		surus_logf(4, "A request has changed memory of %s (at byte %zu) that cannot be put back: its isolate ends, and another one boots",
			changed, at);
		return false;
	}
	surus_pages_restore(isolate->pages);
	task->output = snapshot->output;
	task->ending = NULL; /* thrown by what was interrupted after surus_cancel_forget(), and gone with the memory */
	isolate->superglobals = snapshot->superglobals;
	isolate->scanned_functions = snapshot->scanned_functions;
	isolate->scanned_classes = snapshot->scanned_classes;
	isolate->left_behind = snapshot->left_behind;
	isolate->collector_left = isolate->had_fatal = false;
	return true;
}
