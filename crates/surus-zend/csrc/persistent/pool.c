/* Pools of persistent connections, which the requests of a coroutine application use in turn.
 *
 * PHP keeps them in EG(persistent_list), by address and user, and each request gets the same one: there is one request
 * at a time. Here each request has its own list. An idle connection is in no list, only in its pool; it is put into the
 * list of a request that needs one, before PHP searches there, and removed when that request has ended and the
 * connection is clean.
 *
 * A request that uses a database has a place in its pool until the request ends, whatever happens to its connections.
 * The number of places is the limit of open connections. Only a request that has a place and finds no idle connection
 * opens a new one, so there are never more connections than places. */
#include "persistent/pool.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_smart_str.h"

#include <time.h>

/* On the stack of the request that waits. */
typedef struct waiter {
	struct waiter *next;
	uint64_t ticket;
	bool called; /* a place is its */
} waiter;

typedef struct {
	zend_resource *connection;
	time_t opened, since;
	surus_kept_list parts; /* each has a reference to its key */
} idle_one;

typedef struct surus_pool {
	struct surus_pool *next;
	struct surus_pool *next_of_all;
	const surus_pool_kind *kind;
	zend_string *name; /* what the constructor was called with */
	zend_string *key;  /* PHP's own, once it is known */
	unsigned in_use; /* places */
	unsigned idle, room;
	idle_one *ones; /* the last one used at the end */
	waiter *first;
	unsigned waiting;
	uint64_t resets, dropped, closed; /* returned clean, not returned, closed for their age */
} pool;

static surus_persistent_settings settings = {.places = 16, .patience = 10, .max_idle = 60};
/* Of all isolates. */
static pool *all_pools;

void surus_persistent_set(const surus_persistent_settings *to)
{
	settings = *to;
	if (!settings.places) {
		settings.places = UINT_MAX;
	}
}

bool surus_pool_figure(size_t index, surus_pool_figures *to)
{
	const pool *one = all_pools;
	while (one && index--) {
		one = one->next_of_all;
	}
	if (!one) {
		return false;
	}
	*to = (surus_pool_figures){
		.kind = {one->kind->label, strlen(one->kind->label)},
		.name = {ZSTR_VAL(one->name), ZSTR_LEN(one->name)},
		.max = settings.places == UINT_MAX ? 0 : settings.places,
		.idle = one->idle,
		.in_use = one->in_use,
		.waiting = one->waiting,
		.resets = one->resets,
		.dropped = one->dropped,
		.closed = one->closed,
	};
	return true;
}

static time_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return time.tv_sec;
}

static surus_task *user(void)
{
	surus_task *task = surus_request_of(surus_running);
	return task && task->fiber && task->isolate->connections ? task : NULL;
}

/* ---- names ---- */

surus_pool_name surus_pool_name_of(const surus_pool_kind *kind, const zend_execute_data *execute_data, uint32_t first, uint32_t last)
{
	surus_pool_name name = {.kind = kind};
	for (uint32_t i = first; i <= last && name.count < SURUS_POOL_NAMES; i++) {
		name.names[name.count++] = i <= ZEND_NUM_ARGS() ? ZEND_CALL_ARG(execute_data, i) : NULL;
	}
	return name;
}

/* PHP treats 1 and "1" as equal. */
static zend_string *text_of(const surus_pool_name *name)
{
	smart_str text = {NULL, 0};
	for (size_t i = 0; i < name->count; i++) {
		const zval *value = name->names[i];
		zend_string *part = value && Z_TYPE_P(value) > IS_FALSE && Z_TYPE_P(value) <= IS_STRING
			? zval_get_string((zval *)value)
			: ZSTR_EMPTY_ALLOC();
		size_t length = ZSTR_LEN(part);
		smart_str_appendl_ex(&text, (const char *)&length, sizeof length, true);
		smart_str_append_ex(&text, part, true);
		zend_string_release(part);
	}
	smart_str_0(&text);
	return text.s;
}

static pool *pool_of(surus_isolate *isolate, const surus_pool_name *name)
{
	zend_string *text = text_of(name);
	pool *found = isolate->pools;
	while (found && (found->kind != name->kind || !zend_string_equals(found->name, text))) {
		found = found->next;
	}
	if (found || !(found = calloc(1, sizeof *found))) {
		zend_string_release(text);
		return found;
	}
	*found = (pool){.next = isolate->pools, .next_of_all = all_pools, .kind = name->kind, .name = text};
	return isolate->pools = all_pools = found;
}

