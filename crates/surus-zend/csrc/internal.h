/* Shared by the C files; not part of the contract with Rust. */
#ifndef SURUS_INTERNAL_H
#define SURUS_INTERNAL_H

#include "main/php.h"
#include "main/SAPI.h"
#include "main/php_main.h"
#include "main/php_output.h"
#include "main/php_variables.h"
#include "Zend/zend_exceptions.h"
#include "Zend/zend_fibers.h"
#include "Zend/zend_vm.h"

#include "bridge.h"
#include "os_state.h"
#include "stack.h"
#include "versions.h"

static inline surus_str surus_bytes_of(const zend_string *text)
{
	return (surus_str){ZSTR_VAL(text), ZSTR_LEN(text)};
}

/* ---- isolate.c ---- */
struct surus_isolate {
	char *image;          /* its regions while another isolate is entered */
	zend_mm_heap *heap;
	zend_ini_entry *ini_entries;
	zend_string *memory_limit;
	size_t left_behind;   /* bytes of failed requests, on top of the memory limit */
	bool booted;
	zend_long time_limit; /* of each request of a booted isolate, seconds of CPU time */
	bool had_fatal;       /* of a booted isolate: it takes no new requests */
	bool collector_left;  /* in the middle of its work, for good: cycles are not collected any more */
	bool starting;        /* inside request startup: nothing may be thrown */
	struct surus_application *application; /* application.c, once booted */
	struct surus_idle *idle;               /* fiber_state.c, once booted */
	struct surus_os_state *os;             /* os_state.c */
	HashTable *connections; /* fiber_state.c: the persistent ones of the boot, while those of a fiber are in place */
	struct surus_checked_heap *checked_heap; /* checked_heap.c, in tests */
	uint32_t superglobals;                 /* which ones loaded code refers to: superglobals.c */
	uint32_t scanned_functions, scanned_classes;
};

/* The regions that make up an isolate are known and the image of a fresh one is taken. */
int surus_isolates_start(char *error, size_t error_size);
void surus_isolate_enter(surus_isolate *isolate);
/* The regions, one by one; false behind the last one. */
bool surus_region_at(size_t index, void **address, size_t *size);
extern surus_swaps surus_swapped;
/* What a failed request of the entered isolate has left on its heap does not count: others get what they were promised. */
void surus_memory_forgive(surus_isolate *isolate);
/* Between the two the entered isolate has no memory limit: for places from which no fatal error could be left. */
void surus_memory_lift(surus_isolate *isolate);
void surus_memory_limit(surus_isolate *isolate);
/* Where `address` of a global lives in the saved image of an isolate, or `address` itself while it is entered. */
void *surus_isolate_peek(surus_isolate *isolate, void *address);

/* ---- isolate_tables.c ---- */
/* For the entered isolate, from the tables of the process after startup. */
void surus_tables_make(surus_isolate *isolate);
/* Each of its settings reaches the globals that it controls. */
void surus_tables_apply_settings(void);
/* `clean`: no request has left entries of its own behind. */
void surus_tables_free(surus_isolate *isolate, bool clean);

/* ---- persistent.c ---- */
/* Functions that stand before those of PHP which give out persistent connections. */
void surus_persistent_start(void);
/* Cleans those that the ended request was given. False: there was a fatal error. */
bool surus_persistent_end(surus_task *task);
#define SURUS_USED_HANDLES 8
/* What a request was given: kinds of connections, and some of them. */
typedef struct { unsigned kinds, count; const void *handles[SURUS_USED_HANDLES]; } surus_used;

/* ---- running.c ---- */
struct surus_task {
	surus_stack stack;
	void *sp;
	surus_isolate *isolate;
	void *exchange;
	surus_work work;
	surus_event event;
	surus_outcome outcome;
	surus_cancel cancel;
	zend_object *ending;  /* cancel.c: the exception that ends the request, once it was thrown */
	bool body_over;       /* of a fiber's request: shutdown functions and what follows them run */
	bool hard_cancel;     /* cancelled again while it ends: nothing waits any more */
	bool is_asking;       /* handles.c calls the extension itself */
	uint32_t refused;     /* waits refused in a row */
	uint32_t naps;        /* pauses in a row of a wait for another thread */
	uint32_t resumed_at;  /* tick of the last resume */
	uint32_t built_superglobals; /* of the running request */
	uint32_t ticks;       /* CPU ticks used by this request, see interrupt.c */
	uint32_t tick_limit;  /* max_execution_time in ticks, 0 none */
	struct surus_fiber_state *fiber; /* fiber_state.c; NULL in classic tasks */
	struct surus_os_state *own_os;   /* os_state.c: a fiber's; NULL: the isolate's */
	const zend_execute_data *frame;  /* the innermost one when it was left last */
	const zend_function *handler;    /* what the route of the running request leads to, if that is known */
	php_output_handler *output;      /* the buffer below everything that a fiber prints */
	const surus_script *script;      /* command_line.c; NULL in a server's tasks */
	uint32_t switches;               /* of the script's that are left */
	void **locks;                    /* locks.c: those of C libraries that it holds */
	uint32_t lock_count, lock_room;
	const void *wanted;              /* the one that it waits for */
	surus_task *next_holder, *next_waiter;
	surus_used used;                 /* persistent.c */
	struct surus_use *uses;          /* handles.c */
	char **uploads; /* form_files.c: names of the files that PHP has made for it, until its end */
	uint32_t upload_count;
};

