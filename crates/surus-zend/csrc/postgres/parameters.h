/* Parameters of a statement, from PHP values. */
#ifndef SURUS_POSTGRES_PARAMETERS_H
#define SURUS_POSTGRES_PARAMETERS_H

#include "base.h"

typedef struct {
	surus_postgres_value *values;
	zend_string **texts; /* what was made of objects and arrays, or NULL */
	size_t count;
} surus_postgres_parameters;

/* False, with an exception: one of them cannot be a parameter. To be freed in both cases. */
bool surus_postgres_pack(surus_postgres_parameters *packed, HashTable *parameters);
void surus_postgres_unpack(surus_postgres_parameters *packed);

#endif
