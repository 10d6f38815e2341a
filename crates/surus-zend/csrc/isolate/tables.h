#ifndef SURUS_ISOLATE_TABLES_H
#define SURUS_ISOLATE_TABLES_H

#include "base.h"

/* For the entered isolate, from the tables of the process after startup. */
void surus_tables_make(surus_isolate *isolate);
/* Each of its settings reaches the globals that it controls. */
void surus_tables_apply_settings(void);
/* `clean`: no request has left entries of its own behind. */
void surus_tables_free(surus_isolate *isolate, bool clean);

#endif
