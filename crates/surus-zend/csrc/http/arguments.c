/* Handler arguments: planned once at boot (php/core/src/Internal/Planner.php), filled per request without reflection. */
#include "http/arguments.h"
#include "http/hydrate.h"
#include "http/hydrator.h"
#include "http/request_class.h"

#include "Zend/zend_exceptions.h"
#include "Zend/zend_interfaces.h"

/* The same values as the constants of Surus\Internal\Argument. */
typedef enum { FROM_REQUEST, FROM_PATH, FROM_QUERY, FROM_HEADER, FROM_COOKIE, FROM_CALL, CONSTANT, FROM_INPUT } source;
typedef enum { TEXT, INTEGER, NUMBER, BOOLEAN, LIST } kind;

typedef struct {
	source source;
	kind kind;         /* of input: SURUS_FROM_… */
	bool required;
	uint32_t index;    /* of the path parameter */
	zend_string *name; /* of the others; the class of input */
	zval fallback;     /* where the request has no value */
	zval make;         /* from the value, or the request, to the argument; UNDEF: the value is it. Of input: to what finds services */
	zend_fcall_info_cache call;
	surus_hydrator *hydrator;
} argument;

/* On the isolate's heap, with everything that it points to. */
struct surus_plan {
	uint32_t count;
	bool has_input;
	argument arguments[];
};

static zval *field(zval *object, const char *name)
{
	zval unused;
	zval *value = zend_read_property(Z_OBJCE_P(object), Z_OBJ_P(object), name, strlen(name), true, &unused);
	ZVAL_DEREF(value);
	return value;
}

surus_plan *surus_plan_make(zval *list, void *exchange, int64_t route, char *error, size_t error_size)
{
	uint32_t count = zend_hash_num_elements(Z_ARRVAL_P(list));
	surus_plan *plan = ecalloc(1, sizeof *plan + count * sizeof(argument));
	zval *item;
	ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(list), item) {
		argument *a = &plan->arguments[plan->count++];
		a->source = (source)Z_LVAL_P(field(item, "source"));
		a->kind = (kind)Z_LVAL_P(field(item, "type"));
		a->required = zend_is_true(field(item, "required"));
		zval *key = field(item, "key");
		if (Z_TYPE_P(key) == IS_STRING) {
			a->name = zend_string_copy(Z_STR_P(key));
		} else {
			a->index = (uint32_t)Z_LVAL_P(key);
		}
		ZVAL_COPY(&a->fallback, field(item, "default"));
		zval *make = field(item, "make");
		if (Z_TYPE_P(make) == IS_OBJECT && zend_is_callable_ex(make, NULL, 0, NULL, &a->call, NULL)) {
			ZVAL_COPY(&a->make, make);
		}
		plan->has_input |= a->source == FROM_INPUT;
		if (a->source == FROM_INPUT) {
			a->hydrator = surus_hydrator_make(exchange, route, a->name, (int)a->kind, error, error_size);
			if (!a->hydrator) {
				surus_plan_free(plan);
				return NULL;
			}
		}
	} ZEND_HASH_FOREACH_END();
	return plan;
}

void surus_plan_free(surus_plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		argument *a = &plan->arguments[i];
		if (a->name) {
			zend_string_release(a->name);
		}
		zval_ptr_dtor(&a->fallback);
		zval_ptr_dtor(&a->make);
		surus_hydrator_free(a->hydrator);
	}
	efree(plan);
}

uint32_t surus_plan_count(const surus_plan *plan)
{
	return plan->count;
}

static const char *const sources[] = {"", "path parameter", "query parameter", "header", "cookie"};
static const char *const kinds[] = {"a text", "an integer", "a number", "true or false", "a list"};

void surus_throw_http(int status, zend_string *message)
{
	zend_string *name = zend_string_init("Surus\\Http\\HttpException", sizeof "Surus\\Http\\HttpException" - 1, false);
	zend_class_entry *class = zend_lookup_class(name);
	zend_string_release(name);
	zval exception, arguments[2], result;
	if (class && object_init_ex(&exception, class) == SUCCESS) {
		ZVAL_LONG(&arguments[0], status);
		ZVAL_STR(&arguments[1], message);
		zend_call_known_function(class->constructor, Z_OBJ(exception), class, &result, 2, arguments, NULL);
		zval_ptr_dtor(&result);
		zend_throw_exception_object(&exception);
	}
	zend_string_release(message);
}

/* A wrong value in the path means that there is no such page; any other error is reported to the client. */
static void refuse(const argument *a, const char *what)
{
	if (a->source == FROM_PATH) {
		surus_throw_http(404, zend_string_copy(ZSTR_EMPTY_ALLOC()));
	} else {
		surus_throw_http(400, zend_strpprintf(0, "The %s \"%s\" %s", sources[a->source], ZSTR_VAL(a->name), what));
	}
}

static bool convert(zval *to, kind kind, surus_str text)
{
	if (kind == TEXT) {
		ZVAL_STRINGL_FAST(to, text.ptr, text.len);
		return true;
	}
	zend_long integer;
	double number;
	/* The text may have no NUL at its end. */
	char copy[64];
	if (text.len == 0 || text.len >= sizeof copy) {
		return false;
	}
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	if (kind == BOOLEAN) {
		bool yes = strcmp(copy, "1") == 0 || zend_binary_strcasecmp(copy, text.len, "true", 4) == 0;
		ZVAL_BOOL(to, yes);
		return yes || strcmp(copy, "0") == 0 || zend_binary_strcasecmp(copy, text.len, "false", 5) == 0;
	}
	/* PHP allows white space around numbers; it is refused here. */
	if (!strchr("-.0123456789", copy[0]) || !strchr(".0123456789", copy[text.len - 1])) {
		return false;
	}
	zend_uchar found = is_numeric_string(copy, text.len, &integer, &number, false);
	if (kind == INTEGER && found == IS_LONG) {
		ZVAL_LONG(to, integer);
	} else if (kind == NUMBER && found) {
		ZVAL_DOUBLE(to, found == IS_LONG ? (double)integer : number);
	} else {
		return false;
	}
	return true;
}

