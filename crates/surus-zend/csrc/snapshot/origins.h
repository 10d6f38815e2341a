/* Where objects of a boot were made, for the message that refuses one. */
#ifndef SURUS_SNAPSHOT_ORIGINS_H
#define SURUS_SNAPSHOT_ORIGINS_H

#include "base.h"

/* From now on boots on this thread note it for objects of extensions that may own more than memory of PHP. */
void surus_origins_start(void);
/* "file:line", or NULL: it is not known. Valid until the next object is made. */
const char *surus_origin_of(const zend_object *object);
/* The boot of the entered isolate is over. */
void surus_origins_forget(void);

#endif
