/* A connection's handle serves one request at a time. Requests of one isolate share objects, if the application lets
 * them; the drivers below would take one's answer for another's.
 *
 * Each function that uses a handle is entered through ours, which notes the request that used the handle last. Nothing is
 * noted when it returns or parks: only where another request comes is the last one's stack looked at. If that is inside a
 * call on the same handle, or has begun something on it that must not be mixed (a transaction), the other one gets an
 * exception before the driver is touched.
 */
#include "handles.h"
#include "fiber_state.h"

#include "Zend/zend_extensions.h"

typedef struct {
	surus_task *task; /* NULL: one that was given up inside of it */
	zend_object *object;
	surus_handle_kind *kind;
} use;

/* By the handle's address, of all isolates: each has a heap of its own. */
static HashTable uses;
/* The last one that was noted. */
static struct { const void *handle; const surus_task *task; } last;
/* Where functions have their own handler. */
static int slot = -1;

static zend_ulong key_of(const void *handle)
{
	return (zend_ulong)(uintptr_t)handle >> 4;
}

/* The handle that a frame's function uses, and the object that stands for it. */
static const void *handle_of_frame(const zend_execute_data *frame, zend_object **object, surus_handle_kind **kind)
{
	if (Z_TYPE(frame->This) == IS_OBJECT) {
		*object = Z_OBJ(frame->This);
		*kind = surus_handle_kind_of(*object);
		return *kind ? surus_handle_of(*kind, *object) : NULL;
	}
	uint32_t count = ZEND_CALL_NUM_ARGS(frame);
	if (count && Z_TYPE_P(ZEND_CALL_ARG(frame, 1)) == IS_RESOURCE) {
		const zend_resource *resource = Z_RES_P(ZEND_CALL_ARG(frame, 1));
		bool is_stream = resource->type == php_file_le_stream() || resource->type == php_file_le_pstream();
		*object = NULL;
		*kind = &surus_stream_kind;
		return is_stream ? resource->ptr : NULL;
	}
	for (uint32_t i = 1; i <= count && i <= 2; i++) {
		zval *argument = ZEND_CALL_ARG(frame, i);
		ZVAL_DEREF(argument);
		if (Z_TYPE_P(argument) == IS_OBJECT) {
			*object = Z_OBJ_P(argument);
			*kind = surus_handle_kind_of(*object);
			if (*kind) {
				return surus_handle_of(*kind, *object);
			}
		}
	}
	return NULL;
}

/* The frame in which a task is inside a call on a handle. */
static const zend_execute_data *use_in(surus_task *task, const void *handle)
{
	const zend_execute_data *frame = task->frame;
	for (; frame; frame = frame->prev_execute_data) {
		zend_object *object;
		surus_handle_kind *kind;
		if (frame->func && frame->func->type == ZEND_INTERNAL_FUNCTION && handle_of_frame(frame, &object, &kind) == handle) {
			return frame;
		}
	}
	return NULL;
}

/* True if nobody else is in the way; else it throws. */
static bool is_free(const use *known, surus_task *task, surus_handle_kind *kind, zend_object *object, const void *handle)
{
	if (known->task == task) {
		return true;
	}
	const zend_execute_data *frame = known->task ? use_in(known->task, handle) : NULL;
	const char *begun = NULL;
	if (known->task && !frame && kind->begun) {
		task->is_asking = true;
		begun = kind->begun(object);
		task->is_asking = false;
	}
	if (known->task && !frame && !begun) {
		return !EG(exception);
	}
	surus_throw_in_use(object ? ZSTR_VAL(object->ce->name) : "A stream", known->task, frame, begun);
	return false;
}

/* What stands before the handlers of objects whose end matters here. Extensions make these structs when they start. */
typedef struct {
	const zend_object_handlers *handlers;
	void (*destruct)(zend_object *object);
	void (*free)(zend_object *object);
} ending;

#define ENDINGS 16
static ending endings[ENDINGS];

