/* Surus\Internal\InProcess: a script of the command line, usually a test, sends requests to an application. Each
 * request is a fiber of the script's isolate, so that both see the same objects; otherwise it runs as in a server. */
#include "app/in_process.h"
#include "app/application.h"
#include "fiber/state.h"
#include "fiber/superglobals.h"
#include "task/running.h"
#include "task/state.h"

#include "Zend/zend_exceptions.h"

static zend_object_handlers handlers;

typedef struct {
	struct surus_application *application; /* NULL until it is constructed */
	void *routes;                          /* Rust's part */
	zend_object std;
} in_process;

#define IN_PROCESS(object) ((in_process *)((char *)(object) - XtOffsetOf(in_process, std)))

static zend_object *create(zend_class_entry *class)
{
	in_process *new = zend_object_alloc(sizeof *new, class);
	new->application = NULL;
	new->routes = NULL;
	zend_object_std_init(&new->std, class);
	object_properties_init(&new->std, class);
	new->std.handlers = &handlers;
	return &new->std;
}

static void free_object(zend_object *object)
{
	in_process *old = IN_PROCESS(object);
	if (old->application) {
		surus_application_free(old->application);
	}
	if (old->routes) {
		surus_rs_in_process_free(old->routes);
	}
	zend_object_std_dtor(object);
}

/* C code holds the application: the collector of cycles must not treat it as garbage. */
static HashTable *references(zend_object *object, zval **table, int *count)
{
	struct surus_application *app = IN_PROCESS(object)->application;
	*table = app ? &app->value : NULL;
	*count = app ? 1 : 0;
	return zend_std_get_properties(object);
}

ZEND_METHOD(InProcess, __construct)
{
	zval *app;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_OBJECT(app)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_running;
	in_process *this = IN_PROCESS(Z_OBJ_P(ZEND_THIS));
	if (!task || !task->script || this->application) {
		zend_throw_error(NULL, "An application is called in process by a script that `surus php` runs; elsewhere, use Client::serve()");
		RETURN_THROWS();
	}
	zval value;
	ZVAL_COPY(&value, app);
	void *exchange = surus_rs_in_process_begin();
	this->application = surus_application_make(exchange, &value, "The test");
	char error[1024] = "";
	this->routes = surus_rs_in_process_end(exchange, error, sizeof error);
	if (EG(exception)) {
		RETURN_THROWS();
	}
	if (!this->application || !this->routes) {
		zend_throw_error(NULL, "%s", error[0] ? error : "This is no application");
	}
}

ZEND_METHOD(InProcess, request)
{
	zend_string *method, *target, *head, *body;
	ZEND_PARSE_PARAMETERS_START(4, 4)
		Z_PARAM_STR(method)
		Z_PARAM_STR(target)
		Z_PARAM_STR(head)
		Z_PARAM_STR(body)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_running;
	in_process *this = IN_PROCESS(Z_OBJ_P(ZEND_THIS));
	if (!task || !task->script || task->isolate->application || !this->application || !surus_can_park()) {
		zend_throw_error(NULL, "A request in process cannot be sent from here");
		RETURN_THROWS();
	}
	if (task->request || task->jobs) {
		/* It would get the script's state, which is the tasks' as well. */
		zend_throw_error(NULL, "A request in process cannot be sent while tasks of the script run");
		RETURN_THROWS();
	}
	surus_in_process_request request = {
		.method = surus_bytes_of(method),
		.target = surus_bytes_of(target),
		.head = surus_bytes_of(head),
		.body = surus_bytes_of(body),
	};
	surus_in_process_answer answer = {0};
	/* The request starts with the script's current state, which is restored when the script continues. */
	surus_isolate *isolate = task->isolate;
	isolate->application = this->application;
	isolate->had_fatal = false;
	surus_superglobals_scan(isolate);
	surus_fiber_take_idle(isolate);
	bool answered = surus_rs_in_process_call(this->routes, &request, &answer);
	surus_fiber_drop_idle(isolate);
	isolate->application = NULL;
	if (!answered) {
		zend_throw_error(NULL, "%.*s", (int)answer.body.len, answer.body.ptr);
		RETURN_THROWS();
	}
	array_init(return_value);
	add_next_index_long(return_value, answer.status);
	add_next_index_stringl(return_value, answer.head.ptr, answer.head.len);
	add_next_index_stringl(return_value, answer.body.ptr, answer.body.len);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_construct, 0, 0, 1)
	ZEND_ARG_OBJ_INFO(0, app, Surus\\App, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_request, 0, 4, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, method, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, target, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, head, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, body, IS_STRING, 0)
ZEND_END_ARG_INFO()

static const zend_function_entry methods[] = {
	ZEND_ME(InProcess, __construct, arginfo_construct, ZEND_ACC_PUBLIC)
	ZEND_ME(InProcess, request, arginfo_request, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

void surus_register_in_process(void)
{
	zend_class_entry entry;
	INIT_NS_CLASS_ENTRY(entry, "Surus\\Internal", "InProcess", methods);
	zend_class_entry *class = zend_register_internal_class(&entry);
	class->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
	class->create_object = create;
	memcpy(&handlers, &std_object_handlers, sizeof handlers);
	handlers.offset = XtOffsetOf(in_process, std);
	handlers.free_obj = free_object;
	handlers.get_gc = references;
	handlers.clone_obj = NULL;
}
