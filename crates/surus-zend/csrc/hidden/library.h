#ifndef SURUS_HIDDEN_LIBRARY_H
#define SURUS_HIDDEN_LIBRARY_H

#include "base.h"
#include "hidden/find.h"

/* Inside a scratch request. */
bool surus_find_library(surus_finder *finder);
bool surus_library_create(void);
void surus_library_destroy(void);

#endif
