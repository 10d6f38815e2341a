/* Handler arguments: planned once at boot from the signature, filled per request without reflection. */
#include "internal.h"
#include "hydrate.h"

#include "Zend/zend_type_info.h"

typedef enum { FROM_REQUEST, FROM_PATH, FROM_INPUT } source;

typedef struct {
	source source;
	uint32_t index;    /* of the path parameter */
	zend_uchar type;   /* IS_LONG, IS_DOUBLE, _IS_BOOL or IS_STRING */
	surus_hydrator *hydrator;
} argument;

struct surus_plan {
	uint32_t count;
	argument arguments[];
};

/* The position of `name` among the pattern's parameters, or -1. */
static int path_index(const char *pattern, const char *name)
{
	int index = 0;
	size_t length = strlen(name);
	for (const char *open = strchr(pattern, '{'); open; open = strchr(open + 1, '{'), index++) {
		const char *at = open + 1;
		if (strncmp(at, name, length) == 0 && strchr(":}*?", at[length]) && at[length]) {
			return index;
		}
	}
	return -1;
}

static zend_uchar scalar_type(zend_type type)
{
	uint32_t mask = ZEND_TYPE_PURE_MASK(type);
	if (mask & MAY_BE_STRING || mask == 0) {
		return IS_STRING;
	}
	return mask & MAY_BE_LONG ? IS_LONG : mask & MAY_BE_DOUBLE ? IS_DOUBLE : mask & MAY_BE_BOOL ? _IS_BOOL : IS_STRING;
}

surus_plan *surus_plan_make(void *exchange, int64_t route, const char *methods, const zend_function *function, const char *pattern,
	char *error, size_t error_size)
{
	uint32_t declared = function->common.num_args;
	surus_plan *plan = calloc(1, sizeof *plan + declared * sizeof(argument));
	if (!plan) {
		snprintf(error, error_size, "out of memory");
		return NULL;
	}
	for (uint32_t i = 0; i < declared; i++) {
		const zend_arg_info *info = &function->common.arg_info[i];
		const char *name = function->type == ZEND_USER_FUNCTION ? ZSTR_VAL(info->name) : ((const zend_internal_arg_info *)info)->name;
		argument *a = &plan->arguments[i];
		surus_input_kind input;
		bool is_class = ZEND_TYPE_IS_COMPLEX(info->type);
		bool is_request = is_class && ZEND_TYPE_HAS_NAME(info->type)
			&& zend_string_equals_ci(ZEND_TYPE_NAME(info->type), surus_request_class->name);
		int index = path_index(pattern, name);
		if (is_request || (declared == 1 && index < 0 && !is_class && !strchr(pattern, '{'))) {
			a->source = FROM_REQUEST;
		} else if (index >= 0 && !is_class) {
			a->source = FROM_PATH;
			a->index = (uint32_t)index;
			a->type = scalar_type(info->type);
		} else if ((input = surus_hydrator_make(exchange, route, methods, function, i, &a->hydrator, error, error_size)) != SURUS_NO_INPUT) {
			a->source = FROM_INPUT;
			if (input == SURUS_INPUT_WRONG) {
				surus_plan_free(plan);
				return NULL;
			}
		} else if (i >= function->common.required_num_args) {
			/* Optional: PHP's default, and those of all behind it. */
			break;
		} else {
			const char *file = function->type == ZEND_USER_FUNCTION ? ZSTR_VAL(function->op_array.filename) : "internal";
			uint32_t line = function->type == ZEND_USER_FUNCTION ? function->op_array.line_start : 0;
			snprintf(error, error_size, "%s:%u: parameter $%s of the handler for \"%s\" is neither a path parameter nor a %s",
				file, line, name, pattern, ZSTR_VAL(surus_request_class->name));
			surus_plan_free(plan);
			return NULL;
		}
		plan->count = i + 1;
	}
	return plan;
}

void surus_plan_free(surus_plan *plan)
{
	for (uint32_t i = 0; plan && i < plan->count; i++) {
		surus_hydrator_free(plan->arguments[i].hydrator);
	}
	free(plan);
}

uint32_t surus_plan_count(const surus_plan *plan)
{
	return plan->count;
}

static bool convert(zval *to, zend_uchar type, surus_str text)
{
	if (type == IS_STRING) {
		ZVAL_STRINGL_FAST(to, text.ptr, text.len);
		return true;
	}
	zend_long integer;
	double number;
	/* The text comes from Rust without a NUL behind it. */
	char copy[64];
	if (text.len == 0 || text.len >= sizeof copy) {
		return false;
	}
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	zend_uchar found = is_numeric_string(copy, text.len, &integer, &number, false);
	if (type == IS_LONG && found == IS_LONG) {
		ZVAL_LONG(to, integer);
	} else if (type == IS_DOUBLE && found) {
		ZVAL_DOUBLE(to, found == IS_LONG ? (double)integer : number);
	} else if (type == _IS_BOOL && text.len == 1 && (copy[0] == '0' || copy[0] == '1')) {
		ZVAL_BOOL(to, copy[0] == '1');
	} else {
		return false;
	}
	return true;
}

bool surus_plan_fill(const surus_plan *plan, void *exchange, zval *request, zval *arguments)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		const argument *a = &plan->arguments[i];
		if (a->source == FROM_REQUEST) {
			if (Z_TYPE_P(request) == IS_UNDEF) {
				surus_request_object(request, exchange);
			}
			ZVAL_COPY(&arguments[i], request);
			continue;
		}
		if (a->source == FROM_INPUT && surus_hydrate(a->hydrator, exchange, &arguments[i])) {
			continue;
		}
		surus_str name, value;
		if (a->source == FROM_INPUT || !surus_rs_path_parameter(exchange, a->index, &name, &value) || !convert(&arguments[i], a->type, value)) {
			while (i-- > 0) {
				zval_ptr_dtor(&arguments[i]);
			}
			return false;
		}
	}
	return true;
}
