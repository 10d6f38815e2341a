/* `disable_functions` and `disable_classes`: PHP would apply them while it starts. Surus applies them later, so that
 * the search for hidden state at startup (hidden/hidden.c) and the self-test have all functions, whatever a site
 * disables. Classes of which the engine itself makes objects cannot be disabled: PHP would write beyond the object that
 * it gets instead. */
#include "engine/restrictions.h"

#include "Zend/zend_closures.h"
#include "Zend/zend_exceptions.h"
#include "Zend/zend_generators.h"

/* By name: disabled functions, which are removed from the function table but not freed. */
static HashTable disabled;

static const char *const settings[] = {"disable_functions", "disable_classes"};

#define SETTINGS (sizeof settings / sizeof *settings)

static zend_string *held[SETTINGS];

static zend_ini_entry *setting(size_t i)
{
	return zend_hash_str_find_ptr(EG(ini_directives), settings[i], strlen(settings[i]));
}

void surus_restrictions_hold(void)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		zend_ini_entry *entry = setting(i);
		if (entry && entry->value && ZSTR_LEN(entry->value)) {
			held[i] = entry->value;
			entry->value = ZSTR_EMPTY_ALLOC();
		}
	}
}

/* The next name of a list, split as PHP splits it; NULL at its end. */
static const char *next_name(const char **list, size_t *length)
{
	const char *name = *list + strspn(*list, " ,");
	*length = strcspn(name, " ,");
	*list = name + *length;
	return *length ? name : NULL;
}

static void disable_functions(const char *list)
{
	HashTable *functions = CG(function_table);
	dtor_func_t destructor = functions->pDestructor;
	zend_hash_init(&disabled, 8, NULL, NULL, 1);
	functions->pDestructor = NULL;
	size_t length;
	for (const char *name; (name = next_name(&list, &length));) {
		zend_function *function = zend_hash_str_find_ptr(functions, name, length);
		if (function) {
			zend_hash_str_update_ptr(&disabled, name, length, function);
			zend_hash_str_del(functions, name, length);
		}
	}
	functions->pDestructor = destructor;
}

void surus_restrictions_lift(void)
{
	if (!held[0]) {
		return;
	}
	zend_string *name;
	zend_function *function;
	ZEND_HASH_FOREACH_STR_KEY_PTR(&disabled, name, function) {
		zend_hash_add_ptr(CG(function_table), name, function);
	} ZEND_HASH_FOREACH_END();
}

#if SURUS_HAS_DISABLE_CLASSES
/* ErrorException is only for PHP code: no C code throws it. */
static bool is_engines(const zend_class_entry *class)
{
	return (instanceof_function(class, zend_ce_throwable) && class != zend_ce_error_exception) || class == zend_ce_closure || class == zend_ce_generator;
}

static bool disable_classes(const char *list, char *error, size_t error_size)
{
	size_t length;
	for (const char *name; (name = next_name(&list, &length));) {
		zend_string *key = zend_string_init(name, length, 1), *lower = zend_string_tolower_ex(key, 1);
		zend_class_entry *class = zend_hash_find_ptr(CG(class_table), lower);
		bool good = !class || class->type != ZEND_INTERNAL_CLASS || !is_engines(class);
		if (!good) {
			snprintf(error, error_size,
				"disable_classes: PHP cannot run without the class %s, whose objects it makes itself: take it out of the list",
				ZSTR_VAL(class->name));
		} else {
			zend_disable_class(name, length);
		}
		zend_string_release(lower);
		zend_string_release(key);
		if (!good) {
			return false;
		}
	}
	return true;
}
#else
static bool disable_classes(const char *list, char *error, size_t error_size)
{
	return true; /* PHP has no such setting any more */
}
#endif

/* The JIT is off, and has not started: a handler of its settings uses what it would have made (opcache.jit_debug: SIGSEGV). */
static void hold_jit(void)
{
	zend_ini_entry *entry;
	ZEND_HASH_FOREACH_PTR(EG(ini_directives), entry) {
		if (zend_string_starts_with_literal(entry->name, "opcache.jit")) {
			entry->modifiable = ZEND_INI_SYSTEM;
		}
	} ZEND_HASH_FOREACH_END();
}

int surus_restrictions_apply(char *error, size_t error_size)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		zend_ini_entry *entry = setting(i);
		if (entry && held[i]) {
			entry->value = held[i];
		}
	}
	if (held[0]) {
		disable_functions(ZSTR_VAL(held[0]));
	}
	hold_jit();
	return !held[1] || disable_classes(ZSTR_VAL(held[1]), error, error_size) ? 0 : -1;
}
