/* Jobs: pieces of one request's work that wait at the same time. Surus\Task has one each. */
#ifndef SURUS_APP_JOBS_H
#define SURUS_APP_JOBS_H

#include "base.h"

extern const zend_function_entry surus_job_functions[];
/* A function of namespace Surus that is a static method of Surus\Internal\Tasks. */
ZEND_FUNCTION(surus_tasks);

/* Scripts of the command line may have jobs, too; set before PHP starts. */
extern bool surus_scripts_have_tasks;
/* The running task, if it belongs to a request whose code has not ended; else throws an error, which says "Tasks are" only
 * for that code, or what shutdown functions "have no tasks". */
surus_task *surus_serving(const char *what_is, const char *what_not);
/* What a job's task does. */
surus_outcome surus_run_job(surus_task *job);
/* Before and after it runs, in its isolate. */
void surus_job_enter(surus_task *job);
void surus_job_leave(surus_task *job);
/* It was given up: so is its request. */
void surus_job_lost(surus_task *job);
/* The code of the request has ended: cancels the jobs that have not, and waits for them. */
void surus_jobs_end(surus_task *task);

#endif