extern __thread surus_task *surus_running;
/* Whose regions are in place. */
extern surus_isolate *surus_entered;
/* A child of pcntl_fork(): the event loop's descriptors are the parent's too, so nothing parks. */
extern bool surus_forked;
/* From the event loop: runs the task until it leaves. */
void surus_task_switch_to(surus_task *task);
/* What it has not given back it never will. */
void surus_task_end_locks(surus_task *task);

/* No task of the entered isolate is inside a destructor, the compiler or the collector of cycles: one that was has ended
 * without leaving it. */
void surus_clear_marks(surus_isolate *isolate);
/* Leaves the running task's stack for the event loop with `event`; returns when it is resumed. */
void surus_task_leave(surus_event event);
/* The same for good: SURUS_ABANDONED or SURUS_EXHAUSTED. Does not return. */
void surus_task_abandon(surus_task *task, surus_event event);
/* Its stack must not be used again, nor what it was in the middle of. */
static inline bool surus_is_abandoned(const surus_task *task)
{
	return task->event == SURUS_ABANDONED || task->event == SURUS_EXHAUSTED;
}
/* The same where the engine may be left; else nothing. */
void surus_yield(surus_event event);
/* Whether the running task may be left now. */
bool surus_may_leave(void);

/* ---- descriptors.c ---- */
/* The running task opens something. */
void surus_descriptor_made(void);
/* At the end of a request of a shared isolate: collects cycles if what PHP has open has grown. */
void surus_collect_descriptors(void);

/* ---- locks.c ---- */
/* A task with locks stops running, goes on, has ended. */
void surus_locks_leave(surus_task *task);
void surus_locks_return(surus_task *task);
void surus_locks_end(surus_task *task);
/* Code that one task of the thread may be in at a time, more than once; `key` is its name. No task: nothing happens. */
void surus_section_enter(void *key, const void *caller);
void surus_section_leave(void *key);

/* ---- cancel.c ---- */
void surus_cancel_start(void);
/* Brings the end of a cancelled request on its way. True: what it does now is over, so a call returns an error. */
bool surus_must_end(surus_task *task);
/* Nobody wants the output any more. */
void surus_client_left(surus_task *task);
/* The request has ended and its heap has not. */
void surus_cancel_forget(surus_task *task);

/* ---- interrupt.c ---- */
extern volatile uint32_t surus_ticks;
extern uint32_t surus_ticks_per_slice;
void surus_interrupts_start(void);
void surus_interrupts_enter_worker(uint64_t slice_us);

/* ---- overflow.c ---- */
void surus_overflow_start(void);
void surus_overflow_enter_worker(void);
/* The bytes that are left of the C stack that runs; SIZE_MAX on one that is not PHP's. */
size_t surus_stack_left(void);
/* Where PHP calls Surus at any depth: leaves the task for good if there is little left of its C stack, while it still
 * can be left. An overflow in our own code is the worker's end. */
void surus_need_stack(void);

/* ---- backtrace.c ---- */
void surus_log_backtrace(const zend_execute_data *frame, const char *title);
void surus_logf(int level, const char *format, ...) ZEND_ATTRIBUTE_FORMAT(printf, 2, 3);

/* ---- functions.c ---- */
extern const zend_function_entry surus_functions[];

/* ---- children.c ---- */
void surus_children_enter_worker(void);

/* ---- process_functions.c ---- */
/* Before and after PHP's startup, in a server. */
void surus_process_functions_prepare(void);
void surus_process_functions_start(void);

/* ---- restrictions.c ---- */
/* While extensions start: what is disabled is there until it is applied. */
void surus_restrictions_hold(void);
/* After everything that needs PHP's functions. What cannot be disabled is an error. */
int surus_restrictions_apply(char *error, size_t error_size);
/* For the self-test, in a child of the master: all functions are there again. */
void surus_restrictions_lift(void);

/* ---- internal_functions.c ---- */
extern const zend_function_entry surus_internal_functions[];

/* ---- connection_functions.c ---- */
extern const zend_function_entry surus_connection_functions[];

/* ---- handles.c ---- */
/* From now on functions that use a connection are entered through ours. */
void surus_handles_start(void);
/* ---- handle_request_end.c ---- */
/* The request has ended: what it has begun on connections that others may use is ended, and it uses them no more.
 * `broken_off`: it has not come to its end. */
void surus_handles_end(surus_task *task, bool broken_off);
/* Its stack is left for good: nobody uses the connections again that it was using. */
void surus_handles_give_up(surus_task *task);
/* The isolate goes, with all of its objects. */
void surus_handles_forget(surus_isolate *isolate);
/* persistent_dead.c: the isolate goes; connections that PDO has forgotten in it are not closed. */
void surus_pdo_forget_dead(surus_isolate *isolate);

