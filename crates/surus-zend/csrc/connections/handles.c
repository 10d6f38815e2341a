/* A connection's handle serves one request at a time. Requests of one isolate may share objects, if the application
 * does so; the drivers would give the answer for one request to another.
 *
 * Each function that uses a handle is wrapped. The wrapper records the request that used the handle last and, where an
 * exchange takes more than one call, its phase. Nothing is recorded when the function returns or parks: only when
 * another request uses the handle, the stack of the last one is examined. If that one is inside a call on the same
 * handle, or has begun something on it that must not be mixed (a transaction, an exchange), the other one gets an
 * exception before the driver is called.
 *
 * Everything that is known about a function in advance is determined once, at the start. When a request uses the same
 * handle again, there are only comparisons (docs/internals/handles.md has the figures).
 */
#include "connections/handles.h"
#include "connections/driver_methods.h"
#include "connections/exchanges.h"
#include "connections/handle_endings.h"
#include "connections/handle_frames.h"
#include "connections/handle_kinds.h"
#include "connections/handle_uses.h"
#include "connections/in_use.h"
#include "connections/iterators.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_extensions.h"

typedef struct {
	zif_handler handler;     /* its own */
	surus_handle_kind *kind; /* of a method */
	surus_way way;
	surus_step step;
	/* For SURUS_BY_ARGUMENT: the last class of an argument, one of an extension, and its kind. */
	const zend_class_entry *seen;
	surus_handle_kind *seen_kind;
} guarded_function;

typedef surus_used_handle used;

/* The index of our data in zend_internal_function.reserved. */
static int slot = -1;

static inline guarded_function *guarded_of(const zend_function *function)
{
	return function->internal_function.reserved[slot];
}

/* The handle that a call of a function with a wrapper uses. */
static inline bool find_used(guarded_function *function, const zend_execute_data *frame, used *what)
{
	const zval *first = ZEND_CALL_ARG(frame, 1);
	if (function->way == SURUS_BY_OBJECT) {
		if (Z_TYPE(frame->This) != IS_OBJECT) {
			return false;
		}
		what->object = Z_OBJ(frame->This);
		what->kind = function->kind;
	} else if (!ZEND_CALL_NUM_ARGS(frame)) {
		return false;
	} else if (function->way == SURUS_BY_RESOURCE) {
		return Z_TYPE_P(first) == IS_RESOURCE && surus_used_resource(first, what);
	} else if (Z_TYPE_P(first) == IS_OBJECT && Z_OBJCE_P(first) == function->seen) {
		what->object = Z_OBJ_P(first);
		what->kind = function->seen_kind;
	} else {
		bool found = surus_used_in_frame(frame, what);
		if (found && function->way == SURUS_BY_ARGUMENT && Z_TYPE_P(first) == IS_OBJECT && Z_OBJ_P(first) == what->object && what->object->ce->type == ZEND_INTERNAL_CLASS) {
			function->seen = what->object->ce;
			function->seen_kind = what->kind;
		}
		return found;
	}
	what->number = 0;
	what->is_kept = false;
	what->handle = surus_handle_of(what->kind, what->object);
	return what->handle;
}

const zend_execute_data *surus_use_in(surus_task *task, const void *handle)
{
	for (const zend_execute_data *frame = task->frame; frame; frame = frame->prev_execute_data) {
		used what;
		if (frame->func && frame->func->type == ZEND_INTERNAL_FUNCTION && surus_used_in_frame(frame, &what) && what.handle == handle) {
			return frame;
		}
	}
	return NULL;
}

/* What a request has begun, all of its tasks may go on with, one after the other. */
static bool is_of_same_request(surus_task *one, surus_task *other)
{
	return one && surus_request_of(one) == surus_request_of(other);
}

