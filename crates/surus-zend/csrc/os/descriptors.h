#ifndef SURUS_OS_DESCRIPTORS_H
#define SURUS_OS_DESCRIPTORS_H

#include "base.h"

/* To be called when the running task opens a descriptor. */
void surus_descriptor_made(void);
/* Whether the running code is a request's, whose descriptors must not be inherited by programs of other requests. */
bool surus_descriptors_are_private(void);
/* At the end of a request of a shared isolate: collects cycles if the number of PHP's open descriptors has grown. */
void surus_collect_descriptors(void);

#endif
