/* Who has used which handle last: one row for each handle, found by the handle, by its object and by its task. */
#ifndef SURUS_HANDLE_USES_H
#define SURUS_HANDLE_USES_H

#include "handles.h"

typedef struct surus_use {
	const void *handle;
	surus_task *task; /* NULL: one that was given up inside of it */
	zend_object *object;
	surus_handle_kind *kind;
	int number;  /* of a stream: another one may be where it was */
	bool asked; /* the task has written to it, and has got nothing since */
	bool wrote; /* the task has written to it */
	/* Rows of the same task; of the same object. */
	struct surus_use *next, **link, *next_of_object, **link_of_object;
} surus_use;

void surus_uses_start(void);
surus_use *surus_use_find(const void *handle);
/* Of now: what was known of the handle is forgotten. */
surus_use *surus_use_note(const void *handle, surus_task *task, zend_object *object, surus_handle_kind *kind);
/* The same row for another task. */
void surus_use_pass(surus_use *use, surus_task *task);
void surus_use_forget(surus_use *use);
/* The object is freed. */
void surus_uses_forget_object(const zend_object *object);
/* Nothing that was found in the table may be kept. */
void surus_uses_changed(void);

/* handles.c: the frame in which a task is inside a call on a handle; NULL: it is not. */
const zend_execute_data *surus_use_in(surus_task *task, const void *handle);

/* handle_endings.c: of all objects of a kind, once there is one. */
void surus_watch_end(zend_object *object, surus_handle_kind *kind);
/* Those whose end had to wait. */
void surus_free_waiting(surus_isolate *isolate);

#endif
