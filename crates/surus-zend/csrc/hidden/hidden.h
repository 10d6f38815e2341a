/* PHP state that no symbol and no module entry names: `static`, ZEND_TLS and old-style module globals of libphp and of
 * the extensions, and state of libxml2 and PCRE that PHP code can observe.
 *
 * Each variable is located once by its behaviour and then verified. If one cannot be found or verified, startup fails
 * with an error that names it: nothing is guessed. docs/internals/isolates.md lists all of them and the test that
 * covers each.
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

/* The `*count` located regions that belong to a request. They can be copied as plain bytes. */
const surus_region *surus_hidden_of_request(size_t *count);

/* In a new, entered isolate, after its regions have their initial contents and before the ini handlers (which fill in
 * what is made here): gives it its own PCRE contexts and makes its cycle collector ignore roots until it is enabled. */
bool surus_hidden_create(void);
/* In an entered isolate that will never run again: frees what surus_hidden_create and the regions own outside PHP's
 * heap. */
void surus_hidden_destroy(void);
/* After each enter that copied regions: clears OPcache's cache of the last path lookup, whose text is in a buffer that
 * all isolates share. */
void surus_hidden_entered(void);
/* False inside sections that hold a lock of OPcache or APCu (they block signals): parking there would deadlock. */
bool surus_hidden_may_park(void);

#endif
