#ifndef SURUS_ENGINE_RESTRICTIONS_H
#define SURUS_ENGINE_RESTRICTIONS_H

#include "base.h"

/* While extensions start: disabled functions and classes exist until surus_restrictions_apply. */
void surus_restrictions_hold(void);
/* After everything that needs PHP's functions. Fails for a class that cannot be disabled. */
int surus_restrictions_apply(char *error, size_t error_size);
/* For the self-test, in a child of the master: all functions exist again. */
void surus_restrictions_lift(void);

#endif
