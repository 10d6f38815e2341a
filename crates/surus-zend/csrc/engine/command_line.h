#ifndef SURUS_ENGINE_COMMAND_LINE_H
#define SURUS_ENGINE_COMMAND_LINE_H

#include "base.h"

surus_outcome surus_run_script(surus_task *task);

#endif
