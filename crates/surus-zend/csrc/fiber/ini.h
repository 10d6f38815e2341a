/* Changes by ini_set() of one request, while another request of the isolate runs. */
#ifndef SURUS_FIBER_INI_H
#define SURUS_FIBER_INI_H

#include "base.h"

struct surus_ini_change;

typedef struct surus_ini_change surus_ini_change;

/* Saved settings of one request: empty while its values are installed. */
typedef struct {
	HashTable *modified; /* EG(modified_ini_directives) */
	surus_ini_change *changes;
	size_t count;
} surus_fiber_ini;

/* Copies what settings control, as the boot has left it; freed with free(). After surus_parts_find(). */
void *surus_ini_take_idle(const surus_isolate *isolate);
/* Saves the running request's settings and restores the application's. */
void surus_ini_save(surus_fiber_ini *to, const void *idle, const surus_isolate *isolate);
void surus_ini_load(surus_fiber_ini *from, const surus_isolate *isolate);
/* At the end of a request: restores the application's settings and frees the request's. */
void surus_ini_reset(const void *idle, const surus_isolate *isolate);

#endif
