/* Builds objects from validated input: no json_decode, no arrays in between, no reflection.
 *
 * A constructor that only promotes its parameters is not called: its properties are written at their places, as its
 * opcodes would. What that looks like is read from the opcodes at boot. Any other constructor is called. */
#include "hydrate.h"

#include "Zend/zend_attributes.h"
#include "Zend/zend_enum.h"
#include "Zend/zend_exceptions.h"
#include "Zend/zend_interfaces.h"

enum { OF_OBJECT, OF_ENUM, OF_DATE, OF_FILE };

typedef struct {
	zend_class_entry *class;
	int kind;
	uint32_t count;       /* parameters, or cases */
	uint32_t *offsets;    /* of the property that a parameter is promoted to; NULL: the constructor is called */
	zval *defaults;       /* with `offsets`: literals and constant expressions, owned by the constructor */
	zend_property_info **properties; /* with `offsets` */
	zend_object **cases;  /* of an enum, owned by its class */
} hydrated;

struct surus_hydrator {
	uint32_t slot;  /* which input of the route */
	zval rules;     /* a Surus\Schema\Rules, or null */
	uint32_t count;
	hydrated classes[];
};

/* ---- boot ---- */

static const zend_op *default_of(const zend_op_array *constructor, uint32_t parameter)
{
	for (const zend_op *op = constructor->opcodes, *end = op + constructor->last; op < end; op++) {
		if (op->opcode == ZEND_RECV_INIT && op->op1.num == parameter + 1) {
			return op;
		}
	}
	return NULL;
}

/* Notes which property each parameter is promoted to. False if the constructor does anything else. */
static bool only_promotes(const zend_op_array *constructor, hydrated *to)
{
	uint32_t promoted = 0;
	for (const zend_op *op = constructor->opcodes, *end = op + constructor->last; op < end; op++) {
		switch (op->opcode) {
			case ZEND_NOP:
			case ZEND_RECV:
			case ZEND_RECV_INIT:
			case ZEND_EXT_STMT:
			case ZEND_EXT_NOP:
			case ZEND_RETURN:
				break;
			case ZEND_ASSIGN_OBJ: {
				const zend_op *data = op + 1;
				if (op->op1_type != IS_UNUSED || op->op2_type != IS_CONST || op->result_type != IS_UNUSED || data->op1_type != IS_CV) {
					return false;
				}
				uint32_t parameter = EX_VAR_TO_NUM(data->op1.var);
				zend_string *name = Z_STR_P(RT_CONSTANT(op, op->op2));
				zend_property_info *property = zend_hash_find_ptr(&constructor->scope->properties_info, name);
				if (parameter >= to->count || to->properties[parameter] || !property || property->flags & ZEND_ACC_STATIC
					|| !(property->flags & ZEND_ACC_PROMOTED) || !SURUS_IS_PLAIN_PROPERTY(property)) {
					return false;
				}
				to->properties[parameter] = property;
				to->offsets[parameter] = property->offset;
				promoted++;
				op = data;
				break;
			}
			default:
				return false;
		}
	}
	return promoted == to->count;
}

static bool prepare_object(hydrated *to, char *error, size_t error_size)
{
	const zend_function *constructor = to->class->constructor;
	if (!constructor || constructor->type != ZEND_USER_FUNCTION) {
		snprintf(error, error_size, "%s has no constructor of its own", ZSTR_VAL(to->class->name));
		return false;
	}
	const zend_op_array *code = &constructor->op_array;
	to->count = code->num_args;
	to->offsets = calloc(to->count + 1, sizeof *to->offsets);
	to->properties = calloc(to->count + 1, sizeof *to->properties);
	to->defaults = calloc(to->count + 1, sizeof *to->defaults);
	if (!only_promotes(code, to)) {
		free(to->offsets);
		to->offsets = NULL;
		return true;
	}
	for (uint32_t i = 0; i < to->count; i++) {
		const zend_op *op = default_of(code, i);
		if (op) {
			ZVAL_COPY_VALUE(&to->defaults[i], RT_CONSTANT(op, op->op2));
		}
	}
	return true;
}

