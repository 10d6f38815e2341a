/* Which task has used a handle last, and what it has begun on it: one row per handle, found by the handle, by its
 * object and by its task. */
#ifndef SURUS_CONNECTIONS_HANDLE_USES_H
#define SURUS_CONNECTIONS_HANDLE_USES_H

#include "base.h"
#include "connections/handle_kinds.h"

/* The number of buckets is a power of two, and at least the number of rows. */
extern surus_use **surus_use_buckets;
extern size_t surus_use_mask;
/* Incremented when a row is made, passed on or forgotten: cached facts about rows are valid until then. */
extern uint64_t surus_use_changes;

static inline size_t surus_use_place(const void *pointer)
{
	uintptr_t bits = (uintptr_t)pointer;
	return (bits >> 4 ^ bits >> 12) & surus_use_mask;
}

/* The row of a handle; NULL: it was not used. */
static inline surus_use *surus_use_find(const void *handle)
{
	surus_use *use = surus_use_buckets[surus_use_place(handle)];
	while (use && use->handle != handle) {
		use = use->by_handle.next;
	}
	return use;
}

void surus_uses_start(void);
/* Makes a new row for the handle, in place of the old one. `task` is NULL if it does not matter which request uses
 * it. */
surus_use *surus_use_note(const void *handle, surus_task *task, zend_object *object, surus_handle_kind *kind);
/* Gives the row to another task, or to none. */
void surus_use_pass(surus_use *use, surus_task *task);
/* Gives all rows of a job that has ended to its request: what it has begun goes on. */
void surus_uses_hand_over(surus_task *from, surus_task *to);
void surus_use_forget(surus_use *use);
/* When the object is freed. */
void surus_uses_forget_object(const zend_object *object);
/* It was abandoned in the middle of freeing objects: what they said to their servers is not known. */
void surus_uses_not_freed_by(const surus_task *task);
void surus_uses_forget_isolate(const surus_isolate *isolate);

#endif
