#ifndef SURUS_OS_DESCRIPTORS_H
#define SURUS_OS_DESCRIPTORS_H

#include "base.h"

/* The running task opens something. */
void surus_descriptor_made(void);
/* At the end of a request of a shared isolate: collects cycles if what PHP has open has grown. */
void surus_collect_descriptors(void);

#endif
