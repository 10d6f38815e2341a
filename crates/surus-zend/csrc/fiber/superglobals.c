/* Superglobals of coroutine isolates: built for a request only when loaded code refers to them.
 *
 * For cached code OPcache reports the use of only some of them, so the compiled code itself is scanned: after each file
 * or eval, the literals of new code are compared with the names. False positives are harmless.
 */
#include "fiber/superglobals.h"
#include "http/request_info.h"
#include "task/overflow.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_compile.h"

static const char *const names[] = {"_GET", "_POST", "_COOKIE", "_FILES", "_SERVER", "_ENV", "_REQUEST", "_SESSION"};
#define BUILT 7 /* $_SESSION is the session module's */

static zend_op_array *(*next_compile_file)(zend_file_handle *, int);
static zend_op_array *(*next_compile_string)(zend_string *, const char *, zend_compile_position);

static uint32_t scan_op_array(const zend_op_array *code)
{
	uint32_t found = 0;
	for (int i = 0; i < code->last_literal; i++) {
		const zval *literal = &code->literals[i];
		if (Z_TYPE_P(literal) != IS_STRING || Z_STRVAL_P(literal)[0] != '_' || Z_STRLEN_P(literal) > 8) {
			continue;
		}
		for (size_t n = 0; n < BUILT; n++) {
			if (strcmp(Z_STRVAL_P(literal), names[n]) == 0) {
				found |= 1u << n;
			}
		}
	}
	for (uint32_t i = 0; i < code->num_dynamic_func_defs; i++) {
		found |= scan_op_array(code->dynamic_func_defs[i]);
	}
	return found;
}

static uint32_t scan_functions(HashTable *functions, uint32_t from)
{
	uint32_t found = 0;
	for (uint32_t i = from; i < functions->nNumUsed; i++) {
		zval *value = &functions->arData[i].val;
		if (Z_TYPE_P(value) == IS_PTR) {
			const zend_function *function = Z_PTR_P(value);
			if (function->type == ZEND_USER_FUNCTION) {
				found |= scan_op_array(&function->op_array);
			}
		}
	}
	return found;
}

void surus_superglobals_scan(surus_isolate *isolate)
{
	isolate->superglobals |= scan_functions(EG(function_table), isolate->scanned_functions);
	isolate->scanned_functions = EG(function_table)->nNumUsed;
	for (uint32_t i = isolate->scanned_classes; i < EG(class_table)->nNumUsed; i++) {
		zval *value = &EG(class_table)->arData[i].val;
		if (Z_TYPE_P(value) == IS_PTR || Z_TYPE_P(value) == IS_ALIAS_PTR) {
			zend_class_entry *class = Z_PTR_P(value);
			if (class->type == ZEND_USER_CLASS) {
				isolate->superglobals |= scan_functions(&class->function_table, 0);
			}
		}
	}
	isolate->scanned_classes = EG(class_table)->nNumUsed;
}

static zend_op_array *scanned(zend_op_array *code)
{
	surus_task *task = surus_request_of(surus_running);
	if (code && task && task->work != SURUS_RUN_CLASSIC) {
		task->isolate->superglobals |= scan_op_array(code);
		surus_superglobals_scan(task->isolate);
		if (task->work == SURUS_RUN_CALL) {
			surus_superglobals_build(task);
		}
	}
	return code;
}

static zend_op_array *compile_file_and_scan(zend_file_handle *file, int type)
{
	surus_need_stack();
	return scanned(next_compile_file(file, type));
}

static zend_op_array *compile_string_and_scan(zend_string *source, const char *name, zend_compile_position position)
{
	return scanned(next_compile_string(source, name, position));
}

void surus_superglobals_start(void)
{
	next_compile_file = zend_compile_file;
	zend_compile_file = compile_file_and_scan;
	next_compile_string = zend_compile_string;
	zend_compile_string = compile_string_and_scan;
}

/* PHP's callbacks, by number; in a booted isolate make_when_asked() replaces them. */
static zend_auto_global_callback makers[BUILT];