static bool call(const argument *a, zval *parameter, zval *to)
{
	zend_fcall_info info = {.size = sizeof info, .retval = to, .params = parameter, .param_count = 1};
	zend_fcall_info_cache cache = a->call;
	ZVAL_UNDEF(&info.function_name);
	ZVAL_UNDEF(to);
	zend_call_function(&info, &cache);
	return !EG(exception);
}

/* Converts a text to the argument. */
static bool take(const argument *a, surus_str text, zval *to)
{
	if (a->kind == LIST || !convert(to, a->kind, text)) {
		char what[64];
		snprintf(what, sizeof what, "must be %s", kinds[a->kind]);
		refuse(a, what);
		return false;
	}
	if (Z_TYPE(a->make) != IS_UNDEF) {
		zval value;
		ZVAL_COPY_VALUE(&value, to);
		bool called = call(a, &value, to);
		zval_ptr_dtor(&value);
		if (called && Z_TYPE_P(to) == IS_NULL) {
			refuse(a, "is none of the possible values");
			return false;
		}
		return called;
	}
	return true;
}

static bool take_query(const argument *a, zval *request, zval *to, bool *found)
{
	zval *value = zend_symtable_find(surus_request_query(request), a->name);
	*found = value != NULL;
	if (!value) {
		return true;
	}
	ZVAL_DEREF(value);
	if (Z_TYPE_P(value) == IS_ARRAY && a->kind == LIST) {
		ZVAL_COPY(to, value);
		return true;
	}
	if (Z_TYPE_P(value) != IS_STRING) {
		return take(a, (surus_str){"", 0}, to);
	}
	return take(a, surus_bytes_of(Z_STR_P(value)), to);
}

static bool take_cookie(const argument *a, zval *request, zval *to, bool *found)
{
	zval value, name;
	ZVAL_STR(&name, a->name);
	zend_call_method_with_1_params(Z_OBJ_P(request), Z_OBJCE_P(request), NULL, "cookie", &value, &name);
	if (EG(exception)) {
		return false;
	}
	*found = Z_TYPE(value) == IS_STRING;
	bool good = !*found || take(a, surus_bytes_of(Z_STR(value)), to);
	zval_ptr_dtor(&value);
	return good;
}

/* Sets `broken` to true if the input violates rules. False: an exception was thrown. */
static bool fill_input(const argument *a, void *exchange, zval *request, zval *to, bool *broken)
{
	zval services;
	ZVAL_NULL(&services);
	if (Z_TYPE(a->make) != IS_UNDEF && !call(a, request, &services)) {
		return false;
	}
	surus_hydrated result = surus_hydrate(a->hydrator, exchange, &services, to);
	zval_ptr_dtor(&services);
	*broken |= result == SURUS_HYDRATED_BROKEN;
	return result != SURUS_HYDRATE_THREW;
}

/* As fill_input(). */
static bool fill(const argument *a, void *exchange, zval *request, zval *to, bool *broken)
{
	surus_str name, text;
	bool found = true, good = true;
	switch (a->source) {
		case FROM_REQUEST:
			ZVAL_COPY(to, request);
			return true;
		case FROM_CALL:
			return call(a, request, to);
		case CONSTANT:
			ZVAL_COPY(to, &a->fallback);
			return true;
		case FROM_INPUT:
			return fill_input(a, exchange, request, to, broken);
		case FROM_PATH:
			found = surus_rs_path_parameter(exchange, a->index, &name, &text) && text.len;
			good = !found || take(a, text, to);
			break;
		case FROM_HEADER:
			found = surus_rs_header(exchange, surus_bytes_of(a->name), &text);
			good = !found || take(a, text, to);
			break;
		case FROM_QUERY:
			good = take_query(a, request, to, &found);
			break;
		case FROM_COOKIE:
			good = take_cookie(a, request, to, &found);
			break;
	}
	if (good && !found) {
		if (a->required) {
			refuse(a, "is missing");
			return false;
		}
		ZVAL_COPY(to, &a->fallback);
	}
	return good;
}

bool surus_plan_needs_request(const surus_plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		source source = plan->arguments[i].source;
		if (source == FROM_INPUT && Z_TYPE(plan->arguments[i].make) != IS_UNDEF) {
			return true;
		}
		if (source != FROM_PATH && source != FROM_HEADER && source != CONSTANT && source != FROM_INPUT) {
			return true;
		}
	}
	return false;
}

bool surus_plan_fill(const surus_plan *plan, void *exchange, zval *request, zval *arguments)
{
	if (plan->has_input && surus_input_is_refused(exchange)) {
		return false;
	}
	/* After a violation only other input is checked, so that one response reports all violations. */
	bool good = true, broken = false;
	uint32_t filled = 0;
	for (; good && filled < plan->count; filled++) {
		const argument *a = &plan->arguments[filled];
		ZVAL_UNDEF(&arguments[filled]);
		if (!broken || a->source == FROM_INPUT) {
			good = fill(a, exchange, request, &arguments[filled], &broken);
		}
	}
	if (good && !broken) {
		return true;
	}
	/* The argument that failed need not be freed. */
	for (uint32_t i = 0; i < filled - !good; i++) {
		zval_ptr_dtor(&arguments[i]);
	}
	if (good) {
		surus_input_is_refused(exchange);
	}
	return false;
}
