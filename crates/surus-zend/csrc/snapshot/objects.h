/* Which objects consist of PHP's memory only: those may be part of a snapshot, and need nothing at the end of a request. */
#ifndef SURUS_SNAPSHOT_OBJECTS_H
#define SURUS_SNAPSHOT_OBJECTS_H

#include "base.h"

/* Finds the classes that are known to. */
void surus_memory_only_start(void);
bool surus_is_memory_only(const zend_object *object);
/* Whether all objects of the class do, or of the class of an extension that it extends. */
bool surus_is_memory_only_class(const zend_class_entry *class);

#endif
