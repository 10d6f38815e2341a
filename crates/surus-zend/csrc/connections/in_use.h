#ifndef SURUS_CONNECTIONS_IN_USE_H
#define SURUS_CONNECTIONS_IN_USE_H

#include "base.h"

/* Throws a Surus\ConnectionInUse: `class` is what is used; the running request wants what the task uses, in its frame `use` or by having begun
 * something; NULL for a task that was given up. */
void surus_throw_in_use(const char *class, surus_task *task, const zend_execute_data *use, const char *begun);
/* The same where the other request may have ended: it has executed the statement that the running one wants to read. */
/* Several requests have asked on it before anything was answered. */
void surus_throw_mixed(const char *class);
void surus_throw_executed_since(const char *class);
/* A request has ended without ending what it had begun. */
void surus_log_unended(surus_task *task, const zend_class_entry *class, const char *begun);

void surus_register_connection_in_use(void);

#endif
