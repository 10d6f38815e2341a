#ifndef SURUS_OS_ENV_READERS_H
#define SURUS_OS_ENV_READERS_H

#include "base.h"

/* Frees memory that was part of an environment, once no thread can be reading it. */
void surus_env_retire(void *memory);

#endif
