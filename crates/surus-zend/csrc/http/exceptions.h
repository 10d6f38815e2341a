#ifndef SURUS_HTTP_EXCEPTIONS_H
#define SURUS_HTTP_EXCEPTIONS_H

#include "base.h"

/* Writes an exception to the log. */
void surus_log_exception(zend_object *exception);
/* The same of one that is pending in what follows a request's body; the answer is 500 if it is not on its way. */
void surus_report_exception(void);
/* File and line of the handler of the task's route; NULL if it is none of PHP's functions. The caller's to release. */
zend_string *surus_handler_place(const surus_task *task);

#endif
