/* Errors that drivers report while the server ends or cleans connections, after a request: they belong to no request. No
 * handler, no log, no output, no error_get_last() of the next request on this fiber. */
#ifndef SURUS_CONNECTIONS_QUIET_H
#define SURUS_CONNECTIONS_QUIET_H

#include "base.h"

typedef struct { int reporting; zval handler; } surus_quiet;

void surus_quiet_begin(surus_quiet *before);
void surus_quiet_end(surus_quiet *before);

#endif
