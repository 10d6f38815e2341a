#ifndef SURUS_HIDDEN_EXTENSIONS_H
#define SURUS_HIDDEN_EXTENSIONS_H

#include "base.h"
#include "hidden/find.h"

bool surus_find_extensions(surus_finder *finder);

#endif
