/* The whole contract between Rust and C.
 *
 * Rust calls the functions of the first part, always from the event loop's own stack, never from a PHP stack.
 * C calls the `surus_rs_*` functions of the second part, always from a PHP stack.
 *
 * Rules
 *  - Zend leaves functions by longjmp (zend_bailout). Every function here that enters Zend catches it, so Rust
 *    never sees one. A `surus_rs_*` function never calls back into Zend while it holds a value with a destructor.
 *  - One thread: nothing here may be called from another one.
 *  - Strings are `surus_str`: pointer and length, not NUL-terminated unless it says so, and borrowed: valid as long
 *    as the object they came from.
 */
#ifndef SURUS_BRIDGE_H
#define SURUS_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { const char *ptr; size_t len; } surus_str;

typedef struct surus_isolate surus_isolate; /* a whole PHP: isolate.c */
typedef struct surus_task surus_task;       /* a stack that runs PHP: task.c */

/* ---- Rust → C ------------------------------------------------------------------------------------------------ */

/* For tests, before PHP is loaded: each block of PHP comes from malloc and records its isolate. Slow. */
void surus_heap_check(void);
/* Loads PHP: php_module_startup, once per process and before any fork. `ini` is php.ini text that wins over the
 * ini files. Returns 0, or -1 with a message in `error`. */
int surus_engine_start(const char *ini, char *error, size_t error_size);
/* Before it starts: scripts find frankenphp_handle_request(), too. */
void surus_engine_serve_in_turn(void);
/* After fork, in the process that will run PHP: timers and signal handlers. `slice_us` is the CPU time after which a
 * computing task is asked to yield. */
void surus_engine_enter_worker(uint64_t slice_us);
typedef struct {
	unsigned places;   /* connections to one database that an application has open; 0: no limit */
	double patience;   /* seconds that a request waits for a free one */
	unsigned max_idle; /* seconds after which an idle one is closed, 0: never, */
	unsigned min_idle; /* except for these */
	unsigned max_age;  /* seconds after which any is closed, 0: never */
} surus_persistent_settings;
void surus_persistent_set(const surus_persistent_settings *to);
/* What a pool of connections has done. */
typedef struct {
	surus_str kind; /* who opens connections */
	surus_str name; /* texts, each behind its length */
	unsigned max, idle, in_use, waiting;
	uint64_t resets, dropped, closed;
} surus_pool_figures;
/* Of the pools of persistent connections; false: there are no more. */
bool surus_pool_figure(size_t index, surus_pool_figures *to);
/* Of a pool of PHP's; 0: a new one. Returns its number. */
uint64_t surus_rs_note_pool(uint64_t number, surus_pool_figures figures);
void surus_rs_forget_pool(uint64_t number);
/* Whether a session with PostgreSQL that was asked for nothing but what looks like reading is not reset. */
void surus_persistent_trust(bool texts);
/* Sets the environment of this process: "NAME=value" entries, then NULL; they must live as long as the process. Before
 * this process makes its first isolate. */
void surus_environment_set(char **entries);
const char *surus_php_version(void);

/* A new isolate: NULL, with an error, when there is no memory. `memory_limit` is ini text or NULL. `for_snapshots`: after
 * its boot SURUS_RUN_SNAPSHOT follows. */
surus_isolate *surus_isolate_new(const char *memory_limit, bool for_snapshots, const char **error);
/* The names of all settings, one per call, from `*next` = 0; NULL at the end. Before there are isolates. */
const char *surus_setting_name(uint32_t *next);
/* Gives isolates of this process the self-test's script and the settings that it needs, whatever the site's settings
 * are. Before the first isolate. */
void surus_prepare_self_test(const char *script, size_t length);
/* Frees everything the isolate owns. No task of it may be running or parked. `clean` is false after a failure that
 * left its heap in an unknown state: then no PHP destructor or connection shutdown runs. */
void surus_isolate_free(surus_isolate *isolate, bool clean);
/* Bytes in use, their peak, and bytes taken from the system. */
typedef struct { size_t memory_usage, memory_peak, memory_held; } surus_isolate_stats;
surus_isolate_stats surus_isolate_memory(surus_isolate *isolate);
/* Bytes of memory in which this process keeps what its isolates are put back to. */
size_t surus_pages_kept(void);
/* Enters the isolate: to measure the cost of a switch. */
void surus_isolate_touch(surus_isolate *isolate);

/* How often state was swapped since the process began. Resuming the last isolate, or the last fiber, swaps nothing. */
typedef struct {
	uint64_t isolates; /* entered */
	uint64_t fibers;   /* whose state was put aside */
} surus_swaps;

surus_swaps surus_count_swaps(void);

/* The first loaded extension that must not run in isolates, or that nobody has reviewed, and the reason; NULL when
 * there is none. `next` starts at 0 and is advanced, so that all can be listed. */
const char *surus_extension_for_processes(unsigned *next, const char **why);
/* Saves the variables of extensions that nobody has reviewed; false when there are none. */
bool surus_watch_extensions(void);
/* The first of them that has changed a variable since then, except its module globals; NULL when none has. */
const char *surus_watched_change(void);

/* For tests: records changes, from now on, in writable data of libraries that is not swapped with isolates; false when
 * not all of it can be watched. surus_changes_look must be called whenever data may have changed; surus_changes_write
 * appends lines to the file, each with `who`: the code that ran. */
