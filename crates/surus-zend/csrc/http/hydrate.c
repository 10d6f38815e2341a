/* Builds objects from validated input: no json_decode, no intermediate arrays, no reflection.
 *
 * A constructor that only promotes its parameters is not called: its properties are written directly, as its opcodes
 * would do. Any other constructor is called. */
#include "http/hydrate.h"
#include "http/hydrator.h"

#include "Zend/zend_exceptions.h"
#include "Zend/zend_interfaces.h"

typedef struct {
	const surus_hydrator *hydrator;
	surus_input input;
	size_t at;
} reader;

static inline void text_of(const reader *from, const surus_cell *cell, zval *to)
{
	const char *text = from->input.text[cell->source] + cell->bits;
	ZVAL_STRINGL_FAST(to, text, cell->len);
}

static bool build_other(reader *from, const surus_cell *cell, zval *to);

/* Builds the value at `from->at` and moves `from->at` behind it. After false an exception is pending, and `to` need not
 * be freed. */
static inline bool build(reader *from, zval *to)
{
	const surus_cell *cell = &from->input.cells[from->at++];
	switch (cell->kind) {
		case SURUS_CELL_STRING:
			text_of(from, cell, to);
			return true;
		case SURUS_CELL_INTEGER:
			ZVAL_LONG(to, (zend_long)cell->bits);
			return true;
		case SURUS_CELL_NUMBER: {
			double number;
			memcpy(&number, &cell->bits, sizeof number);
			ZVAL_DOUBLE(to, number);
			return true;
		}
		default:
			return build_other(from, cell, to);
	}
}

static bool build_list(reader *from, uint32_t count, zval *to)
{
	array_init_size(to, count);
	zend_hash_real_init_packed(Z_ARRVAL_P(to));
	bool good = true;
	ZEND_HASH_FILL_PACKED(Z_ARRVAL_P(to)) {
		for (uint32_t i = 0; good && i < count; i++) {
			zval item;
			good = build(from, &item);
			if (good) {
				ZEND_HASH_FILL_ADD(&item);
			}
		}
	} ZEND_HASH_FILL_END();
	return good;
}

static bool build_map(reader *from, uint32_t count, zval *to)
{
	array_init_size(to, count);
	for (uint32_t i = 0; i < count; i++) {
		zval key, item;
		text_of(from, &from->input.cells[from->at++], &key);
		bool good = build(from, &item);
		if (good) {
			zend_symtable_update(Z_ARRVAL_P(to), Z_STR(key), &item);
		}
		zval_ptr_dtor_str(&key);
		if (!good) {
			return false;
		}
	}
	return true;
}

static bool default_value(const hydrated *class, uint32_t i, zval *to)
{
	ZVAL_COPY(to, &class->defaults[i]);
	if (EXPECTED(Z_TYPE_P(to) != IS_CONSTANT_AST)) {
		return true;
	}
	/* A constant expression, evaluated each time as the constructor would: it may be a `new`. */
	if (zval_update_constant_ex(to, class->properties[i]->ce) != SUCCESS
		|| (ZEND_TYPE_IS_SET(class->properties[i]->type) && !zend_verify_property_type(class->properties[i], to, true))) {
		zval_ptr_dtor(to);
		ZVAL_UNDEF(to);
		return false;
	}
	return true;
}

/* Sets the properties as the promotions of the constructor would. */
static bool write_properties(reader *from, const hydrated *class, zend_object *object)
{
	for (uint32_t i = 0; i < class->count; i++) {
		zval value;
		if (from->input.cells[from->at].kind == SURUS_CELL_DEFAULT) {
			from->at++;
			if (!default_value(class, i, &value)) {
				return false;
			}
		} else if (!build(from, &value)) {
			return false;
		}
		zval *property = OBJ_PROP(object, class->offsets[i]);
		ZVAL_COPY_VALUE(property, &value);
		Z_PROP_FLAG_P(property) = 0;
	}
	return true;
}

static bool call_constructor(zend_object *object, uint32_t count, zval *arguments)
{
	/* A parameter without a value gets its default. */
	while (count && Z_ISUNDEF(arguments[count - 1])) {
		count--;
	}
	zend_call_known_function(object->ce->constructor, object, object->ce, NULL, count, arguments, NULL);
	return !EG(exception);
}

