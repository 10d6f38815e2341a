/* What is known of an isolate and of a task: each field names the file whose it is. */
#ifndef SURUS_TASK_STATE_H
#define SURUS_TASK_STATE_H

#include "base.h"
#include "task/stack.h"

struct surus_isolate {
	char *image;          /* its regions while another isolate is entered */
	zend_mm_heap *heap;
	zend_ini_entry *ini_entries;
	zend_string *memory_limit;
	size_t left_behind;   /* bytes of failed requests, on top of the memory limit */
	size_t fibers;        /* of requests, idle ones too: what each takes before it runs code is on top of it as well */
	bool booted;
	zend_long time_limit; /* of each request of a booted isolate, seconds of CPU time */
	bool had_fatal;       /* of a booted isolate: it takes no new requests */
	bool collector_left;  /* in the middle of its work, for good: cycles are not collected any more */
	bool starting;        /* inside request startup: nothing may be thrown */
	bool in_turn;         /* its requests come one at a time: app/loop.c */
	const char *starter;  /* PHP code that boots in place of the script, or NULL */
	zend_uchar shows_errors; /* app/boot.c: display_errors of requests, while it boots */
	struct surus_application *application; /* app/application.c, once booted */
	HashTable *timers, *background; /* app/timers.c: closures; NULL: none */
	HashTable *conversations;              /* app/conversation.c: by the numbers of their WebSockets; NULL: none */
	HashTable *queued;              /* app/queue.c: the closure that runs jobs of queues; NULL: none */
	struct surus_idle *idle;               /* fiber/state.c, once booted */
	struct surus_os_state *os;             /* os/state.c */
	HashTable *connections; /* fiber/state.c: the persistent ones of the boot, while those of a fiber are in place */
	struct surus_pool *pools; /* persistent/pool.c: persistent connections that its requests use in turn */
	struct surus_checked_heap *checked_heap; /* isolate/checked_heap.c, in tests */
	struct surus_pages *pages;       /* pages/pages.c: its heap, if that can be put back */
	struct surus_snapshot *snapshot; /* snapshot/snapshot.c: to what its requests are put back, once it is taken */
	struct surus_saved *saved;       /* isolate/saved.c */
	bool tables_on_heap;             /* isolate/tables.c */
	uint32_t superglobals;                 /* which ones loaded code refers to: fiber/superglobals.c */
	uint32_t scanned_functions, scanned_classes;
};

/* What a request was given: kinds of persistent connections, and some of them. */
#define SURUS_USED_HANDLES 8
typedef struct { unsigned kinds, count; const void *handles[SURUS_USED_HANDLES]; } surus_used;

/* http/json.c: an encoding that has begun in this frame. */
typedef struct { const zend_execute_data *frame; bool dates; } surus_encoding;

/* app/loop.c: a script that serves requests with Surus\\handle_request(). */
struct surus_loop {
	bool waits; /* for a request */
	bool ran;   /* it has waited before */
	bool over;  /* no request will come any more */
};

/* connections/redis_talk.c: what phpredis has said on the connection on which it spoke last. */
typedef struct {
	const php_stream *stream;
	long owed;              /* replies, and parts of them, that it has yet to read there */
	char type;              /* the first byte of a reply whose line it has yet to read, or 0 */
	bool body;              /* it has yet to read a string */
	unsigned introductions; /* commands with which it begins a connection; 0 after another one */
	unsigned answers;       /* lines that it has read since */
} surus_redis_talk;

/* Databases of which one request may use pooled connections. */
#define SURUS_HELD_POOLS 8

/* task/cancel.c: a job has ended its request. */
typedef enum {
	SURUS_DOOM_NONE = 0,
	SURUS_DOOM_EXIT,  /* by exit() */
	SURUS_DOOM_FATAL, /* by a fatal error */
	SURUS_DOOM_MET    /* and the request's own code is being left */
} surus_doom;