static zend_auto_global *find_global(size_t n)
{
	return zend_hash_str_find_ptr(CG(auto_globals), names[n], strlen(names[n]));
}

static void make(size_t n)
{
	zend_auto_global *global = find_global(n);
	zend_auto_global_callback maker = makers[n] ? makers[n] : global ? global->auto_global_callback : NULL;
	if (maker) {
		maker(global->name);
	}
}

/* Chooses the parser of the body by its type, as request startup does. Not all 8.2 releases export PHP's function for
 * it. */
static void read_post_data(const char *content_type)
{
	size_t length = strcspn(content_type, ";, ");
	char *copy = estrdup(content_type);
	zend_str_tolower(copy, length);
	sapi_post_entry *parser = zend_hash_str_find_ptr(&SG(known_post_content_types), copy, length);
	SG(request_info).post_entry = parser;
	SG(request_info).content_type_dup = copy;
	if (parser && parser->post_reader) {
		parser->post_reader();
	}
	if (sapi_module.default_post_reader) {
		sapi_module.default_post_reader();
	}
}

static void build(surus_task *task, uint32_t wanted)
{
	wanted &= ~task->built_superglobals;
	if (!wanted) {
		return;
	}
	if (wanted & (1u << 3)) {
		/* Reading $_POST makes $_FILES. */
		wanted |= 2 & ~task->built_superglobals;
	}
	task->built_superglobals |= wanted;
	if (wanted & (1u << 6)) {
		/* $_REQUEST is made from $_GET, $_POST and $_COOKIE. */
		wanted |= 7 & ~task->built_superglobals;
		task->built_superglobals |= 7;
	}
	if (!SG(request_info).request_method) {
		surus_request_info info;
		surus_fill_request_info(task->exchange, &info);
		SG(request_info).cookie_data = (char *)info.cookie.ptr;
		SG(request_info).proto_num = info.proto_num;
		surus_fill_authorization(&info);
		if (info.content_type.ptr && strcmp(info.method.ptr, "POST") == 0) {
			read_post_data(info.content_type.ptr);
		}
	}
	/* POST before FILES: reading a multipart body fills both. */
	static const uint8_t order[] = {1, 0, 2, 3, 4, 5, 6};
	for (size_t i = 0; i < sizeof order; i++) {
		uint8_t n = order[i];
		if (wanted & (1u << n)) {
			make(n);
		}
	}
}

/* For C code that needs a superglobal which no PHP code mentions: ob_gzhandler(), SoapServer, getopt(). */
static bool make_when_asked(zend_string *name)
{
	surus_task *task = surus_request_of(surus_running);
	for (size_t n = 0; n < BUILT; n++) {
		if (!zend_string_equals_cstr(name, names[n], strlen(names[n]))) {
			continue;
		}
		if (task && task->work == SURUS_RUN_CALL) {
			build(task, 1u << n);
		} else {
			make(n);
		}
	}
	return true; /* the next request asks, too */
}

void surus_superglobals_arm(void)
{
	for (size_t n = 0; n < BUILT; n++) {
		zend_auto_global *global = find_global(n);
		if (global && global->jit && global->auto_global_callback) {
			if (global->auto_global_callback != make_when_asked) {
				makers[n] = global->auto_global_callback;
			}
			global->auto_global_callback = make_when_asked;
			global->armed = true;
		}
	}
}

void surus_superglobals_build(surus_task *task)
{
	build(task, task->isolate->superglobals);
}

void surus_superglobals_build_upload(surus_task *task)
{
	surus_request_info info;
	build(task, 1u << 1 | 1u << 3);
	surus_rs_request_info(task->exchange, &info);
	/* PHP itself reads forms of POST requests only. */
	if (info.content_type.ptr && strcmp(info.method.ptr, "POST") != 0 && !SG(request_info).post_entry) {
		read_post_data(info.content_type.ptr);
		sapi_module.treat_data(PARSE_POST, NULL, NULL);
	}
}
