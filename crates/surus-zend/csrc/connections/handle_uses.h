/* Who has used which handle last, and what he has begun on it: one row for each handle, found by the handle, by its object
 * and by its task. */
#ifndef SURUS_CONNECTIONS_HANDLE_USES_H
#define SURUS_CONNECTIONS_HANDLE_USES_H

#include "base.h"
#include "connections/handle_kinds.h"

/* Buckets of a power of two, as many as there are rows at least. */
extern surus_use **surus_use_buckets;
extern size_t surus_use_mask;
/* How often a row was made, passed on or forgotten: what is known of one holds until then. */
extern uint64_t surus_use_changes;

static inline size_t surus_use_place(const void *pointer)
{
	uintptr_t bits = (uintptr_t)pointer;
	return (bits >> 4 ^ bits >> 12) & surus_use_mask;
}

/* NULL: nobody has. */
static inline surus_use *surus_use_find(const void *handle)
{
	surus_use *use = surus_use_buckets[surus_use_place(handle)];
	while (use && use->handle != handle) {
		use = use->by_handle.next;
	}
	return use;
}

void surus_uses_start(void);
/* Of now: what was known of the handle is forgotten. `task` is NULL for a request of which only the handle matters. */
surus_use *surus_use_note(const void *handle, surus_task *task, zend_object *object, surus_handle_kind *kind);
/* The same row for another task, or for none. */
void surus_use_pass(surus_use *use, surus_task *task);
void surus_use_forget(surus_use *use);
/* The object is freed. */
void surus_uses_forget_object(const zend_object *object);
void surus_uses_forget_isolate(const surus_isolate *isolate);

#endif
