/* Persistent connections that the requests of a coroutine application use in turn.
 *
 * PHP keeps them in EG(persistent_list), by address and user, and gives one to all who ask: there is one request at a time.
 * Here each request has a list of its own. An idle connection is in none of them but here; it is put into the list of the
 * request that asks for one, before PHP looks there, and taken out when that request has ended and the connection is clean.
 *
 * A request that uses a database has a place in its pool until it ends, whatever becomes of its connections; as many
 * places as may be open are given. A new connection is opened only by a request that has a place and finds none idle, so
 * there are never more of them than places. */
#include "persistent/pool.h"
#include "persistent/kept.h"
#include "task/running.h"
#include "task/state.h"

#include <time.h>

/* Seconds after which an idle connection is closed, when another one comes back. */
#define MAX_IDLE 60

/* On the stack of the request that waits. */
typedef struct waiter {
	struct waiter *next;
	uint64_t ticket;
	bool called; /* a place is its */
} waiter;

typedef struct { zend_resource *connection; time_t since; } idle_one;

typedef struct surus_pool {
	struct surus_pool *next;
	zend_string *name; /* type, and what the constructor was called with */
	zend_string *key;  /* PHP's own, once it is known */
	int type;
	unsigned in_use; /* places */
	unsigned idle, room;
	idle_one *ones; /* the last one used at the end */
	waiter *first;
} pool;

static unsigned max_places = 16;
static double patience = 10;

void surus_persistent_limits(unsigned places, double seconds)
{
	max_places = places ? places : UINT_MAX;
	patience = seconds;
}

static time_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return time.tv_sec;
}

static surus_task *user(void)
{
	surus_task *task = surus_running;
	return task && task->fiber && task->isolate->connections ? task : NULL;
}

/* ---- which ---- */

static char *append(char *at, const void *bytes, size_t size)
{
	memcpy(at, bytes, size);
	return at + size;
}

static zend_string *name_of(int type, const zend_string *const *names, size_t count)
{
	size_t length = sizeof type;
	for (size_t i = 0; i < count; i++) {
		length += sizeof(size_t) + (names[i] ? ZSTR_LEN(names[i]) : 0);
	}
	zend_string *name = zend_string_alloc(length, true);
	char *at = append(ZSTR_VAL(name), &type, sizeof type);
	for (size_t i = 0; i < count; i++) {
		size_t size = names[i] ? ZSTR_LEN(names[i]) : 0;
		at = append(at, &size, sizeof size);
		at = size ? append(at, ZSTR_VAL(names[i]), size) : at;
	}
	*at = '\0';
	return name;
}

static pool *pool_of(surus_isolate *isolate, int type, const zend_string *const *names, size_t count)
{
	zend_string *name = name_of(type, names, count);
	pool *found = isolate->pools;
	while (found && !zend_string_equals(found->name, name)) {
		found = found->next;
	}
	if (found || !(found = calloc(1, sizeof *found))) {
		zend_string_release(name);
		return found;
	}
	*found = (pool){.next = isolate->pools, .name = name, .type = type};
	return isolate->pools = found;
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
	int waited = surus_rs_wait_for_call(own.ticket, patience);
	if (own.called) {
		if (waited == 1) {
			return true;
		}
		/* It came with the end of the request or of its time. */
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

/* Without closing it. */
static zend_resource *out_of_list(zend_string *key, int type)
{
	HashTable *list = &EG(persistent_list);
	zend_resource *connection = zend_hash_find_ptr(list, key);
	if (!connection || connection->type != type) {
		return NULL;
	}
	dtor_func_t close = list->pDestructor;
	list->pDestructor = NULL;
	zend_hash_del(list, key);
	list->pDestructor = close;
	return connection;
}

static void close_one(const pool *of, zend_resource *connection)
{
	into_list(of->key, connection);
	zend_hash_del(&EG(persistent_list), of->key);
}

static void close_old(pool *of)
{
	time_t oldest = now() - MAX_IDLE;
	unsigned old = 0;
	while (old < of->idle && of->ones[old].since < oldest) {
		old++;
	}
	/* Out of the pool first: a driver that says good-bye may wait, and others come meanwhile. */
	while (old--) {
		zend_resource *connection = of->ones[0].connection;
		memmove(of->ones, of->ones + 1, --of->idle * sizeof *of->ones);
		close_one(of, connection);
	}
}

static void give_back(pool *to, zend_resource *connection)
{
	if (to->idle == to->room) {
		unsigned room = to->room ? 2 * to->room : 4;
		idle_one *more = realloc(to->ones, room * sizeof *more);
		if (!more) {
			close_one(to, connection);
			return;
		}
		to->ones = more;
		to->room = room;
	}
	to->ones[to->idle++] = (idle_one){connection, now()};
}

/* ---- a request ---- */

bool surus_pool_enter(int type, const zend_string *const *names, size_t count)
{
	surus_task *task = user();
	if (!task) {
		return true;
	}
	pool *of = pool_of(task->isolate, type, names, count);
	if (!of || has_place(task, of) || task->pool_count == SURUS_HELD_POOLS) {
		return true; /* what it has it uses again */
	}
	if (of->in_use < max_places) {
		of->in_use++;
	} else if (!surus_can_park()) {
		return true; /* nothing can wait here: one more */
	} else if (!wait_for_place(of)) {
		return false;
	}
	task->pools[task->pool_count++] = of;
	if (of->idle && !zend_hash_exists(&EG(persistent_list), of->key)) {
		into_list(of->key, of->ones[--of->idle].connection);
	}
	return true;
}

void surus_pool_entered(int type, const zend_string *const *names, size_t count, const void *handle)
{
	surus_task *task = user();
	pool *of = task ? pool_of(task->isolate, type, names, count) : NULL;
	if (!of || of->key || !handle) {
		return;
	}
	zend_string *key;
	zend_resource *resource;
	ZEND_HASH_FOREACH_STR_KEY_PTR(&EG(persistent_list), key, resource) {
		if (key && resource->type == type && resource->ptr == handle) {
			of->key = zend_string_copy(key);
			break;
		}
	} ZEND_HASH_FOREACH_END();
}

void surus_pool_leave(surus_task *task, bool clean)
{
	while (task->pool_count) {
		pool *of = task->pools[--task->pool_count];
		zend_resource *connection = clean && of->key ? out_of_list(of->key, of->type) : NULL;
		if (connection) {
			give_back(of, connection);
		}
		give_place(of);
		if (clean && of->idle) {
			close_old(of);
		}
	}
}

void surus_pool_end(surus_isolate *isolate)
{
	pool *one;
	while ((one = isolate->pools)) {
		isolate->pools = one->next;
		for (unsigned i = 0; i < one->idle; i++) {
			char key[64];
			zval entry;
			ZVAL_RES(&entry, one->ones[i].connection);
			int length = snprintf(key, sizeof key, "surus: idle %p", (void *)one->ones[i].connection);
			zend_hash_str_update(&EG(persistent_list), key, (size_t)length, &entry);
		}
		if (one->key) {
			zend_string_release(one->key);
		}
		zend_string_release(one->name);
		free(one->ones);
		free(one);
	}
}

zend_string *surus_pool_timeout_message(void)
{
	return zend_strpprintf(0, "No persistent connection to this database became free within %g s: %u are in use, each until "
		"the end of its request (persistent_connections)", patience, max_places);
}