/* True if no other request is using the handle, and no other task of this one; else it throws. */
static bool is_free(const surus_use *known, surus_task *task, const used *what, surus_step step)
{
	surus_handle_kind *kind = what->kind;
	bool is_over = !known->task && !known->is_broken;
	if (is_over || known->task == task || (kind->is_of_all && kind->is_of_all(what->handle))) {
		return true;
	}
	const zend_execute_data *frame = known->task ? surus_use_in(known->task, what->handle) : NULL;
	const char *begun = NULL;
	if (is_of_same_request(known->task, task) && !frame) {
		return true;
	}
	if (known->task && !frame && known->phase != SURUS_IDLE && kind->open) {
		begun = kind->open(known, step);
	}
	if (known->task && !frame && !begun && kind->begun) {
		task->is_asking = true;
		begun = kind->begun(what->object);
		task->is_asking = false;
	}
	if (known->task && !frame && !begun) {
		return !EG(exception);
	}
	surus_throw_in_use(what->object ? ZSTR_VAL(what->object->ce->name) : "A stream", known->task, frame, begun);
	return false;
}

/* The task begins to use a handle that it was not the last to use. NULL, with an exception: another one is using it. */
static surus_use *take(surus_task *task, const used *what, surus_step step)
{
	surus_handle_kind *kind = what->kind;
	if (UNEXPECTED(!kind->is_watched)) {
		surus_watch_end(what->object, kind);
	}
	surus_use *known = surus_use_find(what->handle);
	/* Each request has another resource for a persistent stream. */
	if (known && known->number != what->number && !(known->is_kept && what->is_kept)) {
		surus_use_forget(known); /* it is closed */
		known = NULL;
	}
	if (known && !is_free(known, task, what, step)) {
		return NULL;
	}
	if (known && known->task && known->task != task && step == SURUS_USES && known->phase != SURUS_IDLE) {
		return known; /* who only looks does not take it over */
	}
	if (known && known->object && known->kind->end && !kind->end) {
		surus_use_pass(known, task); /* and still by the object that ends what is begun */
	} else if (!known || known->task != task || known->object != what->object) {
		bool mixes = step == SURUS_ASKS && known && known->task && known->phase == SURUS_ASKED
			&& !is_of_same_request(known->task, task);
		bool is_mixed = kind->close && known && (known->is_mixed || mixes);
		known = surus_use_note(what->handle, task, what->object, kind);
		known->is_mixed = is_mixed;
		known->number = what->number;
		known->is_kept = what->is_kept;
	}
	return known;
}

/* The same for an exchange that belongs to an object, not to its connection. */
static surus_use *take_apart(surus_task *task, const used *what, zend_object *object, surus_step step)
{
	const surus_use *known = surus_use_find(object);
	bool is_others = known && known->task && !is_of_same_request(known->task, task);
	const char *begun = is_others ? what->kind->open(known, step) : NULL;
	if (begun) {
		surus_throw_in_use(ZSTR_VAL(what->object->ce->name), known->task, NULL, begun);
		return NULL;
	}
	if (known && !known->task && known->phase != SURUS_IDLE && step == SURUS_READS) {
		surus_throw_executed_since(ZSTR_VAL(what->object->ce->name));
		return NULL;
	}
	return surus_use_note(object, task, object, surus_handle_kind_of(object));
}

static const surus_phase after[]
	= {[SURUS_PREPARES] = SURUS_PREPARED, [SURUS_ASKS] = SURUS_ASKED, [SURUS_READS] = SURUS_HEARD, [SURUS_CLOSES] = SURUS_IDLE};

/* The last call that was allowed, and its rows: of the handle, and of the object's own exchange, if there is one. The
 * next call of the same request on the same object is allowed at once if no row has changed meanwhile. */
static struct {
	surus_task *task;
	const void *handle;
	const zend_object *object;
	uint64_t changes;
	int number;
	surus_use *use, *exchange;
} last;

static inline bool is_last(const surus_task *task, const used *what)
{
	return last.handle == what->handle && last.task == task && last.object == what->object
		&& last.changes == surus_use_changes && last.number == what->number;
}

static inline bool is_apart(const used *what, surus_step step)
{
	return step != SURUS_USES && what->kind->is_apart;
}

static void note_last(surus_task *task, const used *what, surus_use *use, surus_use *exchange)
{
	if (!exchange && is_last(task, what)) {
		return;
	}
	last.task = task;
	/* A task that only looks at a handle of another one is checked each time. */
	last.handle = use->task == task ? what->handle : NULL;
	last.object = use->task == task ? what->object : NULL;
	last.number = what->number;
	last.changes = surus_use_changes;
	last.use = use;
	last.exchange = exchange;
}

