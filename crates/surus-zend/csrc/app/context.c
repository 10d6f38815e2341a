/* Surus\Context: values that tasks inherit. Each task has an object of its own, which never changes: another one takes its
 * place. In classic mode PHP frees it with all objects of the request. */
#include "app/context.h"
#include "task/running.h"
#include "task/state.h"

void surus_context_inherit(surus_task *job, const surus_task *from)
{
	job->context = from->context;
	if (job->context) {
		GC_ADDREF(job->context);
	}
}

void surus_context_end(surus_task *task)
{
	zend_object *context = task->context;
	task->context = NULL;
	/* After a fatal error no destructor runs. */
	if (context && !task->isolate->had_fatal) {
		OBJ_RELEASE(context);
	}
}

/* Surus\Internal\task_context(?Surus\Context $new = null): ?Surus\Context. That of the running code; a new one takes its
 * place. */
static ZEND_FUNCTION(task_context)
{
	zval *new = NULL;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_OBJECT_OR_NULL(new)
	ZEND_PARSE_PARAMETERS_END();
	surus_task *task = surus_running;
	if (!task) {
		return;
	}
	if (new) {
		zend_object *old = task->context;
		task->context = Z_OBJ_P(new);
		GC_ADDREF(task->context);
		if (old) {
			OBJ_RELEASE(old);
		}
	}
	if (task->context) {
		RETURN_OBJ_COPY(task->context);
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_task_context, 0, 0, Surus\\Context, 1)
	ZEND_ARG_OBJ_INFO_WITH_DEFAULT_VALUE(0, new, Surus\\Context, 1, "null")
ZEND_END_ARG_INFO()

const zend_function_entry surus_context_functions[] = {
	ZEND_NS_FE("Surus\\Internal", task_context, arginfo_task_context)
	ZEND_FE_END
};
