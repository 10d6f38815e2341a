/* Rows of an answer as PHP values. */
#ifndef SURUS_POSTGRES_ROWS_H
#define SURUS_POSTGRES_ROWS_H

#include "base.h"

/* What a result becomes. */
typedef enum {
	SURUS_SHAPE_ROWS = 0,   /* a list of rows */
	SURUS_SHAPE_ONE = 1,    /* the first row, or null */
	SURUS_SHAPE_AFFECTED = 2 /* a number */
} surus_postgres_shape;

/* The rows, each an array by the names of columns, or an object of the class if that is not NULL. False: an exception, or
 * the answer is not well-formed. Ends in a bailout where there is no memory. */
bool surus_postgres_build(zval *to, void *answer, const surus_postgres_rows *rows, surus_postgres_shape shape, zend_class_entry *class);

#endif
