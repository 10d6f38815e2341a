#ifndef SURUS_OS_CHILDREN_H
#define SURUS_OS_CHILDREN_H

#include "base.h"

void surus_children_enter_worker(void);

#endif