static bool prepare_enum(hydrated *to, HashTable *names)
{
	to->count = zend_hash_num_elements(names);
	to->cases = calloc(to->count + 1, sizeof *to->cases);
	uint32_t i = 0;
	zval *name;
	ZEND_HASH_FOREACH_VAL(names, name) {
		to->cases[i++] = zend_enum_get_case(to->class, Z_STR_P(name));
	} ZEND_HASH_FOREACH_END();
	return !EG(exception);
}

static bool prepare_class(hydrated *to, HashTable *native, char *error, size_t error_size)
{
	zval *name = zend_hash_index_find(native, 0), *kind = zend_hash_index_find(native, 1), *cases = zend_hash_index_find(native, 2);
	to->class = zend_lookup_class(Z_STR_P(name));
	if (!to->class) {
		snprintf(error, error_size, "there is no class %s", Z_STRVAL_P(name));
		return false;
	}
	if (zend_string_equals_literal(Z_STR_P(kind), "enum")) {
		to->kind = OF_ENUM;
		return prepare_enum(to, Z_ARRVAL_P(cases));
	}
	to->kind = OF_OBJECT;
	if (zend_string_equals_literal(Z_STR_P(kind), "date")) {
		to->kind = OF_DATE;
	} else if (zend_string_equals_literal(Z_STR_P(kind), "file")) {
		to->kind = OF_FILE;
	}
	return to->kind != OF_OBJECT || prepare_object(to, error, error_size);
}

static bool starts_with(const zend_string *text, const char *prefix)
{
	return strncmp(ZSTR_VAL(text), prefix, strlen(prefix)) == 0;
}

static bool ends_with(const zend_string *text, const char *suffix)
{
	size_t length = strlen(suffix);
	return ZSTR_LEN(text) >= length && memcmp(ZSTR_VAL(text) + ZSTR_LEN(text) - length, suffix, length) == 0;
}

/* Where a parameter's attributes (#[Body], #[Form], #[Query]) say that its value comes from. */
static int declared_source(const zend_function *function, uint32_t i)
{
	int source = 0;
	zend_attribute *attribute;
	if (!function->common.attributes) {
		return 0;
	}
	ZEND_HASH_FOREACH_PTR(function->common.attributes, attribute) {
		if (attribute->offset == i + 1 && starts_with(attribute->lcname, "surus\\")) {
			source |= ends_with(attribute->lcname, "\\body") ? SURUS_FROM_JSON : 0;
			source |= ends_with(attribute->lcname, "\\form") ? SURUS_FROM_FORM : 0;
			source |= ends_with(attribute->lcname, "\\query") ? SURUS_FROM_QUERY : 0;
		}
	} ZEND_HASH_FOREACH_END();
	return source;
}

static bool has_schema_attribute(HashTable *attributes)
{
	zend_attribute *attribute;
	if (attributes) {
		ZEND_HASH_FOREACH_PTR(attributes, attribute) {
			if (starts_with(attribute->lcname, "surus\\schema\\")) {
				return true;
			}
		} ZEND_HASH_FOREACH_END();
	}
	return false;
}

/* A class whose own attributes, or those of its constructor's parameters, are of Surus\Schema. */
static bool is_input_class(const zend_class_entry *class)
{
	return class->type == ZEND_USER_CLASS && class->constructor
		&& (has_schema_attribute(class->attributes) || has_schema_attribute(class->constructor->common.attributes));
}

static bool has_no_body(const char *methods)
{
	return strcmp(methods, "GET") == 0 || strcmp(methods, "HEAD") == 0 || strcmp(methods, "DELETE") == 0 || strcmp(methods, "GET,HEAD") == 0;
}

/* The text of the exception that a call at boot has thrown, which is then over. */
static void take_exception(char *error, size_t error_size)
{
	zval place;
	zend_object *exception = EG(exception);
	if (!exception) {
		return;
	}
	GC_ADDREF(exception);
	zend_clear_exception();
	zval *message = zend_read_property(exception->ce, exception, "message", sizeof "message" - 1, true, &place);
	snprintf(error, error_size, "%s", Z_TYPE_P(message) == IS_STRING ? Z_STRVAL_P(message) : ZSTR_VAL(exception->ce->name));
	OBJ_RELEASE(exception);
}

/* Below a call at boot: without a frame there an exception would be a fatal error at once. */
static zend_function boot_function = {ZEND_INTERNAL_FUNCTION};