static bool has_place(const surus_task *task, const pool *in)
{
	for (unsigned i = 0; i < task->pool_count; i++) {
		if (task->pools[i] == in) {
			return true;
		}
	}
	return false;
}

/* ---- places ---- */

static void give_place(pool *to)
{
	waiter *next = to->first;
	if (next) {
		to->first = next->next;
		next->called = true;
		surus_rs_call_ticket(next->ticket);
	} else {
		to->in_use--;
	}
}

static bool wait_for_place(pool *in)
{
	waiter own = {.ticket = surus_rs_ticket()};
	waiter **last = &in->first;
	while (*last) {
		last = &(*last)->next;
	}
	*last = &own;
	in->waiting++;
	int waited = surus_rs_wait_for_call(own.ticket, settings.patience);
	in->waiting--;
	if (own.called) {
		if (waited == 1) {
			return true;
		}
		/* It got a place at the moment when the request had to end or the time was over. */
		give_place(in);
		return false;
	}
	for (waiter **at = &in->first; *at; at = &(*at)->next) {
		if (*at == &own) {
			*at = own.next;
			break;
		}
	}
	return false;
}

/* ---- connections ---- */

static void into_list(zend_string *key, zend_resource *connection)
{
	zval entry;
	ZVAL_RES(&entry, connection);
	zend_hash_update(&EG(persistent_list), key, &entry);
}

static void lend_parts(idle_one *one)
{
	for (size_t i = 0; i < one->parts.count; i++) {
		into_list(one->parts.entries[i].key, one->parts.entries[i].resource);
		zend_string_release(one->parts.entries[i].key);
	}
	surus_kept_free(&one->parts);
}

static void lend(const pool *of, idle_one *one)
{
	into_list(of->key, one->connection);
	lend_parts(one);
}

/* Removes the entry without closing the connection. */
static void out_of_list(zend_string *key)
{
	HashTable *list = &EG(persistent_list);
	dtor_func_t close = list->pDestructor;
	list->pDestructor = NULL;
	zend_hash_del(list, key);
	list->pDestructor = close;
}

static bool take_back(const pool *of, time_t opened, idle_one *one)
{
	zend_resource *connection = of->key ? zend_hash_find_ptr(&EG(persistent_list), of->key) : NULL;
	if (!connection || connection->type != of->kind->type) {
		return false;
	}
	*one = (idle_one){.connection = connection, .opened = opened, .since = now()};
	if (of->kind->parts) {
		one->parts = of->kind->parts(connection);
	}
	for (size_t i = 0; i < one->parts.count; i++) {
		zend_string_addref(one->parts.entries[i].key);
		out_of_list(one->parts.entries[i].key);
	}
	out_of_list(of->key);
	return true;
}

static void close_one(const pool *of, idle_one *one)
{
	lend(of, one);
	zend_hash_del(&EG(persistent_list), of->key);
}

static bool is_too_old(time_t opened)
{
	return settings.max_age && now() - opened >= (time_t)settings.max_age;
}

static bool is_unused(const pool *of, const idle_one *one)
{
	return settings.max_idle && of->idle > settings.min_idle && now() - one->since >= (time_t)settings.max_idle;
}

/* Removes it from the pool first: a driver may wait while it closes, and other requests use the pool meanwhile. */
static void close_at(pool *of, unsigned index)
{
	idle_one one = of->ones[index];
	memmove(of->ones + index, of->ones + index + 1, (--of->idle - index) * sizeof *of->ones);
	of->closed++;
	close_one(of, &one);
}

/* Those at the beginning are unused for the longest time. */
static void close_old(pool *of)
{
	while (of->idle && (is_unused(of, of->ones) || is_too_old(of->ones[0].opened))) {
		close_at(of, 0);
	}
}

static void give_back(pool *to, idle_one *one)
{
	if (to->idle == to->room) {
		unsigned room = to->room ? 2 * to->room : 4;
		idle_one *more = realloc(to->ones, room * sizeof *more);
		if (!more) {
			close_one(to, one);
			return;
		}
		to->ones = more;
		to->room = room;
	}
	to->ones[to->idle++] = *one;
}

