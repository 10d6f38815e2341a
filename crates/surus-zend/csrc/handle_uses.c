#include "handle_uses.h"

/* By the handle's address, of all isolates: each has a heap of its own. */
static HashTable uses;
/* The first row of each object that has one. A constructor may put a kept connection below its object: it may have been
 * noted by more than one handle. */
static HashTable objects;

static zend_ulong key_of(const void *pointer)
{
	return (zend_ulong)(uintptr_t)pointer >> 4;
}

static void leave_task(surus_use *use)
{
	if (use->link) {
		*use->link = use->next;
		if (use->next) {
			use->next->link = use->link;
		}
	}
	use->next = NULL;
	use->link = NULL;
}

static void join_task(surus_use *use, surus_task *task)
{
	use->task = task;
	if (task) {
		use->next = task->uses;
		use->link = &task->uses;
		if (use->next) {
			use->next->link = &use->next;
		}
		task->uses = use;
	}
}

static void leave_object(surus_use *use)
{
	if (!use->object) {
		return;
	}
	*use->link_of_object = use->next_of_object;
	if (use->next_of_object) {
		use->next_of_object->link_of_object = use->link_of_object;
	}
	surus_use **first = zend_hash_index_find_ptr(&objects, key_of(use->object));
	if (first && !*first) {
		zend_hash_index_del(&objects, key_of(use->object));
	}
	use->object = NULL;
}

static void join_object(surus_use *use, zend_object *object)
{
	use->object = object;
	if (!object) {
		return;
	}
	surus_use **first = zend_hash_index_find_ptr(&objects, key_of(object));
	if (!first) {
		surus_use *none = NULL;
		first = zend_hash_index_add_mem(&objects, key_of(object), &none, sizeof none);
	}
	use->next_of_object = *first;
	use->link_of_object = first;
	if (use->next_of_object) {
		use->next_of_object->link_of_object = &use->next_of_object;
	}
	*first = use;
}

static void free_use(zval *value)
{
	surus_use *use = Z_PTR_P(value);
	leave_task(use);
	leave_object(use);
	free(use);
}

static void free_first(zval *value)
{
	free(Z_PTR_P(value));
}

void surus_uses_start(void)
{
	zend_hash_init(&uses, 16, NULL, free_use, true);
	zend_hash_init(&objects, 16, NULL, free_first, true);
}

surus_use *surus_use_find(const void *handle)
{
	return zend_hash_index_find_ptr(&uses, key_of(handle));
}

surus_use *surus_use_note(const void *handle, surus_task *task, zend_object *object, surus_handle_kind *kind)
{
	surus_use *use = surus_use_find(handle);
	if (use) {
		leave_task(use);
		leave_object(use);
	} else {
		surus_use fresh = {0};
		use = zend_hash_index_add_mem(&uses, key_of(handle), &fresh, sizeof fresh);
	}
	*use = (surus_use){.handle = handle, .kind = kind};
	join_task(use, task);
	join_object(use, object);
	return use;
}

void surus_use_pass(surus_use *use, surus_task *task)
{
	leave_task(use);
	join_task(use, task);
	use->asked = use->wrote = false;
}

void surus_use_forget(surus_use *use)
{
	zend_hash_index_del(&uses, key_of(use->handle));
}

void surus_uses_forget_object(const zend_object *object)
{
	surus_use **first;
	while ((first = zend_hash_index_find_ptr(&objects, key_of(object)))) {
		surus_use_forget(*first);
	}
}