/* ---- connection_in_use.c ---- */
void surus_register_connection_in_use(void);

/* ---- sapi.c ---- */
extern sapi_module_struct surus_sapi_module;
/* Before startup: PHP starts under this name and keeps it. */
void surus_sapi_call(char *name);

/* ---- command_line.c ---- */
surus_outcome surus_run_script(surus_task *task);

/* ---- classic.c ---- */
surus_outcome surus_run_classic(surus_task *task);

/* ---- request_info.c ---- */
/* SG(request_info) from the exchange. */
void surus_fill_request_info(void *exchange, surus_request_info *info);
void surus_fill_authorization(const surus_request_info *info);

/* ---- form_files.c ---- */
void surus_form_files_start(void);
/* Makes a body that the server has in one file the buffer of php://input, unless PHP parses it. */
void surus_adopt_body(void);
/* At the end of a request, however it ends: PHP's cache of paths knows nothing of its temporary files any more. */
void surus_forget_uploads(surus_task *task);

/* ---- kept_stream.c ---- */
/* The body that the server has in one file, of `length` bytes, for the request that runs. */
php_stream *surus_kept_stream(uint64_t length);

/* ---- superglobals.c ---- */
/* From now on notes which superglobals newly compiled code of a booted isolate refers to. */
void surus_superglobals_start(void);
/* At the end of a boot: what C code asks for is made then. */
void surus_superglobals_arm(void);
void surus_superglobals_scan(surus_isolate *isolate);
/* Fills in those that code refers to and the running request has not got yet. */
void surus_superglobals_build(surus_task *task);
/* $_POST and $_FILES of a form in any method's body, whether code refers to them or not. */
void surus_superglobals_build_upload(surus_task *task);

/* ---- in_process.c ---- */
void surus_register_in_process(void);

/* ---- request_class.c ---- */
void surus_register_request_class(void);
extern zend_class_entry *surus_request_class;
/* `class` extends surus_request_class. */
void surus_request_object(zval *to, zend_class_entry *class, void *exchange);
/* Adds a header or a trailer to an array of them; those of one name are joined. */
void surus_add_field(HashTable *fields, zend_string *name, surus_str value);
/* The parsed query string. */
HashTable *surus_request_query(zval *request);
/* NULL once the request has ended. */
void *surus_request_exchange(zend_object *request);
/* The request has ended: what keeps the object finds it empty. */
void surus_request_detach(zval *request);

/* ---- response_class.c ---- */
void surus_register_response_class(void);
extern zend_class_entry *surus_response_class;
typedef struct { zend_long status; zval *headers, *body, *trailers; } surus_response_view;
surus_response_view surus_response_read(zval *response);

/* ---- body_stream.c ---- */
void surus_body_stream(zval *to, zend_object *request);

/* ---- response.c ---- */
/* Sends what a handler returned: the return contract. */
void surus_render(surus_task *task, zval *result);
/* Adds it to the head of the response; what HTTP does not allow is left out, and the log says so. */
void surus_add_header(surus_task *task, surus_str name, surus_str value);
/* Starts and ends the output of one request of a fiber. */
void surus_output_begin(surus_task *task);
void surus_output_end(surus_task *task);
/* After a fatal error: the stack of output handlers is whole again. */
void surus_output_mend(surus_task *task);
bool surus_output_is_base(const surus_task *task);

/* ---- arguments.c ---- */
typedef struct surus_plan surus_plan;
/* From a list of Surus\Internal\Argument. NULL with a message if a class cannot be input. */
surus_plan *surus_plan_make(zval *list, void *exchange, int64_t route, char *error, size_t error_size);
void surus_plan_free(surus_plan *plan);
uint32_t surus_plan_count(const surus_plan *plan);
/* Whether `request` has to be there to fill it. */
bool surus_plan_needs_request(const surus_plan *plan);
/* Fills `arguments` (room for surus_plan_count). False: a value is missing or does not fit, and an exception says so. */
bool surus_plan_fill(const surus_plan *plan, void *exchange, zval *request, zval *arguments);
/* Throws a Surus\Http\HttpException; takes the message. */
void surus_throw_http(int status, zend_string *message);

/* ---- exceptions.c ---- */
/* Writes an exception to the log. */
void surus_log_exception(zend_object *exception);
/* The same of one that is pending in what follows a request's body; the answer is 500 if it is not on its way. */
void surus_report_exception(void);
/* File and line of the handler of the task's route; NULL if it is none of PHP's functions. The caller's to release. */
zend_string *surus_handler_place(const surus_task *task);

/* ---- boot.c ---- */
surus_outcome surus_run_boot(surus_task *task);
surus_outcome surus_run_unboot(surus_task *task);

/* ---- refresh.c ---- */
surus_outcome surus_run_refresh(surus_task *task);

/* ---- application.c ---- */
void surus_application_start(void);
surus_outcome surus_run_call(surus_task *task);
/* Calls the handler of the running request's route with its planned arguments. */
void surus_call_handler(zval *request, zval *result);

#endif