/* Checks a call that differs from the last one. Returns the row of the exchange that it continues; NULL: an exception
 * was thrown. */
static zend_never_inline surus_use *claim_new(surus_task *task, const used *what, surus_step step)
{
	surus_use *use = surus_use_find(what->handle);
	bool is_own = what->kind->is_watched && use && use->task == task && use->number == what->number
		&& (use->kind == what->kind || use->kind->end || !what->kind->end);
	if (UNEXPECTED(use && use->freeing && use->freeing != task)) {
		surus_throw_in_use(what->object ? ZSTR_VAL(what->object->ce->name) : "A stream", (surus_task *)use->freeing, NULL,
			"the end of a statement");
		return NULL;
	}
	if (UNEXPECTED(!is_own) && !(use = take(task, what, step))) {
		return NULL;
	}
	surus_use *exchange = NULL;
	zend_object *object = !is_apart(what, step) ? NULL : what->kind->part_of ? what->kind->part_of(what->object) : what->object;
	if (object) {
		exchange = surus_use_find(object);
		if (UNEXPECTED(!exchange || exchange->task != task) && !(exchange = take_apart(task, what, object, step))) {
			return NULL;
		}
	}
	note_last(task, what, use, exchange);
	return exchange ? exchange : use;
}

static inline surus_use *claim(surus_task *task, const used *what, surus_step step)
{
	surus_use *known = !is_last(task, what) ? NULL : is_apart(what, step) ? last.exchange : last.use;
	return EXPECTED(known) ? known : claim_new(task, what, step);
}

static inline bool is_guarded(const surus_task *task)
{
	return task && surus_has_neighbours(task) && !task->is_asking;
}

bool surus_handle_claim(zend_object *object, surus_step step)
{
	surus_task *task = surus_running;
	if (!is_guarded(task)) {
		return true;
	}
	used what = {.object = object, .kind = surus_handle_kind_of(object)};
	what.handle = what.kind ? surus_handle_of(what.kind, object) : NULL;
	surus_use *use = what.handle ? claim(task, &what, step) : NULL;
	if (use && what.kind->open) {
		use->phase = after[step];
	}
	return use || !what.handle;
}

