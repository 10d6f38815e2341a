/* At boot: determines how the objects of input are built. Whether a constructor only promotes its parameters is read
 * from its opcodes. */
#include "base.h"
#include "http/hydrate.h"
#include "http/hydrator.h"

#include "Zend/zend_enum.h"
#include "Zend/zend_exceptions.h"
#include "Zend/zend_interfaces.h"

static const zend_op *default_of(const zend_op_array *constructor, uint32_t parameter)
{
	for (const zend_op *op = constructor->opcodes, *end = op + constructor->last; op < end; op++) {
		if (op->opcode == ZEND_RECV_INIT && op->op1.num == parameter + 1) {
			return op;
		}
	}
	return NULL;
}

/* Records to which property each parameter is promoted. False if the constructor does anything else. */
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

/* Copies the message of the exception that a call at boot has thrown, and clears it. */
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

/* The function of the frame below a call at boot: without a frame an exception would be a fatal error at once. */
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

surus_hydrator *surus_hydrator_make(void *exchange, int64_t route, zend_string *class, int source, char *error, size_t error_size)
{
	zval described;
	if (!describe(class, &described, error, error_size)) {
		return NULL;
	}
	HashTable *parts = Z_ARRVAL(described);
	zval *json = zend_hash_index_find(parts, 0), *natives = zend_hash_index_find(parts, 1), *rules = zend_hash_index_find(parts, 2);
	int slot = surus_rs_add_input(exchange, route, source, surus_bytes_of(Z_STR_P(json)), error, error_size);
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
	return hydrator;
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
	bool good = !EG(exception) && Z_TYPE(json) == IS_STRING && surus_rs_add_messages(exchange, surus_bytes_of(Z_STR(json)));
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
		surus_rs_take_openapi(exchange, surus_bytes_of(Z_STR(text)));
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
