/* Isolates that go back to how they were after the boot: what a request changes ends with it, as at the end of a process that
 * was forked for it. Destructors of objects of the boot, and its shutdown functions, run in each request. */
#ifndef SURUS_SNAPSHOT_SNAPSHOT_H
#define SURUS_SNAPSHOT_SNAPSHOT_H

#include "base.h"

/* SURUS_RUN_SNAPSHOT, on the task of the requests. Not OK: the log says why the boot cannot be kept. */
surus_outcome surus_run_snapshot(surus_task *task);
/* Whether requests of the isolate are put back. */
bool surus_snapshot_is_taken(const surus_isolate *isolate);
/* At the start of a request: what is not as the boot has left it. */
void surus_snapshot_begin(void);
/* Calls the destructors of all objects, as at the end of a request of php-fpm. They may print. */
void surus_snapshot_destruct(surus_task *task);
/* Closes and frees what a request has left that is not memory of PHP: resources, and objects that own something else. False: there
 * was a fatal error. */
bool surus_snapshot_free_rest(surus_task *task);
/* Puts the isolate back. False: it must not be used again; the log says why. */
bool surus_snapshot_put_back(surus_task *task);

#endif
