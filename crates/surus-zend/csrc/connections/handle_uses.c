#include "connections/handle_uses.h"
#include "connections/handle_kinds.h"
#include "task/running.h"
#include "task/state.h"

surus_use **surus_use_buckets;
size_t surus_use_mask;
uint64_t surus_use_changes;
/* Rows by their object, in the same number of buckets. A constructor may attach a pooled connection to its object: the
 * object may have rows for several handles. */
static surus_use **objects;
static size_t count;

#define FIRST_BUCKETS 256

static void join(surus_use *use, surus_use **head, size_t list)
{
#define LIST(row) ((surus_use_link *)((char *)(row) + list))
	LIST(use)->next = *head;
	LIST(use)->at = head;
	if (*head) {
		LIST(*head)->at = &LIST(use)->next;
	}
	*head = use;
}

static void leave(surus_use *use, size_t list)
{
	surus_use_link *link = LIST(use);
	if (!link->at) {
		return;
	}
	*link->at = link->next;
	if (link->next) {
		LIST(link->next)->at = link->at;
	}
	*link = (surus_use_link){NULL, NULL};
#undef LIST
}

#define BY_HANDLE offsetof(surus_use, by_handle)
#define BY_OBJECT offsetof(surus_use, by_object)
#define BY_TASK offsetof(surus_use, by_task)

static void set_buckets(size_t size)
{
	surus_use **old = surus_use_buckets, **old_objects = objects;
	size_t old_size = old ? surus_use_mask + 1 : 0;
	surus_use_buckets = pecalloc(size, sizeof *surus_use_buckets, true);
	objects = pecalloc(size, sizeof *objects, true);
	surus_use_mask = size - 1;
	for (size_t i = 0; i < old_size; i++) {
		for (surus_use *use; (use = old[i]);) {
			leave(use, BY_HANDLE);
			join(use, &surus_use_buckets[surus_use_place(use->handle)], BY_HANDLE);
			leave(use, BY_OBJECT);
			if (use->object) {
				join(use, &objects[surus_use_place(use->object)], BY_OBJECT);
			}
		}
	}
	free(old);
	free(old_objects);
}

void surus_uses_start(void)
{
	set_buckets(FIRST_BUCKETS);
}

surus_use *surus_use_note(const void *handle, surus_task *task, zend_object *object, surus_handle_kind *kind)
{
	surus_use *use = surus_use_find(handle);
	surus_use_changes++;
	if (use) {
		leave(use, BY_OBJECT);
		leave(use, BY_TASK);
		leave(use, BY_HANDLE);
	} else {
		if (count > surus_use_mask) {
			set_buckets(2 * (surus_use_mask + 1));
		}
		use = pemalloc(sizeof *use, true);
		count++;
	}
	*use = (surus_use){.handle = handle, .task = task, .isolate = surus_entered, .object = object, .kind = kind};
	join(use, &surus_use_buckets[surus_use_place(handle)], BY_HANDLE);
	if (object) {
		join(use, &objects[surus_use_place(object)], BY_OBJECT);
	}
	if (task) {
		join(use, &task->uses, BY_TASK);
	}
	return use;
}

void surus_use_pass(surus_use *use, surus_task *task)
{
	surus_use_changes++;
	leave(use, BY_TASK);
	use->task = task;
	if (task) {
		use->phase = SURUS_IDLE;
		use->is_broken = false;
		join(use, &task->uses, BY_TASK);
	}
}

void surus_uses_hand_over(surus_task *from, surus_task *to)
{
	while (from->uses) {
		surus_use *use = from->uses;
		surus_use_changes++;
		leave(use, BY_TASK);
		use->task = to;
		join(use, &to->uses, BY_TASK);
	}
}

void surus_use_forget(surus_use *use)
{
	surus_use_changes++;
	leave(use, BY_TASK);
	if (use->freeing) {
		/* Other tasks must still find it. */
		leave(use, BY_OBJECT);
		use->task = NULL;
		use->object = NULL;
		use->phase = SURUS_IDLE;
		return;
	}
	leave(use, BY_OBJECT);
	leave(use, BY_HANDLE);
	free(use);
	count--;
}

void surus_uses_forget_object(const zend_object *object)
{
	for (surus_use *use = objects[surus_use_place(object)], *next; use; use = next) {
		next = use->by_object.next;
		if (use->object == object) {
			surus_use_forget(use);
		}
	}
}

void surus_uses_not_freed_by(const surus_task *task)
{
	for (size_t i = 0; surus_use_buckets && i <= surus_use_mask; i++) {
		for (surus_use *use = surus_use_buckets[i]; use; use = use->by_handle.next) {
			if (use->freeing == task) {
				surus_use_changes++;
				use->freeing = NULL;
				use->is_broken = true;
			}
		}
	}
}

void surus_uses_forget_isolate(const surus_isolate *isolate)
{
	for (size_t i = 0; surus_use_buckets && i <= surus_use_mask; i++) {
		for (surus_use *use = surus_use_buckets[i], *next; use; use = next) {
			next = use->by_handle.next;
			if (use->isolate == isolate) {
				use->freeing = NULL;
				surus_use_forget(use);
			}
		}
	}
}
