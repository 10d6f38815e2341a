#ifndef SURUS_APP_REFRESH_H
#define SURUS_APP_REFRESH_H

#include "base.h"

surus_outcome surus_run_refresh(surus_task *task);

#endif
