#ifndef SURUS_APP_BOOT_H
#define SURUS_APP_BOOT_H

#include "base.h"

surus_outcome surus_run_boot(surus_task *task);
surus_outcome surus_run_unboot(surus_task *task);
/* What has run so far is the boot: what it has set is what requests start with. */
void surus_boot_complete(surus_isolate *isolate);

#endif
