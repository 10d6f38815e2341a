/* Queues: PHP pushes jobs, and takes them, or runs those that the server has taken for it. What is pushed and how a run ends is
 * PHP (Surus\Internal\Queues); who keeps the jobs is the server's. */
#ifndef SURUS_APP_QUEUE_H
#define SURUS_APP_QUEUE_H

#include "base.h"

extern const zend_function_entry surus_queue_functions[];

#endif
