#ifndef SURUS_POSTGRES_FLOWS_H
#define SURUS_POSTGRES_FLOWS_H

#include "base.h"

extern const zend_function_entry surus_postgres_flows[];

#endif
