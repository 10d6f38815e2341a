/* Shared by the files that locate hidden state. */
#ifndef SURUS_HIDDEN_FIND_H
#define SURUS_HIDDEN_FIND_H

#include "main/php.h"

#include "hidden.h"
#include "hidden_layout.h"
#include "hidden_probe.h"

typedef struct {
	surus_region *out;
	size_t capacity;
	size_t count;
	char *error;
	size_t error_size;
} surus_finder;

/* Return false on failure, with a message in the finder. */
bool surus_found(surus_finder *finder, const char *name, void *address, size_t size, surus_region_init init);
/* The region found last belongs to a request. */
bool surus_is_of_request(surus_finder *finder);
bool surus_not_found(surus_finder *finder, const char *name, const char *why);

/* The ini entry `name`, NULL when its extension is not loaded. */
zend_ini_entry *surus_ini_entry(const char *name);
/* Whether `pointer` lies in the first chunk of the heap in use: reading there is safe. */
bool surus_in_heap(const void *pointer);

/* hidden_engine.c: inside a scratch request. */
bool surus_find_engine(surus_finder *finder);
/* The same state outside a request: what a request made must be gone. */
bool surus_verify_engine(surus_finder *finder);

/* hidden_library.c: inside a scratch request. */
bool surus_find_library(surus_finder *finder);
bool surus_library_create(void);
void surus_library_destroy(void);

/* hidden_opcache.c: inside a scratch request. */
bool surus_find_opcache(surus_finder *finder);
void surus_opcache_entered(void);

/* extensions.c */
bool surus_find_extensions(surus_finder *finder);

/* opcache_locks.c */
bool surus_find_opcache_lock(surus_finder *finder);
void surus_opcache_lock_drop(void);

/* Set by hidden_engine.c. */
extern surus_gc_globals *surus_gc;

#endif
