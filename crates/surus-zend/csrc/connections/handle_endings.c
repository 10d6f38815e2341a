/* The destruction of objects that represent connections: it may send data to their server, and their rows are
 * forgotten. */
#include "connections/handle_endings.h"
#include "connections/handle_kinds.h"
#include "connections/handle_uses.h"
#include "connections/handles.h"
#include "task/running.h"
#include "task/state.h"

/* The original handlers of objects whose destruction is intercepted. Extensions fill the structs when they start. */
typedef struct {
	const zend_object_handlers *handlers;
	void (*destruct)(zend_object *object);
	void (*free)(zend_object *object);
} ending;

#define ENDINGS 16
static ending endings[ENDINGS];

/* Objects that send data to their server when they are freed. Not while another request is inside a call: until then
 * they are listed here. */
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
	const surus_use *known = handle ? surus_use_find(handle) : NULL;
	if (known && known->freeing) {
		return known->freeing != surus_running;
	}
	return known && known->task && known->task != surus_running && surus_use_in(known->task, handle);
}

/* An object that gets another reference here stays alive. */
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

/* Freeing an object may wait for its server, and the list may change meanwhile. */
void surus_free_waiting(surus_isolate *isolate)
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

/* There is no frame of a function, and the driver may wait: the row of the handle records the task that frees. */
static void free_object(zend_object *object)
{
	surus_handle_kind *kind = surus_handle_kind_of(object);
	surus_task *task = surus_running && surus_has_neighbours(surus_running) ? surus_running : NULL;
	const void *handle = kind && kind->answers_to_free && task ? surus_handle_of(kind, object) : NULL;
	surus_uses_forget_object(object);
	if (!handle) {
		ending_of(object)->free(object);
		return;
	}
	surus_use *use = surus_use_find(handle);
	bool is_for_this = !use;
	use = use ? use : surus_use_note(handle, task, NULL, kind);
	bool is_outer = !use->freeing;
	use->freeing = is_outer ? task : use->freeing;
	surus_use_changes++;
	volatile bool whole = false;
	zend_try {
		ending_of(object)->free(object);
		whole = true;
	} zend_end_try();
	use = surus_use_find(handle);
	if (use && is_outer) {
		use->freeing = NULL;
		/* The request may have ended before: nothing else would forget a row that was made here. */
		if (!use->object && (!use->task || (is_for_this && use->task == task))) {
			surus_use_forget(use);
		}
	}
	if (!whole) {
		zend_bailout();
	}
}

/* Intercepts the destruction of all objects of a kind, when the first one is used. */
void surus_watch_end(zend_object *object, surus_handle_kind *kind)
{
	kind->is_watched = true;
	if (!kind->answers_to_free && !kind->end && !kind->open) {
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

/* Replaces create_object of a class that sets the handlers of its objects again for each new one. */
zend_object *surus_handle_create(zend_class_entry *class)
{
	surus_handle_kind *kind = surus_handle_kind_of_class(class);
	zend_object *object = kind->create(class);
	surus_watch_end(object, kind);
	return object;
}

void surus_forget_waiting(const surus_isolate *isolate)
{
	for (size_t i = 0; i < waiting_count;) {
		if (waiting_list[i].isolate == isolate) {
			waiting_list[i] = waiting_list[--waiting_count];
		} else {
			i++;
		}
	}
}