/* Objects that tell their server when they are freed: not while another request is inside a call. They wait. */
typedef struct {
	surus_isolate *isolate;
	zend_object *object;
} waiting;

static waiting *waiting_list;
static size_t waiting_count, waiting_room;

static const ending *ending_of(const zend_object *object)
{
	for (size_t i = 0; i < ENDINGS; i++) {
		if (endings[i].handlers == object->handlers) {
			return &endings[i];
		}
	}
	return NULL;
}

static bool is_used_by_another(zend_object *object)
{
	surus_handle_kind *kind = surus_handle_kind_of(object);
	const void *handle = kind && kind->answers_to_free ? surus_handle_of(kind, object) : NULL;
	const use *known = handle ? zend_hash_index_find_ptr(&uses, key_of(handle)) : NULL;
	return known && known->task && known->task != surus_running && use_in(known->task, handle);
}

/* An object that gets another reference in here lives on. */
static void destruct(zend_object *object)
{
	ending_of(object)->destruct(object);
	if (!surus_running || !is_used_by_another(object)) {
		return;
	}
	if (waiting_count == waiting_room) {
		size_t room = waiting_room ? 2 * waiting_room : 16;
		waiting *list = realloc(waiting_list, room * sizeof *list);
		if (!list) {
			return;
		}
		waiting_list = list;
		waiting_room = room;
	}
	GC_ADDREF(object);
	waiting_list[waiting_count++] = (waiting){surus_entered, object};
}

/* Each may wait for its server, and the list may change meanwhile. */
static void free_waiting(surus_isolate *isolate)
{
	for (size_t i = 0; i < waiting_count;) {
		waiting each = waiting_list[i];
		if (each.isolate == isolate && !is_used_by_another(each.object)) {
			waiting_list[i] = waiting_list[--waiting_count];
			OBJ_RELEASE(each.object);
			i = 0;
		} else {
			i++;
		}
	}
}

/* A constructor may put a kept connection below its object: it may have been noted by more than one handle. */
static void free_object(zend_object *object)
{
	zend_ulong key;
	use *known;
	ZEND_HASH_FOREACH_NUM_KEY_PTR(&uses, key, known) {
		if (known->object == object) {
			zend_hash_index_del(&uses, key);
		}
	} ZEND_HASH_FOREACH_END();
	last.handle = NULL;
	last.task = NULL;
	surus_statement_forget(object);
	ending_of(object)->free(object);
}

/* Of all objects of a kind, once there is one. */
static void watch_end(zend_object *object, surus_handle_kind *kind)
{
	kind->is_watched = true;
	if (!kind->answers_to_free && !kind->end && !kind->has_steps) {
		return;
	}
	zend_object_handlers *handlers = (zend_object_handlers *)object->handlers;
	for (size_t i = 0; i < ENDINGS && handlers->free_obj != free_object; i++) {
		if (!endings[i].handlers || endings[i].handlers == handlers) {
			endings[i] = (ending){handlers, handlers->dtor_obj, handlers->free_obj};
			handlers->dtor_obj = destruct;
			handlers->free_obj = free_object;
		}
	}
}

/* Stands before a class's own, where that writes the handlers of all its objects again for each. */
zend_object *surus_handle_create(zend_class_entry *class)
{
	surus_handle_kind *kind = surus_handle_kind_of_class(class);
	zend_object *object = kind->create(class);
	watch_end(object, kind);
	return object;
}

static ZEND_NAMED_FUNCTION(guarded);

static zif_handler handler_of(const zend_function *function)
{
	return (zif_handler)function->internal_function.reserved[slot];
}