/* Calls Surus\Schema\Boot::input(). */
static bool describe(zend_string *class, zval *described, char *error, size_t error_size)
{
	zend_string *name = zend_string_init("Surus\\Schema\\Boot", sizeof "Surus\\Schema\\Boot" - 1, false);
	zend_execute_data bottom = {.func = &boot_function}, *before = EG(current_execute_data);
	EG(current_execute_data) = &bottom;
	zend_class_entry *boot = zend_lookup_class(name);
	zend_string_release(name);
	ZVAL_UNDEF(described);
	if (boot) {
		zval argument;
		ZVAL_STR_COPY(&argument, class);
		zend_call_method_with_1_params(NULL, boot, NULL, "input", described, &argument);
		zval_ptr_dtor(&argument);
	}
	bool good = !EG(exception) && Z_TYPE_P(described) == IS_ARRAY;
	if (!good) {
		snprintf(error, error_size, "%s cannot be described", ZSTR_VAL(class));
		take_exception(error, error_size);
		zval_ptr_dtor(described);
	}
	EG(current_execute_data) = before;
	return good;
}

surus_input_kind surus_hydrator_make(void *exchange, int64_t route, const char *methods, const zend_function *function, uint32_t i,
	surus_hydrator **result, char *error, size_t error_size)
{
	zend_type type = function->common.arg_info[i].type;
	int source = declared_source(function, i);
	if (function->type != ZEND_USER_FUNCTION || !ZEND_TYPE_IS_COMPLEX(type) || !ZEND_TYPE_HAS_NAME(type)) {
		return SURUS_NO_INPUT;
	}
	zend_class_entry *class = zend_lookup_class(ZEND_TYPE_NAME(type));
	if (!class || (!source && !is_input_class(class))) {
		return SURUS_NO_INPUT;
	}
	if (!source) {
		source = has_no_body(methods) ? SURUS_FROM_QUERY : SURUS_FROM_JSON;
	}
	zval described;
	if (!describe(class->name, &described, error, error_size)) {
		return SURUS_INPUT_WRONG;
	}
	HashTable *parts = Z_ARRVAL(described);
	zval *json = zend_hash_index_find(parts, 0), *natives = zend_hash_index_find(parts, 1), *rules = zend_hash_index_find(parts, 2);
	int slot = surus_rs_add_input(exchange, route, source, (surus_str){Z_STRVAL_P(json), Z_STRLEN_P(json)}, error, error_size);
	surus_hydrator *hydrator = NULL;
	if (slot >= 0) {
		uint32_t count = zend_hash_num_elements(Z_ARRVAL_P(natives));
		hydrator = calloc(1, sizeof *hydrator + count * sizeof(hydrated));
		hydrator->slot = (uint32_t)slot;
		ZVAL_COPY(&hydrator->rules, rules);
		zval *native;
		ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(natives), native) {
			if (!prepare_class(&hydrator->classes[hydrator->count++], Z_ARRVAL_P(native), error, error_size)) {
				take_exception(error, error_size);
				surus_hydrator_free(hydrator);
				hydrator = NULL;
				break;
			}
		} ZEND_HASH_FOREACH_END();
	}
	zval_ptr_dtor(&described);
	*result = hydrator;
	return hydrator ? SURUS_INPUT : SURUS_INPUT_WRONG;
}

bool surus_take_messages(void *exchange)
{
	zval json;
	zend_class_entry *messages = zend_hash_str_find_ptr(EG(class_table), ZEND_STRL("surus\\schema\\messages"));
	if (!messages) {
		return true;
	}
	ZVAL_UNDEF(&json);
	zend_call_method_with_0_params(NULL, messages, NULL, "json", &json);
	bool good = !EG(exception) && Z_TYPE(json) == IS_STRING && surus_rs_add_messages(exchange, (surus_str){Z_STRVAL(json), Z_STRLEN(json)});
	zval_ptr_dtor(&json);
	return good;
}

