#ifndef SURUS_ENGINE_SAPI_H
#define SURUS_ENGINE_SAPI_H

#include "base.h"

extern sapi_module_struct surus_sapi_module;
/* Sets the SAPI name; before startup. PHP starts under this name and keeps it. */
void surus_sapi_call(char *name);

#endif
