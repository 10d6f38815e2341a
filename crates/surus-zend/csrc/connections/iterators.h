#ifndef SURUS_CONNECTIONS_ITERATORS_H
#define SURUS_CONNECTIONS_ITERATORS_H

/* From now on foreach over an object that reads from a connection checks first whether it may. */
void surus_iterators_start(void);

#endif
