#ifndef SURUS_FIBER_SUPERGLOBALS_H
#define SURUS_FIBER_SUPERGLOBALS_H

#include "base.h"

/* From now on records which superglobals are used by newly compiled code. */
void surus_superglobals_start(void);
/* At the end of a boot: from now on superglobals that C code needs are made on demand. */
void surus_superglobals_arm(void);
void surus_superglobals_scan(surus_isolate *isolate);
/* Makes those that code refers to and that the running request does not have yet. */
void surus_superglobals_build(surus_task *task);
/* Makes $_POST and $_FILES of a form, with any method, whether code refers to them or not. */
void surus_superglobals_build_upload(surus_task *task);

#endif
