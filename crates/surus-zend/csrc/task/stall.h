#ifndef SURUS_TASK_STALL_H
#define SURUS_TASK_STALL_H

#include "base.h"

/* At an interrupt of the VM: reports the call that this code has blocked the event loop with, if there is one. */
void surus_stall_report(void);

#endif
