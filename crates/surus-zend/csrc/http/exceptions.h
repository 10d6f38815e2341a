#ifndef SURUS_HTTP_EXCEPTIONS_H
#define SURUS_HTTP_EXCEPTIONS_H

#include "base.h"

/* Writes an exception to the log. */
void surus_log_exception(zend_object *exception);
/* Logs an exception that is pending after the body of a request; the status becomes 500 if the head was not sent
 * yet. */
void surus_report_exception(void);
/* File and line of the handler of the task's route; NULL if it is not a PHP function. The caller releases the
 * string. */
zend_string *surus_handler_place(const surus_task *task);

#endif
