#ifndef SURUS_HIDDEN_ENGINE_H
#define SURUS_HIDDEN_ENGINE_H

#include "base.h"
#include "hidden/find.h"
#include "hidden/layout.h"

/* Inside a scratch request. */
bool surus_find_engine(surus_finder *finder);
/* Verifies the same state outside a request: the end of a request must have reset it. */
bool surus_verify_engine(surus_finder *finder);
/* The collector of the entered isolate. */
extern surus_gc_globals *surus_gc;

#endif