static bool build_arguments(reader *from, const hydrated *class, zend_object *object)
{
	zval few[16], *arguments = class->count <= 16 ? few : safe_emalloc(class->count, sizeof(zval), 0);
	uint32_t built = 0;
	bool good = true;
	for (; good && built < class->count; built++) {
		ZVAL_UNDEF(&arguments[built]);
		if (from->input.cells[from->at].kind == SURUS_CELL_DEFAULT) {
			from->at++;
		} else {
			good = build(from, &arguments[built]);
		}
	}
	good = good && call_constructor(object, built, arguments);
	for (uint32_t i = 0; i < built; i++) {
		zval_ptr_dtor(&arguments[i]);
	}
	if (arguments != few) {
		efree(arguments);
	}
	return good;
}

/* Builds a Surus\Http\UploadedFile whose content is in memory. */
static bool build_file(reader *from, const surus_cell *cell, zval *to)
{
	zval arguments[6];
	if (object_init_ex(to, from->hydrator->classes[cell->class].class) != SUCCESS) {
		ZVAL_UNDEF(to);
		return false;
	}
	ZVAL_EMPTY_STRING(&arguments[0]); /* it has no path yet */
	text_of(from, &from->input.cells[from->at++], &arguments[1]);
	text_of(from, &from->input.cells[from->at++], &arguments[2]);
	ZVAL_LONG(&arguments[3], cell->len);
	ZVAL_LONG(&arguments[4], 0); /* UPLOAD_ERR_OK */
	text_of(from, cell, &arguments[5]);
	bool good = call_constructor(Z_OBJ_P(to), 6, arguments);
	for (size_t i = 0; i < 6; i++) {
		zval_ptr_dtor(&arguments[i]);
	}
	return good;
}

static bool build_object(reader *from, const surus_cell *cell, zval *to)
{
	const hydrated *class = &from->hydrator->classes[cell->class];
	if (object_init_ex(to, class->class) != SUCCESS) {
		ZVAL_UNDEF(to);
		return false;
	}
	bool good;
	if (class->kind == OF_DATE) {
		zval text;
		text_of(from, cell, &text);
		good = call_constructor(Z_OBJ_P(to), 1, &text);
		zval_ptr_dtor_str(&text);
	} else if (class->offsets) {
		good = write_properties(from, class, Z_OBJ_P(to));
	} else {
		good = build_arguments(from, class, Z_OBJ_P(to));
	}
	if (!good) {
		zend_object_store_ctor_failed(Z_OBJ_P(to));
	}
	return good;
}

/* Builds values other than text and numbers. */
static bool build_other(reader *from, const surus_cell *cell, zval *to)
{
	bool good = true;
	switch (cell->kind) {
		case SURUS_CELL_FALSE:
			ZVAL_FALSE(to);
			return true;
		case SURUS_CELL_TRUE:
			ZVAL_TRUE(to);
			return true;
		case SURUS_CELL_ENUM:
			ZVAL_OBJ_COPY(to, from->hydrator->classes[cell->class].cases[cell->bits]);
			return true;
		case SURUS_CELL_LIST:
			good = build_list(from, cell->len, to);
			break;
		case SURUS_CELL_MAP:
			good = build_map(from, cell->len, to);
			break;
		case SURUS_CELL_FILE:
			good = build_file(from, cell, to);
			break;
		case SURUS_CELL_OBJECT:
		case SURUS_CELL_PARSED:
			good = build_object(from, cell, to);
			break;
		default:
			ZVAL_NULL(to);
			return true;
	}
	if (!good) {
		zval_ptr_dtor(to);
		ZVAL_UNDEF(to);
	}
	return good;
}

bool surus_input_is_refused(void *exchange)
{
	surus_refusal refusal;
	if (!surus_rs_refusal(exchange, &refusal)) {
		return false;
	}
	zval exception, arguments[3];
	zend_string *name = zend_string_init(ZEND_STRL("Surus\\Schema\\InvalidInput"), false);
	zend_class_entry *class = zend_lookup_class(name);
	zend_string_release(name);
	if (!class || object_init_ex(&exception, class) != SUCCESS) {
		return true;
	}
	ZVAL_LONG(&arguments[0], refusal.status);
	ZVAL_STRINGL(&arguments[1], refusal.text.ptr, refusal.text.len);
	ZVAL_STRINGL(&arguments[2], refusal.accepted.ptr, refusal.accepted.len);
	zend_call_known_function(class->constructor, Z_OBJ(exception), class, NULL, 3, arguments, NULL);
	zval_ptr_dtor(&arguments[1]);
	zval_ptr_dtor(&arguments[2]);
	if (EG(exception)) {
		zval_ptr_dtor(&exception);
	} else {
		zend_throw_exception_object(&exception);
	}
	return true;
}

