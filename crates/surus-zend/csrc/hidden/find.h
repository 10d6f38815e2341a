/* Shared by the files that locate hidden state. */
#ifndef SURUS_HIDDEN_FIND_H
#define SURUS_HIDDEN_FIND_H

#include "base.h"
#include "hidden/hidden.h"

typedef struct {
	surus_region *out;
	size_t capacity;
	size_t count;
	char *error;
	size_t error_size;
} surus_finder;

/* Return false on failure, with a message in the finder. */
bool surus_found(surus_finder *finder, const char *name, void *address, size_t size, surus_region_init init);
/* Marks the region found last as one that belongs to a request. */
bool surus_is_of_request(surus_finder *finder);
bool surus_not_found(surus_finder *finder, const char *name, const char *why);

/* The ini entry `name`, NULL when its extension is not loaded. */
zend_ini_entry *surus_ini_entry(const char *name);
/* Whether `pointer` is in the heap's current chunk: reading there is safe. */
bool surus_in_heap(const void *pointer);

#endif
