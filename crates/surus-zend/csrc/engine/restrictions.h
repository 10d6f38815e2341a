#ifndef SURUS_ENGINE_RESTRICTIONS_H
#define SURUS_ENGINE_RESTRICTIONS_H

#include "base.h"

/* While extensions start: what is disabled is there until it is applied. */
void surus_restrictions_hold(void);
/* After everything that needs PHP's functions. What cannot be disabled is an error. */
int surus_restrictions_apply(char *error, size_t error_size);
/* For the self-test, in a child of the master: all functions are there again. */
void surus_restrictions_lift(void);

#endif