struct surus_task {
	surus_stack stack;
	void *sp;
	surus_isolate *isolate;
	void *exchange;
	surus_work work;
	surus_event event;
	surus_outcome outcome;
	surus_cancel cancel;
	zend_object *ending;  /* task/cancel.c: the exception that ends the request, once it was thrown */
	bool body_over;       /* of a fiber's request: shutdown functions and what follows them run */
	bool hard_cancel;     /* cancelled again while it ends: nothing waits any more */
	bool was_stopped;     /* code that still ran then has had its fatal error, */
	uint32_t stopped_at;  /* when the request had used this number of ticks */
	surus_encoding *encoding; /* of the response, while it lasts */
	bool is_asking;       /* connections/handles.c calls the extension itself */
	uint32_t refused;     /* waits refused in a row */
	uint32_t naps;        /* pauses in a row of a wait for another thread */
	uint32_t resumed_at;  /* tick of the last resume */
	uint32_t built_superglobals; /* of the running request */
	uint32_t ticks;       /* CPU ticks used by this request, see task/interrupt.c */
	uint32_t tick_limit;  /* max_execution_time in ticks, 0 none */
	struct surus_fiber_state *fiber; /* fiber/state.c; NULL in classic tasks */
	struct surus_os_state *own_os;   /* os/state.c: a fiber's; NULL: the isolate's */
	const zend_execute_data *frame;  /* the innermost one when it was left last */
	const zend_function *handler;    /* what the route of the running request leads to, if that is known */
	php_output_handler *output;      /* the buffer below everything that a fiber prints */
	const surus_invocation *script;      /* engine/command_line.c; NULL in a server's tasks */
	uint32_t switches;               /* of the script's that are left */
	struct surus_loop loop;          /* app/loop.c: of the task that has booted a script */
	void **locks;                    /* task/locks.c: those of C libraries that it holds */
	uint32_t lock_count, lock_room;
	const void *wanted;              /* the one that it waits for */
	surus_task *next_holder, *next_waiter;
	surus_used used;                 /* connections/cleaning.c */
	surus_redis_talk redis_talk;
	struct surus_pool *pools[SURUS_HELD_POOLS]; /* persistent/pool.c: in which it has a place */
	int64_t pool_opened[SURUS_HELD_POOLS]; /* when their connections were opened */
	unsigned pool_count;
	surus_task *request;             /* app/jobs.c, of a job: the task of its request; NULL: this is the request's */
	struct surus_strand *strand;     /* fiber/strand.c, of a job */
	zend_object *job;                /* of a job: the object whose code it runs, until it has ended */
	uint64_t number;                 /* of a job; 0: the request's own code */
	uint32_t jobs;                   /* of a request: those that have not ended, */
	bool had_jobs;                   /* whether there was one, */
	bool cut;                        /* whether one was cancelled, */
	surus_doom doom;                 /* and whether one of them ends it */
	zend_object *context;            /* app/context.c: a Surus\\Context, or NULL */
	HashTable *deferred;             /* app/deferred.c: of a request, what runs after its response; NULL: nothing, */
	bool defers;                     /* and whether that runs now */
	bool in_background;              /* app/timers.c: it has no client that it could do without */
	struct surus_use *uses;          /* connections/handles.c */
	char **uploads; /* http/form_files.c: names of the files that PHP has made for it, until its end */
	uint32_t upload_count;
};

/* Its stack must not be used again, nor what it was in the middle of. */
static inline bool surus_is_abandoned(const surus_task *task)
{
	return task->event == SURUS_ABANDONED || task->event == SURUS_EXHAUSTED;
}

/* The task of the request that a job is part of; of any other task, itself. */
static inline surus_task *surus_request_of(surus_task *task)
{
	return task && task->request ? task->request : task;
}

static inline bool surus_has_jobs(const surus_task *task)
{
	return (task->request ? task->request : task)->had_jobs;
}

/* Whether other code of its isolate may run while it waits. */
static inline bool surus_has_neighbours(const surus_task *task)
{
	return task->fiber || surus_has_jobs(task);
}

#endif
