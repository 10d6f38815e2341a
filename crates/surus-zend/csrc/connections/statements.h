#ifndef SURUS_CONNECTIONS_STATEMENTS_H
#define SURUS_CONNECTIONS_STATEMENTS_H

#include "base.h"
#include "connections/handle_kinds.h"

void surus_statements_start(void);
surus_step surus_statement_step(zif_handler handler);
const char *surus_statement_open(const surus_use *use, surus_step now);
const char *surus_mysqli_statement_open(const surus_use *use, surus_step now);
const char *surus_sqlite_statement_open(const surus_use *use, surus_step now);
const char *surus_curl_open(const surus_use *use, surus_step now);
const char *surus_watch_open(const surus_use *use, surus_step now);
bool surus_statement_leave(surus_use *use, surus_phase phase, bool broken_off);
bool surus_sqlite_statement_leave(surus_use *use, surus_phase phase, bool broken_off);
bool surus_watch_leave(surus_use *use, surus_phase phase, bool broken_off);

#endif
