#ifndef SURUS_CONNECTIONS_ITERATORS_H
#define SURUS_CONNECTIONS_ITERATORS_H

/* From now on foreach over an object that reads from a connection asks first. */
void surus_iterators_start(void);

#endif
