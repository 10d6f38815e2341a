/* Functions that declare(ticks) calls. PHP has two lists: one of functions in C, in which one stands for all that are
 * registered by register_tick_function(), and the list of these. Both belong to a request. */
#include "fiber/ticks.h"

#include "ext/standard/basic_functions.h"

/* The element of PHP's list. */
typedef struct {
	zend_fcall_info call;
	zend_fcall_info_cache cache;
	bool calling;
} tick_function;

surus_ticks surus_ticks_of_boot(void)
{
	return (surus_ticks){PG(tick_functions), BG(user_tick_functions)};
}

/* A copied element has the references of its origin. */
static void own_element(void *element)
{
	tick_function *function = element;
	uint32_t count = function->call.param_count;
	zval *parameters = function->call.params;
	Z_TRY_ADDREF(function->call.function_name);
	function->call.params = NULL;
	function->call.param_count = 0;
	function->calling = false;
	zend_fcall_info_argp(&function->call, count, parameters);
}

void surus_ticks_copy(const surus_ticks *from)
{
	bool is_known = !from->users || from->users->size == sizeof(tick_function);
	if (!is_known) {
		return; /* another PHP: the request has none */
	}
	zend_llist_copy(&PG(tick_functions), (zend_llist *)&from->all);
	if (from->users) {
		BG(user_tick_functions) = emalloc(sizeof(zend_llist));
		zend_llist_copy(BG(user_tick_functions), from->users);
		zend_llist_apply(BG(user_tick_functions), own_element);
	}
}

void surus_ticks_end(void)
{
	if (BG(user_tick_functions)) {
		zend_llist_destroy(BG(user_tick_functions));
		efree(BG(user_tick_functions));
		BG(user_tick_functions) = NULL;
	}
	zend_llist_clean(&PG(tick_functions));
}
