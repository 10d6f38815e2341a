/* Searches backwards: for the variable, static property or object that holds the object, and for what holds that one. */
#include "snapshot/holders.h"

#include "Zend/zend_closures.h"
#include "Zend/zend_smart_str.h"

/* Of objects in each other, and of arrays in arrays. */
#define MOST_OBJECTS 16
#define MOST_ARRAYS 6

/* The path within a value: "['key'][0]"; prepended to `path` as it is found. */
static bool holds(zval *value, const zend_object *object, int depth, smart_str *keys)
{
	ZVAL_DEINDIRECT(value);
	ZVAL_DEREF(value);
	if (Z_TYPE_P(value) == IS_OBJECT) {
		return Z_OBJ_P(value) == object;
	}
	if (Z_TYPE_P(value) != IS_ARRAY || depth == MOST_ARRAYS || GC_IS_RECURSIVE(Z_ARRVAL_P(value))) {
		return false;
	}
	zend_ulong number;
	zend_string *key;
	zval *element;
	size_t before = keys->s ? ZSTR_LEN(keys->s) : 0;
	ZEND_HASH_FOREACH_KEY_VAL(Z_ARRVAL_P(value), number, key, element) {
		if (key) {
			smart_str_append_printf(keys, "['%s']", ZSTR_VAL(key));
		} else {
			smart_str_append_printf(keys, "[" ZEND_ULONG_FMT "]", number);
		}
		if (holds(element, object, depth + 1, keys)) {
			return true;
		}
		ZSTR_LEN(keys->s) = before;
	} ZEND_HASH_FOREACH_END();
	return false;
}

static bool in_globals(const zend_object *object, smart_str *path)
{
	zend_string *name;
	zval *value;
	ZEND_HASH_FOREACH_STR_KEY_VAL(&EG(symbol_table), name, value) {
		smart_str keys = {0};
		if (name && holds(value, object, 0, &keys)) {
			smart_str_append_printf(path, "$%s", ZSTR_VAL(name));
			smart_str_append_smart_str(path, &keys);
			smart_str_free(&keys);
			return true;
		}
		smart_str_free(&keys);
	} ZEND_HASH_FOREACH_END();
	return false;
}

static bool in_statics_of(zend_class_entry *class, const zend_object *object, smart_str *path)
{
	zval *statics = class->default_static_members_count ? CE_STATIC_MEMBERS(class) : NULL;
	zend_string *name;
	zend_property_info *info;
	if (!statics) {
		return false;
	}
	ZEND_HASH_FOREACH_STR_KEY_PTR(&class->properties_info, name, info) {
		smart_str keys = {0};
		if ((info->flags & ZEND_ACC_STATIC) && holds(&statics[info->offset], object, 0, &keys)) {
			smart_str_append_printf(path, "%s::$%s", ZSTR_VAL(class->name), ZSTR_VAL(name));
			smart_str_append_smart_str(path, &keys);
			smart_str_free(&keys);
			return true;
		}
		smart_str_free(&keys);
	} ZEND_HASH_FOREACH_END();
	return false;
}

/* A variable that a function declares as static. */
static bool in_function(const zend_function *function, const zend_object *object, smart_str *path)
{
	if (function->type != ZEND_USER_FUNCTION || !function->op_array.static_variables) {
		return false;
	}
	HashTable *variables = ZEND_MAP_PTR_GET(function->op_array.static_variables_ptr);
	zend_string *name;
	zval *value;
	if (!variables) {
		return false;
	}
	ZEND_HASH_FOREACH_STR_KEY_VAL(variables, name, value) {
		smart_str keys = {0};
		if (holds(value, object, 0, &keys)) {
			const zend_class_entry *scope = function->common.scope;
			smart_str_append_printf(path, "static $%s", ZSTR_VAL(name));
			smart_str_append_smart_str(path, &keys);
			smart_str_append_printf(path, " of %s%s%s()", scope ? ZSTR_VAL(scope->name) : "", scope ? "::" : "",
				function->common.function_name ? ZSTR_VAL(function->common.function_name) : "");
			smart_str_free(&keys);
			return true;
		}
		smart_str_free(&keys);
	} ZEND_HASH_FOREACH_END();
	return false;
}

