/* Statements that mysqlnd fills with zeros when their connection ends. */
#ifndef SURUS_CONNECTIONS_MYSQLND_WIPED_H
#define SURUS_CONNECTIONS_MYSQLND_WIPED_H

#include "base.h"

/* After the modules have started, before there are connections. */
void surus_mysqlnd_start(void);

#endif
