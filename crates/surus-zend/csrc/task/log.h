#ifndef SURUS_TASK_LOG_H
#define SURUS_TASK_LOG_H

#include "base.h"

void surus_log_backtrace(const zend_execute_data *frame, const char *title);
void surus_logf(int level, const char *format, ...) ZEND_ATTRIBUTE_FORMAT(printf, 2, 3);

#endif
