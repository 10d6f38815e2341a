/* Tasks: stacks that run PHP, one piece of work after another. The event loop resumes a task; the task returns to it
 * when it parks, is pre-empted or done (task/running.c). A task never resumes another. */
#include "base.h"
#include "app/application.h"
#include "app/boot.h"
#include "app/classic.h"
#include "app/jobs.h"
#include "app/refresh.h"
#include "connections/handle_request_end.h"
#include "engine/command_line.h"
#include "fiber/state.h"
#include "fiber/strand.h"
#include "http/form_files.h"
#include "isolate/isolate.h"
#include "snapshot/snapshot.h"
#include "task/cancel.h"
#include "task/log.h"
#include "task/running.h"
#include "task/stack.h"
#include "task/state.h"

static void task_main(void *argument)
{
	surus_task *task = argument;
	for (;;) {
		switch (task->work) {
			case SURUS_RUN_CLASSIC:
				task->outcome = surus_run_classic(task);
				break;
			case SURUS_RUN_BOOT:
				task->outcome = surus_run_boot(task);
				break;
			case SURUS_RUN_CALL:
				zend_set_timeout(task->isolate->time_limit, false);
				task->outcome = surus_run_call(task);
				surus_cancel_forget(task);
				break;
			case SURUS_RUN_UNBOOT:
				task->outcome = surus_run_unboot(task);
				break;
			case SURUS_RUN_SCRIPT:
				task->outcome = surus_run_script(task);
				break;
			case SURUS_RUN_JOB:
				task->outcome = surus_run_job(task);
				surus_cancel_forget(task);
				break;
			case SURUS_RUN_SNAPSHOT:
				task->outcome = surus_run_snapshot(task);
				break;
			case SURUS_RUN_REFRESH:
				task->outcome = surus_run_refresh(task);
				break;
		}
		surus_task_leave(SURUS_DONE);
	}
}

surus_task *surus_task_new(surus_isolate *isolate, size_t stack_size)
{
	surus_task *task = calloc(1, sizeof *task);
	if (!task || !surus_stack_map(&task->stack, stack_size)) {
		free(task);
		return NULL;
	}
	task->isolate = isolate;
	task->sp = surus_stack_prepare(&task->stack, task_main, task);
	return task;
}

void surus_task_free(surus_task *task)
{
	if (task->fiber && !task->request) {
		surus_fiber_state_free(task);
	}
	surus_handles_forget_task(task);
	free(task->strand);
	surus_stack_unmap(&task->stack);
	free(task->locks);
	surus_forget_uploads(task);
	free(task);
}

void surus_task_assign(surus_task *task, surus_work work, void *exchange)
{
	task->work = work;
	task->exchange = exchange;
	task->outcome = SURUS_OK;
	task->cancel = SURUS_CANCEL_NONE;
	task->ending = NULL;
	task->handler = NULL;
	task->frame = NULL;
	task->body_over = false;
	task->hard_cancel = false;
	task->was_stopped = false;
	task->refused = 0;
	task->built_superglobals = 0;
	task->ticks = 0;
	task->tick_limit = 0;
	task->used.kinds = task->used.count = 0;
	task->pool_count = 0;
	task->had_jobs = task->cut = false;
	task->jobs = 0;
	task->doom = SURUS_DOOM_NONE;
	task->context = NULL;
	task->deferred = NULL;
	task->defers = false;
	task->in_background = false;
	task->loop = (struct surus_loop){0};
}

surus_event surus_task_resume(surus_task *task)
{
	surus_isolate_enter(task->isolate);
	surus_fiber_install(surus_request_of(task));
	if (task->request) {
		surus_job_enter(task);
	}
	surus_task_switch_to(task);
	if (task->request) {
		surus_job_leave(task);
	}
	if (surus_is_abandoned(task)) {
		surus_handles_give_up(task);
		surus_clear_marks(task->isolate);
		if (task->fiber) {
			surus_memory_forgive(task->isolate);
		}
	}
	return task->event;
}

surus_outcome surus_task_outcome(const surus_task *task)
{
	return task->outcome;
}

void *surus_task_exchange(const surus_task *task)
{
	return task->exchange;
}

void surus_task_give_up(surus_task *task)
{
	surus_handles_give_up(task);
	task->event = SURUS_ABANDONED;
	if (task->request) {
		surus_job_lost(task);
	}
	surus_task_end_locks(task);
}

void surus_task_backtrace(surus_task *task, const char *title)
{
	surus_isolate_enter(task->isolate);
	surus_log_backtrace(task->frame, title);
}
