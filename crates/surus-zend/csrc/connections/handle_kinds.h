#ifndef SURUS_CONNECTIONS_HANDLE_KINDS_H
#define SURUS_CONNECTIONS_HANDLE_KINDS_H

#include "base.h"

typedef struct surus_use surus_use;

/* The step of a function in an exchange of more than one call; SURUS_USES: no step of one. */
typedef enum { SURUS_USES, SURUS_PREPARES, SURUS_ASKS, SURUS_READS, SURUS_CLOSES } surus_step;
/* The phase of an exchange; HEARD: some answer was read, and the exchange may be over. */
typedef enum { SURUS_IDLE, SURUS_PREPARED, SURUS_ASKED, SURUS_HEARD } surus_phase;

typedef struct {
	const char *class; /* lower case */
	/* The handle of the object; other objects may have the same one. NULL: the object itself is the handle. */
	const void *(*handle)(zend_object *object);
	/* Asks the driver what a request has begun on the handle and not ended, for a message; NULL: nothing. Nobody is
	 * inside a call on it. */
	const char *(*begun)(zend_object *object);
	/* Ends that, after its request has ended. */
	void (*end)(zend_object *object);
	/* Like `begun`, for exchanges that only the application knows, from the steps that it has taken: what forbids
	 * another request the step `now`. */
	const char *(*open)(const surus_use *use, surus_step now);
	/* The request of the row has ended, or was broken off, in this phase. The row belongs to no task, and may be freed
	 * meanwhile. True: the row stays, so that other requests learn what was left there. */
	bool (*leave)(surus_use *use, surus_phase phase, bool broken_off);
	/* Whether any request may use the handle at any time. */
	bool (*is_of_all)(const void *handle);
	bool is_apart;        /* these exchanges are the object's own, not its connection's */
	/* Or they belong to the object that this returns. NULL: there is none. */
	zend_object *(*part_of)(zend_object *object);
	bool answers_to_free; /* freeing the object talks to the server */
	bool is_watched;      /* connections/handle_endings.c stands before the end of its objects */
	/* The request that has written to it has tried to read, and got nothing yet. */
	void (*wants)(const void *handle);
	/* Several requests have written to it before an answer, and one tries to read. */
	void (*close)(const void *handle);
	/* Makes it usable again after a cancelled request. */
	void (*mend)(zend_object *object);
	bool is_socket;       /* of ext/sockets: its descriptor may also be a stream's */
	bool makes_handlers;  /* its class writes the handlers of its objects for each new one */
	zend_object *(*create)(zend_class_entry *class);
} surus_handle_kind;

typedef struct { surus_use *next, **at; } surus_use_link;

/* A row of connections/handle_uses.c. */
struct surus_use {
	const void *handle;
	surus_task *task;  /* NULL: its request has ended */
	surus_handle_kind *kind;
	zend_object *object;
	int number;        /* of a stream: another one may be where it was */
	surus_phase phase;
	const surus_task *freeing; /* is freeing an object that talks to the server by this handle */
	bool is_broken;    /* its request was given up inside of it */
	bool is_mixed;     /* a stream: requests have asked at the same time, and nobody knows whose the next answer is */
	bool is_kept;      /* a persistent stream: it outlives its request */
	surus_isolate *isolate;
	surus_use_link by_handle, by_object, by_task;
};

/* How a function gets the handle that it uses. */
typedef enum { SURUS_BY_OBJECT, SURUS_BY_ARGUMENT, SURUS_BY_SOCKET, SURUS_BY_RESOURCE } surus_way;

/* The kind of streams, which are not objects. */
extern surus_handle_kind surus_stream_kind;
/* NULL: objects of this class have no handle. */
surus_handle_kind *surus_handle_kind_of_class(const zend_class_entry *class);
static inline surus_handle_kind *surus_handle_kind_of(const zend_object *object)
{
	return surus_handle_kind_of_class(object->ce);
}
/* NULL while the object has no handle. */
static inline const void *surus_handle_of(const surus_handle_kind *kind, zend_object *object)
{
	return kind->handle ? kind->handle(object) : object;
}

/* Calls `visit` with each function that uses a handle; `kind` is NULL if it depends on the argument. After startup. */
typedef void (*surus_handle_visit)(zend_internal_function *function, surus_way way, surus_handle_kind *kind, surus_step step);
void surus_handle_functions(surus_handle_visit visit);

#endif