bool surus_changes_start(void);
void surus_changes_look(void);
bool surus_changes_write(const char *path, const char *who);

/* What a task does next. */
typedef enum {
	SURUS_RUN_CLASSIC = 1, /* request startup, script, request shutdown */
	SURUS_RUN_BOOT = 2,    /* request startup, script; its value becomes the application; the request stays open */
	SURUS_RUN_CALL = 3,    /* call the application for one HTTP request */
	SURUS_RUN_UNBOOT = 4,  /* request shutdown of a booted isolate */
	SURUS_RUN_SCRIPT = 5,  /* as php-cli runs a script: see command_line.c */
	SURUS_RUN_REFRESH = 6, /* forget files that have changed since $_GET['since']: see refresh.c */
	SURUS_RUN_JOB = 7,     /* a piece of a request's work: see jobs.c */
	SURUS_RUN_SNAPSHOT = 8 /* after a boot: each request of this task finds the isolate as it is now */
} surus_work;

typedef enum {
	SURUS_DONE = 0,      /* the work has ended: see surus_task_outcome */
	SURUS_PARKED = 1,    /* waits for what the parking function told Rust before */
	SURUS_PREEMPTED = 2, /* used up its time slice: resume after others had a turn */
	SURUS_ABANDONED = 3, /* C stack overflow: the task cannot go on, its isolate must be freed unclean */
	SURUS_YIELDED = 4,   /* calls again and again for what it is refused: resume after others had a turn */
	SURUS_EXHAUSTED = 5  /* PHP's hard memory limit: as SURUS_ABANDONED */
} surus_event;

typedef enum {
	SURUS_OK = 0,
	SURUS_FATAL = 1,     /* fatal error: the isolate takes no new requests */
	SURUS_CANCELLED = 2, /* ended by surus_task_cancel */
	SURUS_EXCEPTION = 3, /* uncaught exception: the isolate goes on */
	SURUS_EXITED = 4     /* exit() in a coroutine isolate: the isolate goes on */
} surus_outcome;

typedef enum {
	SURUS_CANCEL_NONE = 0,
	SURUS_CANCEL_TIMEOUT = 1, /* the request's deadline */
	SURUS_CANCEL_CLIENT = 2,  /* the client has left */
	SURUS_CANCEL_SHUTDOWN = 3, /* the server ends */
	SURUS_CANCEL_JOB = 4      /* the request does not want this job any more */
} surus_cancel;

/* A stack of `stack_size` bytes (a guard page below) for PHP of `isolate`. */
surus_task *surus_task_new(surus_isolate *isolate, size_t stack_size);
void surus_task_free(surus_task *task);
/* Sets what the idle task does on its next resume. `exchange` is handed back to the surus_rs_* functions. */
void surus_task_assign(surus_task *task, surus_work work, void *exchange);
/* Runs the task until it parks, is pre-empted or done. */
surus_event surus_task_resume(surus_task *task);
surus_outcome surus_task_outcome(const surus_task *task);
/* What surus_task_assign was called with last. */
void *surus_task_exchange(const surus_task *task);
/* Cancels a parked or pre-empted task: its next resume unwinds PHP and runs `finally` blocks. After the second call the
 * task may not wait any more. */
void surus_task_cancel(surus_task *task, surus_cancel why);
/* False when it was not cancelled, or goes on in spite of it (ignore_user_abort). */
bool surus_task_is_ending(const surus_task *task);
/* Whether the task of a request that must end runs on, although a job of its own was pre-empted. */
bool surus_task_overtakes(const surus_task *task, const surus_task *holder);
/* Whether the request of a job must end. */
bool surus_job_is_unwanted(const surus_task *job);
/* Of a job that is done or abandoned: whether its request must end, too. Then the request's own task is to be resumed. */
bool surus_job_dooms(const surus_task *job);
/* Abandons a pre-empted or yielded task: it must not be resumed again, as after SURUS_ABANDONED. */
void surus_task_give_up(surus_task *task);
/* Requests of this isolate come one at a time, and its script may serve them with Surus\\handle_request(). Before it boots.
 * `starter` is PHP code that runs in place of the script, and must stay; NULL: the script itself runs. */
void surus_isolate_serve_in_turn(surus_isolate *isolate, const char *starter);
/* Of a boot that is done: whether its script waits in Surus\\handle_request(). Requests are calls of what it has named there;
 * when one has ended, or the isolate has to end (`more` is false), the script is told, and resumed. */
bool surus_task_waits(const surus_task *task);
void surus_task_tell(surus_task *task, bool more);
/* Writes a PHP backtrace of a parked task to the log with `title`. */
void surus_task_backtrace(surus_task *task, const char *title);

/* The position of a suspended task in its code: "PDO::query() at /app/index.php:7". Returns the length of the text. */
size_t surus_task_place(surus_task *task, char *text, size_t size);
/* The same of the code that runs, in surus_rs_stalled. */
size_t surus_running_place(char *text, size_t size);
/* Writes a PHP backtrace of the code that runs to the log with `title`, in surus_rs_stalled. */
void surus_running_backtrace(const char *title);
/* From any thread: the internal function that runs now, "SQLite3::query()". 0 if it is none, or if it cannot be told; the text
 * is to be believed only if the run has not ended meanwhile. */
size_t surus_stall_function(char *text, size_t size);
/* From any thread: has surus_rs_stalled called by the PHP code that runs now, when the VM looks for interrupts. It may be
 * called in a later run, if this one ends before. */
