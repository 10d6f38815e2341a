/* A connection's handle serves one request at a time. Requests of one isolate share objects, if the application lets
 * them; the drivers below would take one's answer for another's.
 *
 * Each function that uses a handle is entered through ours, which notes the request that used the handle last. Nothing is
 * noted when it returns or parks: only where another request comes is the last one's stack looked at. If that is inside a
 * call on the same handle, or has begun something on it that must not be mixed (a transaction), the other one gets an
 * exception before the driver is touched.
 */
#include "handle_uses.h"
#include "fiber_state.h"

#include "Zend/zend_extensions.h"

/* The last one that was noted. */
<<<<<<< HEAD
static struct { const void *handle; const surus_task *task; } last;
=======
static struct { const void *handle; const surus_task *task; surus_use *use; } last;
/* It is us who call the extension. */
static bool is_asking;
>>>>>>> 601b0ce (Tell the second request that meets another one's open exchange)
/* Where functions have their own handler. */
static int slot = -1;

void surus_uses_changed(void)
{
	last.handle = NULL;
	last.task = NULL;
	last.use = NULL;
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
const zend_execute_data *surus_use_in(surus_task *task, const void *handle)
{
	const zend_execute_data *frame = surus_fiber_frame(task);
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
static bool is_free(const surus_use *known, surus_task *task, surus_handle_kind *kind, zend_object *object, const void *handle)
{
	if (known->task == task || (kind->is_of_all && kind->is_of_all(handle))) {
		return true;
	}
	const zend_execute_data *frame = known->task ? surus_use_in(known->task, handle) : NULL;
	const char *begun = NULL;
	if (known->task && !frame && kind->begun) {
		task->is_asking = true;
		begun = kind->begun(object);
		task->is_asking = false;
	}
	if (known->task && !frame && known->wrote && kind->exchange) {
		begun = kind->exchange(handle, known->asked);
	}
	if (known->task && !frame && !begun) {
		return !EG(exception);
	}
	surus_throw_in_use(object ? ZSTR_VAL(object->ce->name) : "A stream", known->task, frame, begun);
	return false;
}

<<<<<<< HEAD
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

=======
>>>>>>> 601b0ce (Tell the second request that meets another one's open exchange)
static zif_handler handler_of(const zend_function *function)
{
	return (zif_handler)function->internal_function.reserved[slot];
}

static int number_of(const void *handle, const surus_handle_kind *kind)
{
	const php_stream *stream = handle;
	return kind == &surus_stream_kind && stream->res ? (int)stream->res->handle : 0;
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
		surus_watch_end(object, kind);
	}
	bool has_steps = kind->has_steps;
	if (last.handle == handle && last.task == task) {
		return !has_steps || surus_statement_step(task, object, handler_of(frame->func));
	}
	surus_use *known = surus_use_find(handle);
	int number = number_of(handle, kind);
	if (known && known->number != number) {
		surus_use_forget(known); /* it is closed */
		known = NULL;
	}
	if (known && !is_free(known, task, kind, object, handle)) {
		return false;
	}
	if (known && known->kind->end && !kind->end) {
		surus_use_pass(known, task); /* and still by the object that ends what is begun */
	} else if (!known || known->task != task || known->object != object) {
		known = surus_use_note(handle, task, object, kind);
		known->number = number;
	}
	last.handle = handle;
	last.task = task;
<<<<<<< HEAD
	return !has_steps || surus_statement_step(task, object, handler_of(frame->func));
=======
	last.use = known;
	return true;
>>>>>>> 601b0ce (Tell the second request that meets another one's open exchange)
}

static bool is_guarded(const surus_task *task)
{
	return task && task->fiber && !is_asking;
}

static ZEND_NAMED_FUNCTION(guarded)
{
	surus_task *task = surus_running;
	zif_handler handler = handler_of(EX(func));
<<<<<<< HEAD
	if (task && task->fiber && !task->is_asking && !claim(task, execute_data)) {
=======
	if (is_guarded(task) && !claim(task, execute_data)) {
>>>>>>> 601b0ce (Tell the second request that meets another one's open exchange)
		RETURN_THROWS();
	}
	handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* The row of what a frame uses, if its task is still the one that has used it last. */
static surus_use *use_of(const surus_task *task, const zend_execute_data *frame)
{
	zend_object *object;
	surus_handle_kind *kind;
	const void *handle = handle_of_frame(frame, &object, &kind);
	surus_use *use = !handle ? NULL : last.handle == handle ? last.use : surus_use_find(handle);
	return use && use->task == task && use->kind->exchange ? use : NULL;
}

/* A persistent stream outlives its request in all modes. */
static php_stream *kept_stream(const zend_execute_data *frame)
{
	bool has = ZEND_CALL_NUM_ARGS(frame) && Z_TYPE_P(ZEND_CALL_ARG(frame, 1)) == IS_RESOURCE;
	const zend_resource *resource = has ? Z_RES_P(ZEND_CALL_ARG(frame, 1)) : NULL;
	return resource && resource->type == php_file_le_pstream() ? resource->ptr : NULL;
}

/* The question may be on its way before the function returns. */
static ZEND_NAMED_FUNCTION(guarded_write)
{
	surus_task *task = surus_running;
	zif_handler handler = handler_of(EX(func));
	if (is_guarded(task)) {
		if (!claim(task, execute_data)) {
			RETURN_THROWS();
		}
		surus_use *use = use_of(task, execute_data);
		if (use) {
			use->asked = use->wrote = true;
		}
	}
	php_stream *kept = kept_stream(execute_data);
	if (UNEXPECTED(kept)) {
		surus_stream_asked(kept, true);
	}
	handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static bool has_got(const zval *result)
{
	switch (Z_TYPE_P(result)) {
		case IS_STRING:
			return Z_STRLEN_P(result) > 0;
		case IS_LONG:
			return Z_LVAL_P(result) > 0;
		default:
			return Z_TYPE_P(result) == IS_ARRAY;
	}
}

static ZEND_NAMED_FUNCTION(guarded_read)
{
	surus_task *task = surus_running;
	zif_handler handler = handler_of(EX(func));
	if (is_guarded(task) && !claim(task, execute_data)) {
		RETURN_THROWS();
	}
	handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!has_got(return_value)) {
		return;
	}
	surus_use *use = is_guarded(task) ? use_of(task, execute_data) : NULL;
	if (use) {
		use->asked = false;
	}
	php_stream *kept = kept_stream(execute_data);
	if (UNEXPECTED(kept)) {
		surus_stream_asked(kept, false);
	}
}

static void guard(zend_internal_function *function, surus_direction direction)
{
	zif_handler ours = direction == SURUS_WRITES ? guarded_write : direction == SURUS_READS ? guarded_read : guarded;
	bool is_ours = function->handler == guarded || function->handler == guarded_write || function->handler == guarded_read;
	if (function->handler && !is_ours) {
		function->reserved[slot] = (void *)function->handler;
		function->handler = ours;
	}
}

void surus_handles_start(void)
{
	slot = zend_get_resource_handle("Surus");
	if (slot < 0) {
		return;
	}
<<<<<<< HEAD
	zend_hash_init(&uses, 16, NULL, free_use, true);
	surus_statements_start();
=======
	surus_uses_start();
>>>>>>> 601b0ce (Tell the second request that meets another one's open exchange)
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
static surus_use *first_to_end(const surus_task *task)
{
	surus_use *use = task->uses;
	while (use && !use->kind->end) {
		use = use->next;
	}
	return use;
}

/* A request that was broken off has not come to its answer, which would be the next one's. What one that has come to its end
 * has written has none. */
static void sever_unread(surus_task *task)
{
	zend_resource *resource;
	for (surus_use *use = task->uses; use; use = use->next) {
		bool is_there = use->object != NULL;
		if (!use->wrote || !use->kind->sever) {
			continue;
		}
		ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
			is_there = is_there || (resource->ptr == use->handle && resource->handle == use->number);
		} ZEND_HASH_FOREACH_END();
		if (is_there && use->kind->exchange(use->handle, use->asked)) {
			use->kind->sever(use->handle);
		}
	}
}

void surus_handles_end(surus_task *task, bool broken_off)
{
	if (!task->uses) {
		return;
	}
<<<<<<< HEAD
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
=======
	/* Each time from the start: where one has waited, others have used the table meanwhile. */
	for (surus_use *use; (use = first_to_end(task));) {
		zend_object *object = use->object;
		surus_handle_kind *kind = use->kind;
		const void *handle = use->handle;
		end_begun(task, object, kind);
		use = surus_use_find(handle);
		if (use && use->task == task) {
			surus_use_forget(use);
>>>>>>> 601b0ce (Tell the second request that meets another one's open exchange)
		}
	}
	if (broken_off) {
		sever_unread(task);
	}
	while (task->uses) {
		surus_use_forget(task->uses);
	}
	surus_uses_changed();
	surus_free_waiting(task->isolate);
}

void surus_handles_give_up(surus_task *task)
{
<<<<<<< HEAD
	use *known;
	last.handle = NULL;
	last.task = NULL;
	surus_statements_give_up(task);
	ZEND_HASH_FOREACH_PTR(&uses, known) {
		if (known->task == task) {
			known->task = NULL;
		}
	} ZEND_HASH_FOREACH_END();
=======
	surus_uses_changed();
	while (task->uses) {
		surus_use_pass(task->uses, NULL);
	}
>>>>>>> 601b0ce (Tell the second request that meets another one's open exchange)
}
