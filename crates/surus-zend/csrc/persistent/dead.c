/* Persistent connections of PDO that turn out to be dead when a request is about to get them. PDO then drops them
 * without closing them: it calls the destructor for request resources, but they have one for persistent resources. Each
 * descriptor would stay open until the process exits. */
#include "persistent/dead.h"
#include "task/running.h"

#include "ext/pdo/php_pdo_driver.h"

typedef struct dead {
	struct dead *next;
	surus_isolate *isolate;
	pdo_dbh_t *handle; /* with a reference of this entry */
} dead;

static dead *first_dead;

/* A driver's check, and a copy of its methods in which the check is replaced. */
typedef struct {
	const pdo_driver_t *driver;
	zend_result (*check)(pdo_dbh_t *handle);
	struct pdo_dbh_methods asking;
} methods;

#define DRIVERS 8
static methods drivers[DRIVERS];

static methods *methods_of(const pdo_driver_t *driver)
{
	for (size_t i = 0; i < DRIVERS; i++) {
		if (!drivers[i].driver || drivers[i].driver == driver) {
			return &drivers[i];
		}
	}
	return NULL;
}

/* If it is dead, PDO drops it as soon as this returns, and gives the new object another one. With a reference more it stays
 * until it is looked at, whichever way PDO drops it: see `references_of_objects`. */
static zend_result ask(pdo_dbh_t *handle)
{
	zend_result result = methods_of(handle->driver)->check(handle);
	dead *one = result == FAILURE ? malloc(sizeof *one) : NULL;
	if (one) {
		handle->refcount++;
		*one = (dead){first_dead, surus_entered, handle};
		first_dead = one;
	}
	return result;
}

void surus_pdo_ask_through_us(pdo_dbh_t *handle)
{
	const struct pdo_dbh_methods *own = handle->methods;
	methods *known = own && own->check_liveness && own->check_liveness != ask ? methods_of(handle->driver) : NULL;
	if (!known) {
		return;
	}
	known->driver = handle->driver;
	known->check = own->check_liveness;
	known->asking = *own;
	known->asking.check_liveness = ask;
	handle->methods = &known->asking;
}

/* Point releases of PDO differ in what becomes of the list's reference: it stays, or is given up, or the handle is freed if
 * it was the only one. So those that count are counted, of objects that still have it. */
static unsigned references_of_objects(const pdo_dbh_t *handle)
{
	const zend_class_entry *class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("pdo"));
	unsigned count = 0;
	for (uint32_t i = 1; class && i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (IS_OBJ_VALID(object) && !(OBJ_FLAGS(object) & IS_OBJ_FREE_CALLED) && instanceof_function(object->ce, class)) {
			count += php_pdo_dbh_fetch_inner(object) == handle;
		}
	}
	return count;
}

/* Forgets one of the isolate's and returns it; NULL: there are none. One at a time: to close it may wait, and the list changes. */
static pdo_dbh_t *take_dead(const surus_isolate *isolate)
{
	dead **at = &first_dead;
	while (*at && (*at)->isolate != isolate) {
		at = &(*at)->next;
	}
	dead *one = *at;
	if (!one) {
		return NULL;
	}
	pdo_dbh_t *handle = one->handle;
	*at = one->next;
	free(one);
	return handle;
}

void surus_pdo_close_dead(int type)
{
	pdo_dbh_t *handle;
	while ((handle = take_dead(surus_entered))) {
		unsigned references = references_of_objects(handle);
		if (references) {
			handle->refcount = references; /* the last object frees it */
			continue;
		}
		/* The destructor of the list closes it. */
		zval entry;
		ZVAL_NEW_PERSISTENT_RES(&entry, -1, handle, type);
		zend_hash_str_update(&EG(persistent_list), ZEND_STRL("surus dead"), &entry);
		zend_hash_str_del(&EG(persistent_list), ZEND_STRL("surus dead"));
	}
}

static bool is_listed(const pdo_dbh_t *handle)
{
	const zend_resource *resource;
	ZEND_HASH_FOREACH_PTR(&EG(persistent_list), resource) {
		if (resource->ptr == handle) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

void surus_pdo_list_dead(void)
{
	int type = first_dead ? zend_fetch_list_dtor_id("PDO persistent database") : 0;
	pdo_dbh_t *handle;
	while (type && (handle = take_dead(surus_entered))) {
		/* All objects are gone: nobody else has it, unless PDO was interrupted before it has dropped it. */
		if (!is_listed(handle)) {
			zval entry;
			ZVAL_NEW_PERSISTENT_RES(&entry, -1, handle, type);
			zend_hash_next_index_insert(&EG(persistent_list), &entry);
		}
	}
}

void surus_pdo_forget_dead(surus_isolate *isolate)
{
	while (take_dead(isolate)) {
	}
}