/* Which parameters have their defaults in the value at `from->at`, which is moved behind it: true for such a parameter;
 * for an object, a list or a map that contains some, an array with the same information about its items, by position or
 * key. UNDEF: none. */
static void defaults_in(reader *from, zval *to)
{
	const surus_cell *cell = &from->input.cells[from->at++];
	ZVAL_UNDEF(to);
	uint32_t count = 0;
	switch (cell->kind) {
		case SURUS_CELL_DEFAULT:
			ZVAL_TRUE(to);
			return;
		case SURUS_CELL_FILE:
			from->at += 2;
			return;
		case SURUS_CELL_LIST:
		case SURUS_CELL_MAP:
			count = cell->len;
			break;
		case SURUS_CELL_OBJECT:
			count = from->hydrator->classes[cell->class].count;
			break;
		default:
			return;
	}
	for (uint32_t i = 0; i < count; i++) {
		zval key, inner;
		ZVAL_LONG(&key, i);
		if (cell->kind == SURUS_CELL_MAP) {
			text_of(from, &from->input.cells[from->at++], &key);
		}
		defaults_in(from, &inner);
		if (!Z_ISUNDEF(inner)) {
			if (Z_ISUNDEF_P(to)) {
				array_init(to);
			}
			array_set_zval_key(Z_ARRVAL_P(to), &key, &inner);
			zval_ptr_dtor(&inner);
		}
		zval_ptr_dtor(&key);
	}
}

/* Checks the input with the rules that are written in PHP. */
static surus_hydrated ask_rules(const reader *input, void *exchange, zval *services, zval *object)
{
	const surus_hydrator *hydrator = input->hydrator;
	reader from = {.hydrator = hydrator, .input = input->input};
	zval found, rules, arguments[3];
	ZVAL_UNDEF(&found);
	ZVAL_COPY_VALUE(&arguments[0], object);
	defaults_in(&from, &arguments[1]);
	if (Z_TYPE(arguments[1]) != IS_ARRAY) {
		ZVAL_EMPTY_ARRAY(&arguments[1]);
	}
	ZVAL_COPY_VALUE(&arguments[2], services);
	ZVAL_COPY(&rules, &hydrator->rules);
	zend_function *check = zend_hash_str_find_ptr(&Z_OBJCE(rules)->function_table, "check", sizeof "check" - 1);
	zend_call_known_function(check, Z_OBJ(rules), Z_OBJCE(rules), &found, 3, arguments, NULL);
	zval_ptr_dtor(&rules);
	zval_ptr_dtor(&arguments[1]);
	surus_hydrated result = SURUS_HYDRATED;
	if (EG(exception)) {
		result = SURUS_HYDRATE_THREW;
	} else if (Z_TYPE(found) == IS_STRING) {
		surus_rs_refuse_input(exchange, hydrator->slot, surus_bytes_of(Z_STR(found)));
		result = SURUS_HYDRATED_BROKEN;
	}
	zval_ptr_dtor(&found);
	return result;
}

surus_hydrated surus_hydrate(const surus_hydrator *hydrator, void *exchange, zval *services, zval *to)
{
	reader from = {.hydrator = hydrator};
	ZVAL_UNDEF(to);
	if (!surus_rs_input(exchange, hydrator->slot, &from.input)) {
		zend_throw_error(NULL, "The request has no valid input");
		return SURUS_HYDRATE_THREW;
	}
	if (!build(&from, to)) {
		return SURUS_HYDRATE_THREW;
	}
	surus_hydrated result = Z_TYPE(hydrator->rules) == IS_OBJECT ? ask_rules(&from, exchange, services, to) : SURUS_HYDRATED;
	if (result == SURUS_HYDRATE_THREW) {
		zval_ptr_dtor(to);
		ZVAL_UNDEF(to);
	}
	return result;
}