void surus_stall_note(void);
/* Calls surus_rs_file with each file that the isolate has included. */
void surus_isolate_files(surus_isolate *isolate, void *list);

/* Starts PHP as its command line program, for `surus php` and PHP's own tests: instead of surus_engine_start. Strings
 * are NUL-terminated, and the caller keeps them until the process exits. */
typedef struct {
	const char *ini;        /* as for surus_engine_start */
	const char *ini_path;   /* -c, or NULL */
	const char *executable; /* PHP_BINARY */
	bool no_ini;            /* -n */
	bool tasks;             /* scripts may have some: their connections are guarded as a server's are */
} surus_command_line;
int surus_command_line_start(const surus_command_line *options, char *error, size_t error_size);

/* What a task with SURUS_RUN_SCRIPT runs; the caller keeps it until the task is done. */
typedef struct {
	const char *file;  /* the script, or NULL: standard input */
	const char *code;  /* instead of a file, without a tag */
	int argc;
	char **argv;       /* the first one is the script's name */
	uint32_t switches; /* so many times the task is pre-empted as early as PHP can be left */
	bool lint;         /* only compile */
	/* If true, runs for each line of standard input: `each`, or the file if that is NULL; runs `begin` before the first
	 * line and `end` after the last one, if they are not NULL. */
	bool lines;
	const char *begin, *each, *end;
	bool quiet;        /* its output goes nowhere, and it has no STDIN, STDOUT, STDERR */
} surus_invocation;
void surus_task_set_script(surus_task *task, const surus_invocation *script);
/* The exit status of a task that is done. */
int surus_task_exit_status(surus_task *task);

/* ---- C → Rust, on PHP stacks --------------------------------------------------------------------------------- */

/* True on a PHP stack where the engine may be left now: not while switching is blocked, not while a fiber compiles or
 * collects cycles. Also true for a cancelled request whose wait would be refused: surus_park then returns at once. */
bool surus_can_park(void);
/* True if a descriptor was refused in the running call because select() cannot handle it; the exception is pending. */
bool surus_select_is_refused(void);
/* Leaves the PHP stack; returns when the task is resumed. Rust has recorded what the task waits for. Returns the reason
 * if the task was cancelled: then the caller returns an error to PHP at once. */
surus_cancel surus_park(void);
/* The same for a wait that cannot fail: the caller checks first that the engine may be left. */
void surus_park_for_lock(void);
/* Waits until some lock of a C library is released, or the request is cancelled. */
void surus_rs_wait_for_lock(void);
void surus_rs_lock_is_released(void);
/* Lets other tasks run for a few milliseconds, longer with more `tries`; false when the request must end. */
bool surus_rs_pause(unsigned tries);
/* Pauses between two checks for a partner of interprocess communication; false when the request must end. */
bool surus_rs_nap_for_partner(unsigned tries);
/* Wakes these pauses: this process has done something that a partner may wait for. */
void surus_rs_wake_partners(void);
/* The running task; NULL outside of tasks. */
surus_task *surus_running_task(void);
/* Logs that the running task closes a descriptor for which another one waits. Allocates nothing. */
void surus_descriptor_closed(surus_task *waiter, int descriptor);
/* The task of the wait with this number for a descriptor; NULL after the last one. */
surus_task *surus_rs_waiter_of(int descriptor, size_t number);
/* Whether it is a connection to a peer that answers: not a listening socket, datagram socket or socket pair. */
bool surus_rs_is_conversation(int descriptor);
/* Shuts such a connection down. */
void surus_rs_sever(int descriptor);
/* Nothing can be read from a connection, as far as the event loop has told by its last turn. */
bool surus_rs_is_quiet(int descriptor);
/* A session with PostgreSQL that has just been reset; whether it was only asked to read since. */
void surus_rs_session_begins(int descriptor);
void surus_rs_session_ends(int descriptor);
bool surus_rs_text_only_reads(const char *text);
bool surus_rs_session_only_reads(int descriptor);
/* How names of statements begin that are kept for later requests; up to 23 characters. */
const char *surus_rs_kept_names(void);
/* The number was given to another descriptor. */
void surus_rs_is_new(int descriptor);
/* In the child of a fork: its registrations are the parent's. */
void surus_rs_leave_registrations(void);
/* Whether the current operation of the running task was interrupted by its cancellation: nothing new may be started
 * before its code goes on in a `finally`. */
bool surus_is_over(void);
/* After surus_stall_note. */
void surus_rs_stalled(void);
/* The exchange of the running task; NULL when no task runs. */
void *surus_current_exchange(void);

/* Jobs of a request: tasks of its isolate that Rust resumes as it does the request's own. A new one, which begins when the
 * running code waits. Returns its number; numbers begin at 1, and 0 is the request's own code. */
uint64_t surus_rs_job_begin(void *exchange, surus_task *job);
/* The job with this number waits until it is woken: SURUS_WOKEN, also when it was woken before it waited; SURUS_TIME_OVER
 * after so many seconds, unless they are negative; SURUS_MUST_END when it was cancelled; SURUS_CANNOT_WAIT here. */
