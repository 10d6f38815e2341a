/* Handles: what objects of extensions stand for, a connection in most cases. Shared by handle_kinds.c and handles.c. */
#ifndef SURUS_HANDLES_H
#define SURUS_HANDLES_H

#include "internal.h"

typedef struct {
	const char *class; /* lower case */
	/* What is below the object: other objects may stand for the same. NULL: the object stands for itself. */
	const void *(*handle)(zend_object *object);
	/* What a request has begun on it and not ended, for a message; NULL: nothing. Nobody is inside a call on it. */
	const char *(*begun)(zend_object *object);
	/* Ends that, once its request has ended. */
	void (*end)(zend_object *object);
	bool answers_to_free; /* freeing the object talks to the server */
	bool is_watched;      /* handles.c stands before the end of its objects */
	bool has_steps;       /* statements.c knows what follows what */
	/* Makes it work again after a request that was cut off. */
	void (*mend)(zend_object *object);
	bool makes_handlers;  /* its class writes the handlers of its objects for each new one */
	zend_object *(*create)(zend_class_entry *class);
} surus_handle_kind;

/* Of streams, which are no objects. */
extern surus_handle_kind surus_stream_kind;
/* NULL: it stands for no connection. */
surus_handle_kind *surus_handle_kind_of_class(const zend_class_entry *class);
static inline surus_handle_kind *surus_handle_kind_of(const zend_object *object)
{
	return surus_handle_kind_of_class(object->ce);
}
/* NULL while there is none. */
static inline const void *surus_handle_of(surus_handle_kind *kind, zend_object *object)
{
	return kind->handle ? kind->handle(object) : object;
}

/* handles.c: makes an object whose end is seen. */
zend_object *surus_handle_create(zend_class_entry *class);
/* Calls `visit` with each function that uses a handle. After startup. */
void surus_handle_functions(void (*visit)(zend_internal_function *function));

/* statements.c */
/* After the handlers of functions are known and before they are replaced. */
void surus_statements_start(void);
/* The task enters this function of an object; false, with an exception: another request is in the middle of its own. */
bool surus_statement_step(surus_task *task, zend_object *object, zif_handler handler);
void surus_statements_end(surus_task *task);
void surus_statement_forget(const zend_object *object);
void surus_statements_forget(const surus_isolate *isolate);
void surus_statements_give_up(const surus_task *task);

/* connection_in_use.c */
/* Throws a Surus\ConnectionInUse: `class` is what is used; the running request wants what the task uses, in its frame `use` or by having begun
 * something; NULL for a task that was given up. */
void surus_throw_in_use(const char *class, surus_task *task, const zend_execute_data *use, const char *begun);
/* The same where the other request may have ended: it has executed the statement that the running one wants to read. */
void surus_throw_executed_since(const char *class);
/* A request has ended without ending what it had begun. */
void surus_log_unended(surus_task *task, const zend_class_entry *class, const char *begun);

#endif
