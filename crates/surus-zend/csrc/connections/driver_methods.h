#ifndef SURUS_CONNECTIONS_DRIVER_METHODS_H
#define SURUS_CONNECTIONS_DRIVER_METHODS_H

/* Wraps the constructors of PDO: before the guard does. */
void surus_driver_methods_start(void);

#endif