static bool claim(surus_task *task, const zend_execute_data *frame)
{
	zend_object *object;
	surus_handle_kind *kind;
	const void *handle = handle_of_frame(frame, &object, &kind);
	if (!handle) {
		return true;
	}
	if (UNEXPECTED(!kind->is_watched)) {
		watch_end(object, kind);
	}
	bool has_steps = kind->has_steps;
	if (last.handle == handle && last.task == task) {
		return !has_steps || surus_statement_step(task, object, handler_of(frame->func));
	}
	use *known = zend_hash_index_find_ptr(&uses, key_of(handle));
	if (known && !is_free(known, task, kind, object, handle)) {
		return false;
	}
	if (known && known->kind->end && !kind->end) {
		known->task = task; /* and still by the object that ends what is begun */
	} else {
		use now = {task, object, kind};
		zend_hash_index_update_mem(&uses, key_of(handle), &now, sizeof now);
	}
	task->uses_handles = true;
	last.handle = handle;
	last.task = task;
	return !has_steps || surus_statement_step(task, object, handler_of(frame->func));
}

static ZEND_NAMED_FUNCTION(guarded)
{
	surus_task *task = surus_running;
	zif_handler handler = handler_of(EX(func));
	if (task && task->fiber && !task->is_asking && !claim(task, execute_data)) {
		RETURN_THROWS();
	}
	handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void guard(zend_internal_function *function)
{
	if (function->handler && function->handler != guarded) {
		function->reserved[slot] = (void *)function->handler;
		function->handler = guarded;
	}
}

static void free_use(zval *value)
{
	free(Z_PTR_P(value));
}

void surus_handles_start(void)
{
	slot = zend_get_resource_handle("Surus");
	if (slot < 0) {
		return;
	}
	zend_hash_init(&uses, 16, NULL, free_use, true);
	surus_statements_start();
	surus_handle_functions(guard);
}

/* The object lives: the end of one of its kind is seen. */
static void end_begun(surus_task *task, zend_object *object, surus_handle_kind *kind)
{
	task->is_asking = true;
	const char *begun = kind->begun(object);
	task->is_asking = false;
	if (!begun) {
		if (kind->mend && task->cancel != SURUS_CANCEL_NONE) {
			kind->mend(object);
		}
		return;
	}
	surus_log_unended(task, object->ce, begun);
	GC_ADDREF(object);
	task->is_asking = true;
	zend_try {
		kind->end(object);
	} zend_end_try();
	task->is_asking = false;
	OBJ_RELEASE(object);
}

/* One of those that a task uses and on which something may be begun. */
static const use *first_of(const surus_task *task, zend_ulong *found)
{
	zend_ulong key;
	use *known;
	ZEND_HASH_FOREACH_NUM_KEY_PTR(&uses, key, known) {
		if (known->task == task && known->kind->end) {
			*found = key;
			return known;
		}
	} ZEND_HASH_FOREACH_END();
	return NULL;
}

void surus_handles_end(surus_task *task)
{
	if (!task->uses_handles) {
		return;
	}
	zend_ulong key = 0;
	use *known;
	task->is_asking = true;
	surus_statements_end(task);
	task->is_asking = false;
	/* Each time from the start: where one has waited, others have used the table meanwhile. */
	for (const use *first; (first = first_of(task, &key));) {
		end_begun(task, first->object, first->kind);
		zend_hash_index_del(&uses, key);
	}
	ZEND_HASH_FOREACH_NUM_KEY_PTR(&uses, key, known) {
		if (known->task == task) {
			zend_hash_index_del(&uses, key);
		}
	} ZEND_HASH_FOREACH_END();
	task->uses_handles = false;
	last.handle = NULL;
	last.task = NULL;
	free_waiting(task->isolate);
}

void surus_handles_forget(surus_isolate *isolate)
{
	surus_statements_forget(isolate);
	for (size_t i = 0; i < waiting_count;) {
		if (waiting_list[i].isolate == isolate) {
			waiting_list[i] = waiting_list[--waiting_count];
		} else {
			i++;
		}
	}
}

void surus_handles_give_up(surus_task *task)
{
	use *known;
	last.handle = NULL;
	last.task = NULL;
	surus_statements_give_up(task);
	ZEND_HASH_FOREACH_PTR(&uses, known) {
		if (known->task == task) {
			known->task = NULL;
		}
	} ZEND_HASH_FOREACH_END();
}