typedef enum {
	SURUS_TIME_OVER = 0,
	SURUS_WOKEN = 1,
	SURUS_MUST_END = 2,
	SURUS_CANNOT_WAIT = 3,
	SURUS_WEBSOCKET_OVER = 4, /* of a WebSocket: it is over */
	SURUS_NOT_TEXT = 5   /* the same: it is not UTF-8 */
} surus_waited;
int surus_rs_job_wait(void *exchange, uint64_t number, double seconds);
void surus_rs_job_wake(void *exchange, uint64_t number);
void surus_rs_job_cancel(void *exchange, uint64_t number);
/* False: none is left. Else cancels them, the second time if it is `hard`, and waits until one has ended or the request
 * was cancelled. */
bool surus_rs_jobs_end(void *exchange, bool hard);

/* Passes a job on to another process, and waits for its answer, which C copies before it says so: SURUS_OFFLOAD_ANSWERED;
 * with a reason in its place, SURUS_OFFLOAD_REFUSED before it has begun, SURUS_OFFLOAD_LATE and SURUS_OFFLOAD_FAILED.
 * SURUS_OFFLOAD_CUT: the running code must end. */
typedef enum {
	SURUS_OFFLOAD_CUT = 0,
	SURUS_OFFLOAD_ANSWERED = 1,
	SURUS_OFFLOAD_REFUSED = 2,
	SURUS_OFFLOAD_LATE = 3,
	SURUS_OFFLOAD_FAILED = 4
} surus_offloaded;
int surus_rs_offload(surus_str name, surus_str payload, surus_str *answer);
void surus_rs_offload_copied(void);

/* Clients of PostgreSQL: src/callbacks/postgres.rs. The number of the one with this connection string and so many
 * connections, which all isolates of the process use; 0: `error` says what is wrong, until the next call. */
uint64_t surus_rs_postgres_client(surus_str text, int64_t connections, surus_str *error);
typedef enum {
	SURUS_POSTGRES_NULL = 0,
	SURUS_POSTGRES_BOOL = 1,
	SURUS_POSTGRES_INT = 2,
	SURUS_POSTGRES_FLOAT = 3,
	SURUS_POSTGRES_TEXT = 4,
	SURUS_POSTGRES_ARRAY = 5 /* its text */
} surus_postgres_kind;
typedef struct { int kind; int64_t integer; double number; surus_str text; } surus_postgres_value;
typedef struct { const surus_postgres_value *values; size_t count; } surus_postgres_values;
/* Runs a statement, in a transaction if that is not 0, and waits for its answer; its rows may have `limit` bytes. The answer
 * is freed with surus_rs_postgres_free(). */
void *surus_rs_postgres_query(void *exchange, uint64_t client, uint64_t transaction, surus_str sql,
	surus_postgres_values parameters, size_t limit);
/* The same for several lists of parameters: make a batch, add the lists, and ask for each answer in their order: the first time
 * sends all. NULL: there was none, since the batch has no more lists. To be freed with surus_rs_postgres_batch_free(). */
void *surus_rs_postgres_batch(void *exchange, uint64_t client, uint64_t transaction, surus_str sql, size_t limit);
void surus_rs_postgres_batch_add(void *batch, surus_postgres_values parameters);
void *surus_rs_postgres_batch_next(void *batch);
void surus_rs_postgres_batch_free(void *batch);
/* Begins a transaction of the request with this statement; and ends it with the other one, whatever the answer is. */
void *surus_rs_postgres_begin(void *exchange, uint64_t client, surus_str sql, uint64_t *transaction);
void *surus_rs_postgres_end(void *exchange, uint64_t transaction, surus_str sql);
/* Closes the connection of a transaction that has not ended. */
void surus_rs_postgres_cut(void *exchange, uint64_t transaction);
/* Begins a COPY of a transaction: its number, which ends with the request. Otherwise 0 and an answer, or NULL where the running code
 * must end. */
uint64_t surus_rs_postgres_copy(void *exchange, uint64_t transaction, surus_str sql, bool to_server, void **answer);
/* Sends a piece. False: no more are taken; the end says why. */
bool surus_rs_postgres_copy_put(void *exchange, uint64_t copy, surus_str piece);
/* The next piece, which stays until the one after it. If none is there, waits. False: there are no more; the end says why. */
bool surus_rs_postgres_copy_take(void *exchange, uint64_t copy, surus_str *piece);
/* Ends it, or undoes it. An answer, or NULL where the running code must end. */
void *surus_rs_postgres_copy_end(void *exchange, uint64_t copy, bool is_good);
typedef struct { surus_str payload; int process; bool missed; } surus_postgres_notification;
/* Listens to a channel: the number of the listener, which ends with the request. Otherwise 0 and an answer, or NULL where the running
 * code must end. */
uint64_t surus_rs_postgres_listen(void *exchange, uint64_t client, surus_str channel, void **answer);
/* Waits for the next one, whose text stays until the one after it. False: the running code must end. */
bool surus_rs_postgres_notification(void *exchange, uint64_t listener, surus_postgres_notification *to);
void surus_rs_postgres_unlisten(void *exchange, uint64_t listener);
/* The rows of an answer: each has the number of its values in two bytes, then for each its length in four, negative for NULL,
 * and its bytes; the most significant byte comes first. */
