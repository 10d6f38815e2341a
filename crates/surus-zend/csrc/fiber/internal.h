/* Shared by the files that save and end per-fiber context. */
#ifndef SURUS_FIBER_INTERNAL_H
#define SURUS_FIBER_INTERNAL_H

#include "base.h"
#include "fiber/ini.h"
#include "fiber/parts.h"
#include "fiber/ticks.h"
#include "fiber/values.h"
#include "task/state.h"

#define SURUS_SUPERGLOBALS 8 /* $_SESSION is the last */

extern zend_string *surus_superglobal_names[SURUS_SUPERGLOBALS];

struct surus_fiber_state {
	surus_values values;
	zend_fiber_context context; /* what user fibers come back to */
	zval superglobals[SURUS_SUPERGLOBALS];
	bool has_superglobals;
	surus_fiber_ini ini;
	surus_fiber_parts parts;
	void *random;
};

struct surus_idle {
	surus_values values;
	char *parts;
	void *ini; /* what settings control */
	php_stream_context *context; /* the application's default for streams, or NULL */
	surus_ticks ticks; /* the application's tick functions */
	struct surus_fiber_state *main; /* the boot's own state, while a fiber's is installed */
	surus_task *installed;          /* whose values are in place; NULL: the boot's */
};

static inline struct surus_idle *surus_idle_of(surus_isolate *isolate)
{
	return isolate->idle;
}

#endif
