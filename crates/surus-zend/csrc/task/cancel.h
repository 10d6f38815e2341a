#ifndef SURUS_TASK_CANCEL_H
#define SURUS_TASK_CANCEL_H

#include "base.h"

void surus_cancel_start(void);
/* Brings the end of a cancelled request on its way. True: what it does now is over, so a call returns an error. */
bool surus_must_end(surus_task *task);
/* Nobody wants the output any more. */
void surus_client_left(surus_task *task);
/* The request has ended and its heap has not. */
void surus_cancel_forget(surus_task *task);

#endif
