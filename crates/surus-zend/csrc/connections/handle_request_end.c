/* A request has ended, or was abandoned: everything that it has begun on handles that others may use is ended. */
#include "connections/handle_request_end.h"
#include "connections/handle_endings.h"
#include "connections/handle_kinds.h"
#include "connections/handle_uses.h"
#include "connections/in_use.h"
#include "connections/quiet.h"
#include "task/state.h"

/* The object is alive: the destruction of objects of its kind is intercepted. */
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

/* Ends a request's exchange. It may wait, and other tasks use the table meanwhile. */
static void end_exchange(surus_use *use, bool broken_off)
{
	const void *handle = use->handle;
	surus_phase phase = use->phase;
	surus_use_pass(use, NULL);
	bool stays = use->kind->leave(use, phase, broken_off);
	use = surus_use_find(handle);
	if (use && !use->task && !stays) {
		surus_use_forget(use);
	}
}

static surus_use *first_exchange(const surus_task *task)
{
	surus_use *use = task->uses;
	while (use && ((use->phase == SURUS_IDLE && !use->is_mixed) || !use->kind->leave || use->kind->end)) {
		use = use->by_task.next;
	}
	return use;
}

/* A row of a handle on which something may be begun. */
static surus_use *first_to_end(const surus_task *task)
{
	surus_use *use = task->uses;
	while (use && !use->kind->end) {
		use = use->by_task.next;
	}
	return use;
}

void surus_handles_end(surus_task *task, bool broken_off)
{
	surus_use *use;
	if (!task->uses) {
		return;
	}
	surus_quiet quiet;
	surus_quiet_begin(&quiet);
	/* Search from the start each time, since ending an exchange may wait. */
	task->is_asking = true;
	while ((use = first_exchange(task))) {
		end_exchange(use, broken_off);
	}
	task->is_asking = false;
	while ((use = first_to_end(task))) {
		const void *handle = use->handle;
		if (use->kind->leave && use->phase != SURUS_IDLE) {
			task->is_asking = true;
			use->kind->leave(use, use->phase, broken_off);
			task->is_asking = false;
			use = surus_use_find(handle);
		}
		if (use && use->task == task) {
			end_begun(task, use->object, use->kind);
			use = surus_use_find(handle);
		}
		if (use && use->task == task) {
			surus_use_forget(use);
		}
	}
	surus_handles_forget_task(task);
	surus_free_waiting(task->isolate);
	surus_quiet_end(&quiet);
}

void surus_handles_forget_jobs(surus_task *task)
{
	surus_handles_forget_task(task);
	surus_free_waiting(task->isolate);
}

void surus_handles_forget(surus_isolate *isolate)
{
	surus_uses_forget_isolate(isolate);
	surus_forget_waiting(isolate);
}

void surus_handles_forget_task(surus_task *task)
{
	while (task->uses) {
		surus_use_forget(task->uses);
	}
}

void surus_handles_give_up(surus_task *task)
{
	surus_uses_not_freed_by(task);
	while (task->uses) {
		surus_use *use = task->uses;
		surus_use_pass(use, NULL);
		use->is_broken = true;
	}
}