typedef struct { surus_str data; size_t count, columns; uint64_t affected; bool rolled_back; } surus_postgres_rows;
typedef struct { surus_str name; uint32_t kind; bool binary; } surus_postgres_column;
typedef struct {
	int kind; /* 0: the server's error; 1: of the connection; 2: wrong use; 3: too many wait; 4: a result that is too large */
	int64_t position;
	surus_str message, state, detail, hint, constraint, table, column;
} surus_postgres_failure;
/* SURUS_POSTGRES_CUT: there is none, and the running code must end. */
typedef enum { SURUS_POSTGRES_CUT = 0, SURUS_POSTGRES_ROWS = 1, SURUS_POSTGRES_FAILED = 2 } surus_postgres_outcome;
int surus_rs_postgres_rows(void *answer, surus_postgres_rows *rows, surus_postgres_failure *failure);
void surus_rs_postgres_column(void *answer, size_t index, surus_postgres_column *column);
void surus_rs_postgres_free(void *answer);
/* Asks the keeper of jobs: `verb` and `head`, which is JSON, are Surus\Internal\Queues'. Waits for the answer, which C copies before
 * it says so. SURUS_QUEUE_CUT: the running code must end; SURUS_QUEUE_REFUSED: the answer is a reason. */
typedef enum { SURUS_QUEUE_CUT = 0, SURUS_QUEUE_ANSWERED = 1, SURUS_QUEUE_REFUSED = 2 } surus_queue_answer;
int surus_rs_queue(void *exchange, surus_str verb, surus_str head, surus_str payload, surus_str *answer, surus_str *bytes);
void surus_rs_queue_copied(void);
/* While an application boots: its queues, as JSON. */
void surus_rs_queue_serve(void *exchange, surus_str queues);
/* The job that this exchange runs: what is known of it, as JSON, and what was pushed. They stay until it has ended. */
void surus_rs_queue_job(void *exchange, surus_str *head, surus_str *payload);
/* How it has ended, as JSON. */
void surus_rs_queue_end(void *exchange, surus_str ending);

/* Request data. `script` (NUL-terminated) is the file a classic request or boot runs. */
typedef struct {
	surus_str method, uri, path, query, content_type, cookie, authorization; /* all NUL-terminated */
	surus_str script;
	int64_t content_length; /* -1 unknown */
	int proto_num;          /* 1000, 1001, 2000 */
} surus_request_info;
void surus_rs_request_info(void *exchange, surus_request_info *info);
/* The i-th $_SERVER entry; false after the last one. */
bool surus_rs_server_variable(void *exchange, size_t i, surus_str *name, surus_str *value);
/* A request header by lower-case name. */
bool surus_rs_header(void *exchange, surus_str name, surus_str *value);
/* The i-th request header; false after the last one. */
bool surus_rs_header_at(void *exchange, size_t i, surus_str *name, surus_str *value);
/* The i-th path parameter of the matched route; empty where an optional part was left out. */
bool surus_rs_path_parameter(void *exchange, size_t i, surus_str *name, surus_str *value);
/* Index of the matched route, or -1 when the application is one handler. */
int64_t surus_rs_route(void *exchange);
/* The number of what runs without a client, and what it is; -1: this is a request. */
typedef enum { SURUS_TIMER_ASKED = 0, SURUS_TIMER_DUE = 1, SURUS_BACKGROUND = 2, SURUS_QUEUED = 3 } surus_clientless;
int64_t surus_rs_timer(void *exchange, int *what);
/* Begins what was put under this number, when the running code waits. False: too many of them run, or
 * the version of the application was replaced. */
bool surus_rs_background(uint64_t number);
/* When it is due next, in seconds since 1970. */
void surus_rs_timer_next(void *exchange, double at);
/* While an application boots. `kind` 0: once, after these seconds; 1: each time so many have passed; 2: then, in seconds since
 * 1970, and when surus_rs_timer_next says so. */
void surus_rs_add_timer(void *exchange, surus_str about, int kind, double seconds);
/* Up to `size` bytes of the request body; 0 at its end. Parks until some have arrived. */
void surus_rs_collect_body(void *exchange);
size_t surus_rs_read_body(void *exchange, char *buffer, size_t size);
/* True if the server has the whole body in one file of `length` bytes and nothing of it was read. From then on it
 * counts as read. */
bool surus_rs_take_body_file(void *exchange, uint64_t *length);
/* Up to `size` bytes of such a body; 0 at its end, and if the file cannot be read. Other tasks may run first. */
size_t surus_rs_read_body_at(void *exchange, uint64_t position, char *buffer, size_t size);
/* From now on the body that is read has marks in place of the files that the server has stored separately. */
void surus_rs_mark_files(void *exchange);
/* If this is a mark: the next write() of these bytes turns the file that is written to into the stored one, of `length`
 * bytes. */
bool surus_rs_hand_over_file(void *exchange, surus_str mark, uint64_t *length);
/* No such write() is expected any more. */
void surus_rs_forget_file(void);
/* Whether the body was cut off: what was read must not be treated as the whole body. */
bool surus_rs_body_failed(void *exchange);
/* The i-th trailer field of the request; none before the end of the body was read. */
bool surus_rs_trailer_at(void *exchange, size_t i, surus_str *name, surus_str *value);

/* A ticket is for one wait of a request for another one of its thread. Returns 1 when that one has called the ticket, 0
 * when the time is over or the request must end, and -1 where nothing may wait. */
uint64_t surus_rs_ticket(void);
int surus_rs_wait_for_call(uint64_t ticket, double seconds);
void surus_rs_call_ticket(uint64_t ticket);

/* Parks for a moment between two tries to lock a file, longer with each try; false when the request must end. */
bool surus_rs_nap_for_lock(unsigned tries);