bool surus_make_openapi(void *exchange, zval *app)
{
	if (!surus_rs_wants_openapi(exchange)) {
		return true;
	}
	zend_string *name = zend_string_init(ZEND_STRL("Surus\\Schema\\OpenApi"), false);
	zend_execute_data bottom = {.func = &boot_function}, *before = EG(current_execute_data);
	EG(current_execute_data) = &bottom;
	zend_class_entry *class = zend_lookup_class(name);
	zend_string_release(name);
	zval text;
	ZVAL_UNDEF(&text);
	if (class) {
		zend_call_method_with_1_params(NULL, class, NULL, "of", &text, app);
	}
	EG(current_execute_data) = before;
	bool good = !EG(exception) && Z_TYPE(text) == IS_STRING;
	if (good) {
		surus_rs_take_openapi(exchange, (surus_str){Z_STRVAL(text), Z_STRLEN(text)});
	}
	zval_ptr_dtor(&text);
	return good;
}

void surus_hydrator_free(surus_hydrator *hydrator)
{
	if (!hydrator) {
		return;
	}
	zval_ptr_dtor(&hydrator->rules);
	for (uint32_t i = 0; i < hydrator->count; i++) {
		free(hydrator->classes[i].offsets);
		free(hydrator->classes[i].defaults);
		free(hydrator->classes[i].properties);
		free(hydrator->classes[i].cases);
	}
	free(hydrator);
}

/* ---- requests ---- */

typedef struct {
	const surus_hydrator *hydrator;
	surus_input input;
	size_t at;
} reader;

static bool build(reader *from, zval *to);

static void text_of(const reader *from, const surus_cell *cell, zval *to)
{
	const char *text = from->input.text[cell->source] + cell->bits;
	ZVAL_STRINGL_FAST(to, text, cell->len);
}

static bool build_list(reader *from, uint32_t count, zval *to)
{
	array_init_size(to, count);
	zend_hash_real_init_packed(Z_ARRVAL_P(to));
	for (uint32_t i = 0; i < count; i++) {
		zval item;
		if (!build(from, &item)) {
			return false;
		}
		zend_hash_next_index_insert_new(Z_ARRVAL_P(to), &item);
	}
	return true;
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

/* As the promotions of the constructor would. */
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

/* A Surus\Http\UploadedFile whose content is in memory. */
static bool build_file(reader *from, const surus_cell *cell, zval *to)
{
	zval arguments[6];
	if (object_init_ex(to, from->hydrator->classes[cell->class_index].class) != SUCCESS) {
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
	const hydrated *class = &from->hydrator->classes[cell->class_index];
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

/* The value that begins at `from->at`, which then is behind it. After false an exception is on its way; `to` is nothing
 * that needs to be freed. */
static bool build(reader *from, zval *to)
{
	const surus_cell *cell = &from->input.cells[from->at++];
	bool good = true;
	switch (cell->kind) {
		case SURUS_CELL_FALSE:
			ZVAL_FALSE(to);
			return true;
		case SURUS_CELL_TRUE:
			ZVAL_TRUE(to);
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
		case SURUS_CELL_STRING:
			text_of(from, cell, to);
			return true;
		case SURUS_CELL_ENUM:
			ZVAL_OBJ_COPY(to, from->hydrator->classes[cell->class_index].cases[cell->bits]);
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

/* Asks the rules that are written in PHP. False: an exception was thrown. */
static bool ask_rules(const surus_hydrator *hydrator, void *exchange, zval *object)
{
	zval found, rules;
	ZVAL_UNDEF(&found);
	ZVAL_COPY(&rules, &hydrator->rules);
	zend_call_method_with_1_params(Z_OBJ(rules), Z_OBJCE(rules), NULL, "check", &found, object);
	zval_ptr_dtor(&rules);
	bool good = !EG(exception) && Z_TYPE(found) != IS_STRING;
	if (!EG(exception) && !good) {
		surus_rs_refuse_input(exchange, hydrator->slot, (surus_str){Z_STRVAL(found), Z_STRLEN(found)});
		surus_input_is_refused(exchange);
	}
	zval_ptr_dtor(&found);
	return good;
}

bool surus_hydrate(const surus_hydrator *hydrator, void *exchange, zval *to)
{
	reader from = {.hydrator = hydrator};
	ZVAL_UNDEF(to);
	if (!surus_rs_input(exchange, hydrator->slot, &from.input)) {
		zend_throw_error(NULL, "The request has no valid input");
		return false;
	}
	if (!build(&from, to)) {
		return false;
	}
	if (Z_TYPE(hydrator->rules) == IS_OBJECT && !ask_rules(hydrator, exchange, to)) {
		zval_ptr_dtor(to);
		ZVAL_UNDEF(to);
		return false;
	}
	return true;
}
