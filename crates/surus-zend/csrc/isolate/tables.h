#ifndef SURUS_ISOLATE_TABLES_H
#define SURUS_ISOLATE_TABLES_H

#include "base.h"

/* Makes the tables of the entered isolate from those of the process after startup. */
void surus_tables_make(surus_isolate *isolate);
/* Writes each of its settings to the globals that it controls. */
void surus_tables_apply_settings(void);
/* Before the end of a request that frees the heap: tables that lie on it go to malloc's memory. */
void surus_tables_leave_heap(surus_isolate *isolate);
/* `clean`: no request has left entries in the tables. */
void surus_tables_free(surus_isolate *isolate, bool clean);

#endif