/* Response. The head is sent first, once; writing may park while the client is slow. False: the client has
 * disconnected. */
void surus_rs_send_head(void *exchange, int status);
/* An interim response (1xx) with "Name: value" lines; false if it cannot be sent now. */
bool surus_rs_interim(void *exchange, int status, surus_str lines);
/* Adds a header field. False: HTTP does not allow the name or the value, and the field is left out. */
bool surus_rs_add_header(void *exchange, surus_str name, surus_str value);
bool surus_rs_content_type(void *exchange, surus_str value);
/* Adds a trailer field, which the header "Trailer" has announced. */
bool surus_rs_add_trailer(void *exchange, surus_str name, surus_str value);
/* Logs that a field was left out. `place` is the handler's place in the source; empty: the script's. */
void surus_rs_note_left_out(void *exchange, surus_str name, surus_str place);
bool surus_rs_write(void *exchange, const char *data, size_t size);
bool surus_rs_flush(void *exchange);
/* The same for an item of a stream; those that follow each other at once are sent together, when the task waits. */
bool surus_rs_flush_item(void *exchange);
/* Writes an item, and flushes it so. */
bool surus_rs_write_item(void *exchange, const char *data, size_t size);
/* The handler's iterable is sent from now on: as long as it goes on, it is bounded by the time without output only. */
void surus_rs_open_stream(void *exchange);
/* Whether this process has the connections of clients: it passes requests to no other one, and gets them from none. */
bool surus_rs_has_websockets(void);
/* What is agreed upon with a client that offers these extensions, valid until the next call; false: nothing. */
bool surus_rs_websocket_extensions(surus_str offers, surus_str *answer);
/* Answers 101 with the head so far: the connection is a WebSocket whose client may send messages of `max_message` bytes.
 * Returns its number, which no other one of this process has, or 0: there is an answer already, or no client. */
uint64_t surus_rs_websocket_accept(void *exchange, size_t max_message);
/* From now on no fiber of the request waits for messages: another one is begun for what happens. False: it is no WebSocket of this
 * request, or that is so already. */
bool surus_rs_websocket_converse(void *exchange, uint64_t number);
/* Of such a request: the number of its WebSocket, and what its fiber is for. Zero: it is none. */
typedef enum {
	SURUS_SOCKET_OPENS = 0,
	SURUS_SOCKET_HAS_MESSAGES = 1,
	SURUS_SOCKET_IS_OVER = 2
} surus_socket_event;
uint64_t surus_rs_conversation(void *exchange, int *event);
/* A message that has come, as surus_rs_websocket_receive has them. False: none has. */
bool surus_rs_websocket_next(uint64_t number, bool *binary, surus_str *message);
/* Waits for a message: SURUS_WOKEN with the message, which is valid until the next call, SURUS_WEBSOCKET_OVER when no more will
 * come; SURUS_TIME_OVER after so many seconds, unless they are negative; SURUS_MUST_END, SURUS_CANNOT_WAIT. */
int surus_rs_websocket_receive(uint64_t number, double seconds, bool *binary, surus_str *message);
/* Sends a message; waits while the client has not read what was sent before. SURUS_WOKEN: it was sent. A text has to be
 * UTF-8: SURUS_NOT_TEXT. */
int surus_rs_websocket_send(uint64_t number, surus_str message, bool binary);
/* The last that is sent; false: the code is none that may be sent, or the reason is longer than 123 bytes, or no UTF-8. */
bool surus_rs_websocket_close(uint64_t number, int64_t code, surus_str reason);
/* How it has ended; false: it is open. The reason is valid until the next call. */
bool surus_rs_websocket_end(uint64_t number, int *code, surus_str *reason);
/* Channels. Texts that are returned are valid until the next call of these functions. */
typedef enum {
	SURUS_CHANNEL_DONE = 0,
	SURUS_CHANNEL_NO_SERVER = 1,   /* no server runs this code */
	SURUS_CHANNEL_NAME = 2,        /* the name of a channel, an event or a member is none, or too long */
	SURUS_CHANNEL_NOT_TEXT = 3,    /* a text is no UTF-8 */
	SURUS_CHANNEL_TOO_LARGE = 4,
	SURUS_CHANNEL_TOO_MANY = 5,    /* channels of one connection */
	SURUS_CHANNEL_OVER = 6,        /* of a WebSocket: it is over; of a response: it has begun */
	SURUS_CHANNEL_NO_MEMORY = 7,   /* there is no memory for histories */
	SURUS_CHANNEL_UNAVAILABLE = 8, /* the history could not be written */
	SURUS_CHANNEL_MISSED = 9,      /* what was published since a position is not kept any more */
	SURUS_CHANNEL_ELSEWHERE = 10   /* connections are those of other processes */
} surus_channel_result;
typedef struct {
	surus_str event;
	surus_str data;
	surus_str except;
	bool is_binary;
} surus_message;
/* Publishes a message to all workers. Waits for nobody, but others may have a turn. */
int surus_rs_channel_publish(surus_str channel, const surus_message *message, surus_str *position);
/* Who is there; each has a number from 0. */
int surus_rs_channel_members(surus_str channel, size_t *count);
void surus_rs_channel_member(size_t i, surus_str *id, surus_str *info);
/* What is kept, the same way: after a position, or the newest, at most so many. */
int surus_rs_channel_history(surus_str channel, surus_str since, uint64_t most, size_t *count, surus_str *newest);
void surus_rs_channel_kept(size_t i, surus_message *message, surus_str *position);
size_t surus_rs_channel_subscribers(surus_str channel);
/* Lets a WebSocket have what is published on a channel, or no longer. */
int surus_rs_channel_subscribe(uint64_t number, surus_str channel, bool wanted, surus_str since);
/* Makes it a member of a channel; without a name it leaves. */
int surus_rs_channel_join(uint64_t number, surus_str channel, surus_str member, surus_str info);
/* The response goes on with what is published on this channel, if it is an event stream without a body. `retry`: milliseconds until a client comes
 * again. */
