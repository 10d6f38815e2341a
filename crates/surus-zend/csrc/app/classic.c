/* Classic requests: php-fpm's semantics. Startup, script and shutdown all run on the task's stack, so all may park. */
#include "app/classic.h"
#include "app/deferred.h"
#include "app/offload.h"
#include "connections/cleaning.h"
#include "http/form_files.h"
#include "http/request_info.h"
#include "http/response.h"
#include "isolate/checked_heap.h"
#include "os/text.h"
#include "task/fiber_stacks.h"
#include "task/state.h"

#include "Zend/zend_virtual_cwd.h"

/* Clears state that php-fpm leaves for the next request, but that another client must not see. */
static void forget_last_request(void)
{
	static const zend_module_entry *sockets;
	static bool looked;
	if (!looked) {
		looked = true;
		sockets = zend_hash_str_find_ptr(&module_registry, "sockets", sizeof "sockets" - 1);
	}
	if (sockets) {
		*(int *)sockets->globals_ptr = 0; /* last_error is the first member of its globals */
	}
}

static void run_script(const char *path)
{
	zend_file_handle script;
	zend_stream_init_filename(&script, path);
	script.primary_script = true;
	zend_first_try {
		php_execute_script(&script);
	} zend_end_try();
	zend_destroy_file_handle(&script);
}

surus_outcome surus_run_classic(surus_task *task)
{
	surus_request_info info;
	surus_fill_request_info(task->exchange, &info);
	SURUS_SET_STACK_LIMITS(task->stack);
	if (php_request_startup() == FAILURE) {
		php_request_shutdown(NULL);
		surus_forget_uploads(task);
		SG(server_context) = NULL;
		return SURUS_FATAL;
	}
	SURUS_SET_STACK_LIMITS(task->stack);
	virtual_cwd_deactivate();
	forget_last_request();

	if (info.script.len) {
		run_script(info.script.ptr);
	} else {
		surus_offload_serve();
	}
	surus_deferred_end_code(task);
	int exit_status = EG(exit_status);

	/* Fatal errors are caught in the script and in what runs after it; each leaves this mark. */
	bool fatal = CG(unclean_shutdown);
	if (fatal) {
		surus_output_mend(task);
		surus_free_fiber_stacks();
	}
	php_request_shutdown(NULL);
	surus_forget_uploads(task);
	fatal = fatal || CG(unclean_shutdown);
	/* After a fatal error the isolate is freed, together with its connections. */
	fatal = fatal || !surus_persistent_end(task);
	surus_checked_heap_clear(task->isolate);
	surus_os_forget_text(task->isolate->os);
	SG(server_context) = NULL;
	EG(exit_status) = exit_status;
	if (task->cancel != SURUS_CANCEL_NONE && !fatal) {
		return SURUS_CANCELLED;
	}
	return fatal ? SURUS_FATAL : SURUS_OK;
}
