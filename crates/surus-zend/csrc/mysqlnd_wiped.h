/* Statements that mysqlnd fills with zeros when their connection ends. */
#ifndef SURUS_MYSQLND_WIPED_H
#define SURUS_MYSQLND_WIPED_H

/* After the modules have started, before there are connections. */
void surus_mysqlnd_start(void);

#endif