static bool in_functions(HashTable *functions, const zend_object *object, smart_str *path)
{
	zend_function *function;
	ZEND_HASH_FOREACH_PTR(functions, function) {
		if (in_function(function, object, path)) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

static bool in_roots(const zend_object *object, smart_str *path)
{
	if (in_globals(object, path) || in_functions(EG(function_table), object, path)) {
		return true;
	}
	zend_class_entry *class;
	ZEND_HASH_FOREACH_PTR(EG(class_table), class) {
		if (class->type == ZEND_USER_CLASS && (in_statics_of(class, object, path) || in_functions(&class->function_table, object, path))) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

static bool in_properties(zend_object *holder, const zend_object *object, smart_str *name)
{
	zend_string *key;
	zend_property_info *info;
	ZEND_HASH_FOREACH_STR_KEY_PTR(&holder->ce->properties_info, key, info) {
		if ((info->flags & ZEND_ACC_STATIC) || !IS_VALID_PROPERTY_OFFSET((int32_t)info->offset)) {
			continue;
		}
		smart_str keys = {0};
		bool found = holds(OBJ_PROP(holder, info->offset), object, 0, &keys);
		if (found) {
			smart_str_append_printf(name, "->%s", ZSTR_VAL(key));
			smart_str_append_smart_str(name, &keys);
		}
		smart_str_free(&keys);
		if (found) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

/* What an object refers to in another way: the variables of a closure, the elements of a collection. */
static bool is_seen_by_collector(zend_object *holder, const zend_object *object)
{
	zval *values = NULL;
	int count = 0;
	if (!holder->handlers->get_gc) {
		return false;
	}
	HashTable *table = holder->handlers->get_gc(holder, &values, &count);
	smart_str keys = {0};
	bool found = false;
	for (int i = 0; i < count && !found; i++) {
		found = holds(&values[i], object, 0, &keys);
	}
	if (table && !found) {
		zval all;
		ZVAL_ARR(&all, table);
		found = holds(&all, object, 0, &keys);
	}
	smart_str_free(&keys);
	return found;
}

static zend_object *holder_of(const zend_object *object, smart_str *name)
{
	zend_object *found = NULL;
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *other = EG(objects_store).object_buckets[i];
		if (!IS_OBJ_VALID(other) || other == object) {
			continue;
		}
		if (in_properties(other, object, name)) {
			return other;
		}
		if (!found && is_seen_by_collector(other, object)) {
			found = other;
		}
	}
	return found;
}

/* `name` is the path from `holder` on. */
static void prepend(smart_str *path, const smart_str *name)
{
	smart_str both = {0};
	smart_str_append_smart_str(&both, name);
	smart_str_append_smart_str(&both, path);
	smart_str_free(path);
	*path = both;
}

zend_string *surus_path_to(const zend_object *object)
{
	smart_str path = {0};
	for (int i = 0; i < MOST_OBJECTS; i++) {
		smart_str start = {0};
		if (in_roots(object, &start)) {
			prepend(&path, &start);
			smart_str_free(&start);
			break;
		}
		zend_object *holder = holder_of(object, &start);
		if (!holder) {
			if (i == 0) {
				smart_str_appends(&path, "what the script has returned, or a handler");
			} else {
				smart_str_append_printf(&start, "(%s)", ZSTR_VAL(object->ce->name));
				prepend(&path, &start);
			}
			smart_str_free(&start);
			break;
		}
		if (!start.s) {
			smart_str_append_printf(&start, "{%s}", ZSTR_VAL(holder->ce->name));
		}
		prepend(&path, &start);
		smart_str_free(&start);
		object = holder;
	}
	return smart_str_extract(&path);
}
