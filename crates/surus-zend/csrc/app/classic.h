#ifndef SURUS_APP_CLASSIC_H
#define SURUS_APP_CLASSIC_H

#include "base.h"

surus_outcome surus_run_classic(surus_task *task);

#endif
