#ifndef SURUS_HIDDEN_ENGINE_H
#define SURUS_HIDDEN_ENGINE_H

#include "base.h"
#include "hidden/find.h"
#include "hidden/layout.h"

/* Inside a scratch request. */
bool surus_find_engine(surus_finder *finder);
/* The same state outside a request: what a request made must be gone. */
bool surus_verify_engine(surus_finder *finder);
/* That of the entered isolate. */
extern surus_gc_globals *surus_gc;

#endif
