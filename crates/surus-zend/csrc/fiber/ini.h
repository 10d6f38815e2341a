/* What ini_set() of one request has changed, while another one of the isolate runs. */
#ifndef SURUS_FIBER_INI_H
#define SURUS_FIBER_INI_H

#include "base.h"

struct surus_ini_change;

typedef struct surus_ini_change surus_ini_change;

/* Settings of one request: none while its values are in place. */
typedef struct {
	HashTable *modified; /* EG(modified_ini_directives) */
	surus_ini_change *changes;
	size_t count;
} surus_fiber_ini;

/* What settings control as the application has left it; freed with free(). Once the parts are known. */
void *surus_ini_take_idle(const surus_isolate *isolate);
/* The running request's settings go aside, the application's are in place. */
void surus_ini_save(surus_fiber_ini *to, const void *idle, const surus_isolate *isolate);
void surus_ini_load(surus_fiber_ini *from, const surus_isolate *isolate);
/* At the end of a request: the application's are in place, its own are gone. */
void surus_ini_reset(const void *idle, const surus_isolate *isolate);

#endif