/* ---- a request ---- */

bool surus_pool_enter(const surus_pool_name *name)
{
	surus_task *task = user();
	if (!task) {
		return true;
	}
	pool *of = pool_of(task->isolate, name);
	if (!of || has_place(task, of) || task->pool_count == SURUS_HELD_POOLS) {
		return true; /* what it has it uses again */
	}
	if (of->in_use < settings.places) {
		of->in_use++;
	} else if (!surus_can_park()) {
		return true; /* nothing can wait here: one more */
	} else if (!wait_for_place(of)) {
		return false;
	} else if (has_place(task, of) || task->pool_count == SURUS_HELD_POOLS) {
		give_place(of); /* another job of the request has got one meanwhile */
		return true;
	}
	unsigned place = task->pool_count++;
	task->pools[place] = of;
	task->pool_opened[place] = now();
	while (of->idle && !zend_hash_exists(&EG(persistent_list), of->key)) {
		idle_one *last = &of->ones[of->idle - 1];
		if (is_too_old(last->opened) || is_unused(of, last)) {
			close_at(of, of->idle - 1);
			continue;
		}
		task->pool_opened[place] = last->opened;
		of->idle--;
		lend(of, last);
	}
	return true;
}

static bool is_of_another(const pool *pools, const zend_string *key, int type)
{
	while (pools && !(pools->key && pools->kind->type == type && zend_string_equals(pools->key, key))) {
		pools = pools->next;
	}
	return pools != NULL;
}

void surus_pool_entered(const surus_pool_name *name, const void *handle)
{
	surus_task *task = user();
	pool *of = task ? pool_of(task->isolate, name) : NULL;
	if (!of || of->key) {
		return;
	}
	zend_string *key;
	zend_resource *resource;
	ZEND_HASH_FOREACH_STR_KEY_PTR(&EG(persistent_list), key, resource) {
		if (key && resource->type == name->kind->type
			&& (handle ? resource->ptr == handle : !is_of_another(task->isolate->pools, key, resource->type))) {
			of->key = zend_string_copy(key);
			break;
		}
	} ZEND_HASH_FOREACH_END();
}

void surus_pool_leave(surus_task *task, bool clean)
{
	while (task->pool_count) {
		pool *of = task->pools[--task->pool_count];
		idle_one one;
		if (!clean || !take_back(of, (time_t)task->pool_opened[task->pool_count], &one)) {
			of->dropped++;
		} else if (is_too_old(one.opened)) {
			of->resets++;
			of->closed++;
			close_one(of, &one);
		} else {
			of->resets++;
			give_back(of, &one);
		}
		give_place(of);
		if (clean && of->idle) {
			close_old(of);
		}
	}
}

/* Each gets a unique name: connections of one pool have the same key. */
static void end_one(idle_one *one)
{
	char key[64];
	zval entry;
	ZVAL_RES(&entry, one->connection);
	int length = snprintf(key, sizeof key, "surus: idle %p", (void *)one->connection);
	lend_parts(one);
	zend_hash_str_update(&EG(persistent_list), key, (size_t)length, &entry);
}

void surus_pool_end(surus_isolate *isolate)
{
	pool *one;
	while ((one = isolate->pools)) {
		isolate->pools = one->next;
		for (pool **at = &all_pools; *at; at = &(*at)->next_of_all) {
			if (*at == one) {
				*at = one->next_of_all;
				break;
			}
		}
		for (unsigned i = 0; i < one->idle; i++) {
			end_one(&one->ones[i]);
		}
		if (one->key) {
			zend_string_release(one->key);
		}
		zend_string_release(one->name);
		free(one->ones);
		free(one);
	}
}

void surus_pool_timeout(const char *class)
{
	static const char text[] = "No persistent connection to this server became free within %g s: %u are in use, each until "
		"the end of its request (persistent_connections)";
	zend_class_entry *found = class ? zend_hash_str_find_ptr(CG(class_table), class, strlen(class)) : NULL;
	if (EG(exception)) {
		return;
	}
	if (found) {
		zend_throw_exception_ex(found, 0, text, settings.patience, settings.places);
	} else {
		php_error_docref(NULL, E_WARNING, text, settings.patience, settings.places);
	}
}
