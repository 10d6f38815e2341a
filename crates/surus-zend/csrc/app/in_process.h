#ifndef SURUS_APP_IN_PROCESS_H
#define SURUS_APP_IN_PROCESS_H

#include "base.h"

void surus_register_in_process(void);

#endif
