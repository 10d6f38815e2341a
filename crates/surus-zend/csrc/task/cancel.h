#ifndef SURUS_TASK_CANCEL_H
#define SURUS_TASK_CANCEL_H

#include "base.h"

void surus_cancel_start(void);
/* Starts the end of a cancelled request. True: its current operation is over, and the call must return an error. */
bool surus_must_end(surus_task *task);
/* The client has disconnected: nobody reads the output. */
void surus_client_left(surus_task *task);
/* The request has ended, but its heap goes on to exist. */
void surus_cancel_forget(surus_task *task);

#endif