static zend_never_inline ZEND_NAMED_FUNCTION(guarded_new)
{
	const guarded_function *function = guarded_of(EX(func));
	surus_task *task = surus_running;
	used what;
	if (is_guarded(task) && find_used(guarded_of(EX(func)), execute_data, &what)) {
		surus_use *use = claim(task, &what, function->step);
		if (UNEXPECTED(!use)) {
			RETURN_THROWS();
		}
		if (function->step != SURUS_USES && what.kind->open) {
			use->phase = after[function->step];
		}
	}
	function->handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* The fast path of guarded_new: a method that uses the same object as the last call. */
static ZEND_NAMED_FUNCTION(guarded)
{
	const guarded_function *function = guarded_of(EX(func));
	zend_object *object = Z_OBJ(EX(This));
	if (UNEXPECTED(last.object != object || last.task != surus_running || last.changes != surus_use_changes
			|| function->way != SURUS_BY_OBJECT || last.handle != surus_handle_of(function->kind, object))) {
		guarded_new(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	if (function->step != SURUS_USES && function->kind->open) {
		surus_use *use = function->kind->is_apart ? last.exchange : last.use;
		if (UNEXPECTED(!use)) {
			guarded_new(INTERNAL_FUNCTION_PARAM_PASSTHRU);
			return;
		}
		use->phase = after[function->step];
	}
	function->handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static bool has_got(const zval *result)
{
	switch (Z_TYPE_P(result)) {
		case IS_STRING:
			return Z_STRLEN_P(result) > 0;
		case IS_LONG:
			return Z_LVAL_P(result) > 0;
		default:
			return Z_TYPE_P(result) == IS_ARRAY;
	}
}

/* An answer that may belong to any of several requests is given to none: throws and closes the connection. */
static bool is_nobodys(surus_use *use, surus_step step)
{
	if (!use || !use->is_mixed || step != SURUS_READS) {
		return false;
	}
	surus_throw_mixed(use->object ? ZSTR_VAL(use->object->ce->name) : "A stream");
	use->kind->close(use->handle);
	use->is_mixed = !use->is_kept; /* another one may be where a persistent one was */
	return true;
}

/* Many requests may accept connections from one listening socket, and no row tells of them. PHP uses its stream again
 * when they go on, so it must not be freed; other waits for the descriptor end with an error (blocking/closing.rs). */
static bool is_waited_for(const surus_task *task, const used *what)
{
	int descriptor = what->object ? -1 : surus_descriptor_of_stream((php_stream *)what->handle);
	surus_task *waiter = NULL;
	for (size_t i = 0; descriptor >= 0 && (waiter = surus_rs_waiter_of(descriptor, i)); i++) {
		const zend_execute_data *frame = waiter != task ? surus_use_in(waiter, what->handle) : NULL;
		if (frame) {
			surus_throw_in_use("A stream", waiter, frame, NULL);
			return true;
		}
	}
	return false;
}

/* Streams and sockets: only the application knows which calls belong together. In modes without guarded requests only
 * persistent streams are recorded, for the next request that gets them. */
static zend_never_inline ZEND_NAMED_FUNCTION(guarded_line_new)
{
	guarded_function *function = guarded_of(EX(func));
	surus_task *task = surus_running;
	surus_step step = function->step;
	used what = {0};
	surus_use *use = NULL;
	if (is_guarded(task) && find_used(function, execute_data, &what)) {
		use = claim(task, &what, step);
		if (UNEXPECTED(!use || is_nobodys(use, step) || (step == SURUS_CLOSES && is_waited_for(task, &what)))) {
			RETURN_THROWS();
		}
	} else if (task && !surus_has_neighbours(task) && function->way == SURUS_BY_RESOURCE && find_used(function, execute_data, &what) && what.is_kept) {
		use = surus_use_find(what.handle);
		use = use ? use : surus_use_note(what.handle, NULL, NULL, what.kind);
		use->is_kept = true;
		task = NULL;
		if (UNEXPECTED(is_nobodys(use, step))) {
			RETURN_THROWS();
		}
	}
	/* The request may be sent before the function returns. */
	if (use && (step == SURUS_ASKS || step == SURUS_CLOSES)) {
		use->phase = after[step];
	}
	function->handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (use && step == SURUS_READS) {
		use = surus_use_find(what.handle);
		if (use && use->task == task && use->phase == SURUS_ASKED) {
			if (has_got(return_value)) {
				use->phase = SURUS_HEARD;
			} else {
				use->kind->wants(what.handle);
			}
		}
	}
}

/* The fast path of guarded_line_new: a function that uses the same stream as the last call, and does not wait for the
 * first answer. */
static ZEND_NAMED_FUNCTION(guarded_line)
{
	const guarded_function *function = guarded_of(EX(func));
	const zval *first = ZEND_CALL_ARG(execute_data, 1);
	bool goes_on = function->way == SURUS_BY_RESOURCE && last.handle && last.task == surus_running && last.changes == surus_use_changes
		&& ZEND_CALL_NUM_ARGS(execute_data) && Z_TYPE_P(first) == IS_RESOURCE && Z_RES_P(first)->ptr == last.handle
		&& (int)Z_RES_P(first)->handle == last.number && !last.object && function->step <= SURUS_READS
		&& last.use->phase != SURUS_ASKED;
	if (UNEXPECTED(!goes_on)) {
		guarded_line_new(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	if (function->step == SURUS_ASKS) {
		last.use->phase = SURUS_ASKED;
	}
	function->handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void guard(zend_internal_function *function, surus_way way, surus_handle_kind *kind, surus_step step)
{
	if (!function->handler || function->handler == guarded || function->handler == guarded_line) {
		return;
	}
	guarded_function *ours = pemalloc(sizeof *ours, true);
	*ours = (guarded_function){.handler = function->handler, .kind = kind, .way = way, .step = step};
	function->reserved[slot] = ours;
	function->handler = way == SURUS_BY_RESOURCE || way == SURUS_BY_SOCKET ? guarded_line : guarded;
}

void surus_handles_start(void)
{
	surus_uses_start();
	slot = zend_get_resource_handle("Surus");
	if (slot >= 0) {
		surus_driver_methods_start();
		surus_handle_functions(guard);
		surus_iterators_start();
	}
}
