/* PHP state that no symbol and no module entry leads to: `static`, ZEND_TLS and old-style module globals of
 * libphp and of the extensions, and the library state behind libxml and PCRE that PHP code can see.
 *
 * Each piece is located once by what it does and then verified; what cannot be found or does not verify is an
 * error that names it, never a guess. docs/internals/isolates.md lists every piece and the test that covers it.
 */
#ifndef SURUS_HIDDEN_HIDDEN_H
#define SURUS_HIDDEN_HIDDEN_H

#include "base.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum {
	SURUS_INIT_ZERO, /* a new isolate starts with zeros */
	SURUS_INIT_IMAGE /* a new isolate starts with what is there after startup */
} surus_region_init;

typedef struct {
	const char *name;
	void *addr;
	size_t size;
	surus_region_init init;
	bool of_request; /* where requests share an isolate, each has its own: copied when another fiber of it runs */
} surus_region;

/* Called once per process, on the thread that will run PHP, after php_module_startup and before any isolate exists,
 * outside any request. Runs scratch requests. Returns the number of regions, or -1 with a message. */
int surus_hidden_locate(surus_region *out, size_t capacity, char *error, size_t error_size);

/* The located regions that belong to a request, `*count` of them. Bytes: nothing in them needs a copy of its own. */
const surus_region *surus_hidden_of_request(size_t *count);

/* In a new isolate that is entered, between the initial contents of its regions and the ini handlers (which fill in
 * what is made here): gives it its own PCRE contexts and makes its cycle collector ignore roots until it is enabled. */
bool surus_hidden_create(void);
/* In an entered isolate that will never run again: returns what create and the regions own outside PHP's heap. */
void surus_hidden_destroy(void);
/* After each enter that copied regions: drops OPcache's memory of the last path lookup, whose text lies in a buffer
 * that all isolates share. */
void surus_hidden_entered(void);
/* False inside sections that hold a lock of OPcache or APCu (they block signals), where to park would deadlock. */
bool surus_hidden_may_park(void);

#endif
