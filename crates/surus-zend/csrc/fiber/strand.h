/* What PHP is in the middle of, in one job of a request. Everything else of the request belongs to all of its jobs. */
#ifndef SURUS_FIBER_STRAND_H
#define SURUS_FIBER_STRAND_H

#include "base.h"

/* The fresh state of a job that has yet to begin; false when memory is short. In the isolate of its request. */
bool surus_strand_make(surus_task *job);
/* Before and after a job runs, in its isolate, with the state of its request in place. */
void surus_strand_enter(surus_task *job);
void surus_strand_leave(surus_task *job);
/* The job has ended: frees what its state holds. In its isolate. */
void surus_strand_end(surus_task *job);

#endif