int surus_rs_channel_stream(void *exchange, surus_str channel, surus_str since, int64_t retry);
/* fastcgi_finish_request: the response is complete, PHP goes on. */
void surus_rs_finish(void *exchange);
/* As surus_rs_finish; lets the response leave, and begins the time of what was deferred. May park. */
void surus_rs_defer(void *exchange);
/* That has ended. */
void surus_rs_deferred(void *exchange);

/* An uncaught exception of a coroutine application; `trace` is empty outside of development. */
void surus_rs_exception(void *exchange, int status, surus_str class_name, surus_str message, surus_str trace);
/* The response body is incomplete: if it is being sent, the connection is cut off, so that the client can tell; if
 * nothing of it is there yet, the status is 500. */
void surus_rs_cut_off(void *exchange);

/* At boot: one route of the application. `methods` is separated by commas or is "*"; `headers` has a line for each
 * condition; `about` is a description for people, `origin` the file and line where the route is declared.
 * `timeout` is the time for a request in seconds: 0 is no limit, negative that of the application.
 * Without a pattern the route answers requests that match no other: `methods` is "404" or "405". */
typedef struct { surus_str methods, pattern, host, headers, about, origin; int64_t index; double timeout; } surus_route;
void surus_rs_add_route(void *exchange, const surus_route *route);
/* Whether errors are shown to clients. */
bool surus_rs_is_dev(void *exchange);

/* Validated input: surus-schema's input.rs defines cells. */
typedef enum {
	SURUS_CELL_NULL = 0,
	SURUS_CELL_FALSE = 1,
	SURUS_CELL_TRUE = 2,
	SURUS_CELL_INTEGER = 3,
	SURUS_CELL_NUMBER = 4,
	SURUS_CELL_STRING = 5,
	SURUS_CELL_LIST = 6,
	SURUS_CELL_MAP = 7,
	SURUS_CELL_OBJECT = 8,
	SURUS_CELL_ENUM = 9,
	SURUS_CELL_DEFAULT = 10,
	SURUS_CELL_PARSED = 11,
	SURUS_CELL_FILE = 14
} surus_cell_kind;
typedef struct { uint8_t kind, source; uint16_t class; uint32_t len; uint64_t bits; } surus_cell;
typedef struct { const surus_cell *cells; const char *text[2]; } surus_input;
/* At boot: the route takes input from this source; Surus\Schema\Boot makes the description. Returns the input's slot in
 * the route, or -1 with a message. */
enum { SURUS_FROM_JSON = 1, SURUS_FROM_FORM = 2, SURUS_FROM_QUERY = 4 };
int surus_rs_add_input(void *exchange, int64_t route, int from, surus_str description, char *error, size_t error_size);
/* At boot: messages in other languages, as JSON; false if it is not valid. */
bool surus_rs_add_messages(void *exchange, surus_str json);
/* Valid until the request ends. */
bool surus_rs_input(void *exchange, uint32_t slot, surus_input *input);
/* Refuses input that violates rules written in PHP. `violations` is a JSON list, added to those of the route's other
 * input. */
void surus_rs_refuse_input(void *exchange, uint32_t slot, surus_str violations);
/* Why the request's input is refused: a status, a problem document, and, if the media type was wrong, those that the
 * route takes. False: it is not refused. Valid until the request ends. */
typedef struct { int status; surus_str text, accepted; } surus_refusal;
bool surus_rs_refusal(void *exchange, surus_refusal *refusal);
/* At boot: PHP runs for refused input of this route, too. */
void surus_rs_guard_route(void *exchange, int64_t route);
/* Takes `cost` tokens from a bucket that all workers share and that fills at `rate` tokens a second, up to `burst`.
 * Times are seconds. */
typedef struct { bool allowed; int64_t remaining; double retry_after, reset_after; } surus_taken;
void surus_rs_take_tokens(surus_str key, double rate, double burst, double cost, surus_taken *taken);

/* The store that all workers share: shared/store. Times are nanoseconds of the monotonic clock; a `now` below 0 is the
 * present. A value has the `kind` of its writer; what is `kept` is not removed to make room. */
