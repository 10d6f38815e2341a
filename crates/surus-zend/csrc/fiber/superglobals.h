#ifndef SURUS_FIBER_SUPERGLOBALS_H
#define SURUS_FIBER_SUPERGLOBALS_H

#include "base.h"

/* From now on notes which superglobals newly compiled code of a booted isolate refers to. */
void surus_superglobals_start(void);
/* At the end of a boot: what C code asks for is made then. */
void surus_superglobals_arm(void);
void surus_superglobals_scan(surus_isolate *isolate);
/* Fills in those that code refers to and the running request has not got yet. */
void surus_superglobals_build(surus_task *task);
/* $_POST and $_FILES of a form in any method's body, whether code refers to them or not. */
void surus_superglobals_build_upload(surus_task *task);

#endif
