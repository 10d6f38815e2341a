/* Methods of PDO that only one driver has: PDO::pgsqlCopyFromArray(), PDO::sqliteCreateFunction(). They are in no
 * class: PDO asks the driver for them, for each connection. The driver's list is replaced by a copy whose functions
 * are wrapped like those of the class. */
#include "connections/driver_methods.h"
#include "connections/handles.h"
#include "persistent/kept.h"

#include "ext/pdo/php_pdo.h"
#include "ext/pdo/php_pdo_driver.h"

/* A driver has two structs of methods: its own, and the one of persistent connections (persistent/dead.c). */
#define STRUCTS 16

typedef struct {
	const struct pdo_dbh_methods *before;
	struct pdo_dbh_methods ours;
	const zend_function_entry *own; /* what the driver has answered */
	zend_function_entry *wrapped;
} driver_methods;

static driver_methods structs[STRUCTS];

static driver_methods *methods_of(const struct pdo_dbh_methods *methods)
{
	for (size_t i = 0; i < STRUCTS; i++) {
		if (!structs[i].before || structs[i].before == methods || &structs[i].ours == methods) {
			return &structs[i];
		}
	}
	return NULL;
}

static zif_handler handler_of(const pdo_dbh_t *handle, const zend_string *name)
{
	const driver_methods *known = methods_of(handle->methods);
	const zend_function_entry *own = known ? known->own : NULL;
	while (own && own->fname && !zend_string_equals_cstr(name, own->fname, strlen(own->fname))) {
		own++;
	}
	return own && own->fname ? own->handler : NULL;
}

static ZEND_NAMED_FUNCTION(guarded_method)
{
	const pdo_dbh_t *handle = Z_TYPE(EX(This)) == IS_OBJECT ? php_pdo_dbh_fetch_inner(Z_OBJ(EX(This))) : NULL;
	zif_handler handler = handle ? handler_of(handle, EX(func)->common.function_name) : NULL;
	if (handler && surus_handle_claim(Z_OBJ(EX(This)), SURUS_USES)) {
		handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	}
}

static zend_function_entry *wrapped_copy(const zend_function_entry *own)
{
	size_t count = 0;
	while (own[count].fname) {
		count++;
	}
	zend_function_entry *copy = pecalloc(count + 1, sizeof *own, true);
	for (size_t i = 0; i < count; i++) {
		copy[i] = own[i];
		copy[i].handler = guarded_method;
	}
	return copy;
}

static const zend_function_entry *list(pdo_dbh_t *handle, int kind)
{
	driver_methods *known = methods_of(handle->methods);
	const zend_function_entry *own = known->before->get_driver_methods(handle, kind);
	if (!own || kind != PDO_DBH_DRIVER_METHOD_KIND_DBH) {
		return own;
	}
	if (known->own != own) {
		known->own = own;
		known->wrapped = wrapped_copy(own);
	}
	return known->wrapped;
}

static void wrap(zend_object *object)
{
	pdo_dbh_t *handle = php_pdo_dbh_fetch_inner(object);
	const struct pdo_dbh_methods *now = handle ? handle->methods : NULL;
	driver_methods *known = now && now->get_driver_methods && now->get_driver_methods != list ? methods_of(now) : NULL;
	if (known) {
		known->before = now;
		known->ours = *now;
		known->ours.get_driver_methods = list;
		handle->methods = &known->ours;
	}
}

static zif_handler real_construct, real_connect;

static ZEND_NAMED_FUNCTION(around_construct)
{
	real_construct(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	wrap(Z_OBJ_P(ZEND_THIS));
}

/* PDO::connect() of PHP 8.4. */
static ZEND_NAMED_FUNCTION(around_connect)
{
	real_connect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		wrap(Z_OBJ_P(return_value));
	}
}

void surus_driver_methods_start(void)
{
	real_construct = surus_replace("pdo", "__construct", around_construct);
	real_connect = surus_replace("pdo", "connect", around_connect);
}