typedef struct { int kind; bool is_kept; int64_t number; surus_str bytes; } surus_stored;
/* False: there is none. Valid until the next call. */
bool surus_rs_store_read(surus_str key, int64_t now, surus_stored *value);
enum {
	SURUS_STORE_DONE = 0,
	SURUS_STORE_NOT = 1, /* the condition does not hold, or there is no such key */
	SURUS_STORE_TOO_LARGE = 2,
	SURUS_STORE_FULL = 3,
	SURUS_STORE_UNAVAILABLE = 4,
	SURUS_STORE_OTHER = 5, /* not a number */
	SURUS_STORE_OVERFLOW = 6,
};
enum { SURUS_STORE_ALWAYS = 0, SURUS_STORE_IF_ABSENT = 1, SURUS_STORE_IF_PRESENT = 2, SURUS_STORE_IF_SAME = 3 };
/* Stores a value for `time` nanoseconds. `expected` is for SURUS_STORE_IF_SAME. */
int surus_rs_store_write(surus_str key, const surus_stored *value, int64_t time, int condition, const surus_stored *expected, int64_t now);
int surus_rs_store_remove(surus_str key, int64_t now);
bool surus_rs_store_clear(surus_str prefix);
int surus_rs_store_touch(surus_str key, int64_t time, int64_t now);
/* Adds to a number of this kind, which is `initial` for `time` if there is none. */
typedef struct { int kind; bool is_kept; int64_t by, initial, time; } surus_store_step;
int surus_rs_store_step(surus_str key, const surus_store_step *step, int64_t now, int64_t *result);

/* Locks by name, between all requests of the server. Parks for up to so many seconds. The number is for unlocking; what an
 * exchange has not unlocked ends with it. */
enum {
	SURUS_LOCK_TAKEN = 0,
	SURUS_LOCK_BUSY = 1,
	SURUS_LOCK_CUT = 2, /* the request must end */
	SURUS_LOCK_CANNOT_WAIT = 3, /* here */
	SURUS_LOCK_TOO_MANY = 4,
	SURUS_LOCK_UNAVAILABLE = 5,
};
int surus_rs_lock(void *exchange, surus_str name, double seconds, uint64_t *number);
bool surus_rs_unlock(void *exchange, uint64_t number);

/* The error in a route's pattern; false if there is none. Valid until the next call. */
bool surus_rs_pattern_error(surus_str pattern, surus_str *text);

/* Signatures of JSON Web Tokens: callbacks/signatures.rs describes the parts of keys. */
bool surus_rs_verifies(surus_str algorithm, surus_str first, surus_str second, surus_str text, surus_str signature);
/* False: the key cannot sign. The signature is valid until the next call. */
bool surus_rs_sign(surus_str algorithm, surus_str key, surus_str text, surus_str *signature);

/* Makes an OpenAPI document from the description by Surus\Schema\OpenApi; false: `text` is an error message. Valid
 * until the next call. */
bool surus_rs_openapi(surus_str routes, surus_str *text);
/* The HTML page that shows an OpenAPI document. */
surus_str surus_rs_openapi_page(void);
/* At boot: whether the application boots only to make its OpenAPI document; and passes the document to Rust. */
bool surus_rs_wants_openapi(void *exchange);
void surus_rs_take_openapi(void *exchange, surus_str document);

/* Applications to which a script of the command line sends requests: call begin, declare routes to the exchange, call
 * end. The end consumes the exchange and returns the application, or NULL with a message. */
void *surus_rs_in_process_begin(void);
void *surus_rs_in_process_end(void *exchange, char *error, size_t error_size);
void surus_rs_in_process_free(void *application);
/* Answers a request in a fiber of the running script's isolate; the script is parked meanwhile. `head` has lines
 * "name: value". False: the answer's body describes the error in the request. Valid until the next call. */
typedef struct { surus_str method, target, head, body; } surus_in_process_request;
typedef struct { int status; surus_str head, body; } surus_in_process_answer;
bool surus_rs_in_process_call(void *application, const surus_in_process_request *request, surus_in_process_answer *answer);

/* A source file of the Surus\ classes, by class name; false if there is none. */
bool surus_rs_class_source(surus_str class_name, surus_str *file_name, surus_str *source);

/* Reports a file that an isolate has included; a file that Surus\watch() was called with. */
void surus_rs_file(void *list, surus_str file);
void surus_rs_watch(surus_str file);

/* Writes an entry of the application to the server's log. `severity` is a syslog priority, `level` its name in PSR-3,
 * `context` a JSON object or empty. `exchange` may be NULL. */
typedef struct { int severity; surus_str level, channel, message, context; } surus_log_entry;
void surus_rs_log_entry(void *exchange, const surus_log_entry *entry);
/* Whether an entry of this severity would be written. */
bool surus_rs_log_enabled(int severity);
/* Writes one line to the server's log. `level` is a syslog priority. */
void surus_rs_log(int level, surus_str message);

/* To be called before and after libc reads the environment, on any thread: no memory of it is freed meanwhile. The
 * result of the first is the argument of the second. */
unsigned surus_env_read_begin(void);
void surus_env_read_end(unsigned reader);

/* The query settings of a resolver's state (`struct __res_state`); a search with such settings, by libc's
 * `res_nsearch`, on any thread; and storing the error (h_errno) where the caller reads it. */
typedef struct {
	int retrans, retry;
	unsigned long options;
	int count;
	unsigned char servers[3][16];
} surus_resolver;
typedef int (*surus_resolver_call)(void *state, const char *name, int class, int type, unsigned char *answer, int size);

void surus_resolver_settings(const void *state, surus_resolver *settings);
int surus_resolver_search(surus_resolver_call search, const surus_resolver *settings, const char *name, int class,
	int type, unsigned char *answer, int size, int *host_error);
void surus_resolver_tell(void *state, int host_error);

/* fiber/comparison.h, for its test. */
void surus_comparison_add(const void *address, size_t size, size_t offset);
bool surus_comparison_holds(const char *copy);

#endif
