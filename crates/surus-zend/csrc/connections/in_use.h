#ifndef SURUS_CONNECTIONS_IN_USE_H
#define SURUS_CONNECTIONS_IN_USE_H

#include "base.h"

/* Throws a Surus\ConnectionInUse: the running request tries to use an object of `class` that `task` is using, in its
 * frame `use` or by having begun something (`begun`); `task` is NULL if it was abandoned. */
void surus_throw_in_use(const char *class, surus_task *task, const zend_execute_data *use, const char *begun);
/* Several requests have written to it before anything was answered. */
void surus_throw_mixed(const char *class);
/* Another request, which may have ended, has executed the statement from which the running one tries to read. */
void surus_throw_executed_since(const char *class);
/* Logs that a request has ended without ending what it had begun. */
void surus_log_unended(surus_task *task, const zend_class_entry *class, const char *begun);

void surus_register_connection_in_use(void);

#endif
