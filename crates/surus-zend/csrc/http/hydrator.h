/* How objects of input are built: http/hydrate_boot.c determines it, http/hydrate.c builds them. */
#ifndef SURUS_HTTP_HYDRATOR_H
#define SURUS_HTTP_HYDRATOR_H

#include "base.h"

enum { OF_OBJECT, OF_ENUM, OF_DATE, OF_FILE };

typedef struct {
	zend_class_entry *class;
	int kind;
	uint32_t count;       /* parameters, or cases */
	uint32_t *offsets;    /* of the property that a parameter is promoted to; NULL: the constructor is called */
	zval *defaults;       /* with `offsets`: literals and constant expressions, owned by the constructor */
	zend_property_info **properties; /* with `offsets` */
	zend_object **cases;  /* of an enum, owned by its class */
} hydrated;

struct surus_hydrator {
	uint32_t slot;  /* which input of the route */
	zval rules;     /* a Surus\Schema\Rules, or null */
	uint32_t count;
	hydrated classes[];
};

#endif
