/* accel_globals of OPcache: which fields belong to an isolate and which to the process.
 *
 * Flags, directives, the request's working directory and include_path belong to the isolate. `xlat_table` is used only
 * during one compilation and `key` only during one include, neither of which may park. Shared memory and its locks
 * belong to all processes. */
#include "hidden/opcache.h"
#include "hidden/find.h"
#include "hidden/hidden.h"
#include "hidden/layout.h"
#include "hidden/opcache_locks.h"

#include "main/SAPI.h"

#include <dlfcn.h>

static surus_accel_tail *tail;

static const void *object_of(const void *address)
{
	Dl_info info;
	return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* OPcache replaces the include_path handler when it starts; without shared memory it does not start. */
static bool has_started(zend_ini_entry *enable)
{
	zend_ini_entry *include_path = surus_ini_entry("include_path");
	return include_path && object_of(include_path->on_modify) == object_of(enable->on_modify);
}

bool surus_find_opcache(surus_finder *finder)
{
	zend_ini_entry *enable = surus_ini_entry("opcache.enable");
	if (!enable || !has_started(enable)) {
		return true;
	}
	surus_accel_front *front = enable->mh_arg2;
	if (!front || (size_t)enable->mh_arg1 != offsetof(surus_accel_front, enabled)) {
		return surus_not_found(finder, "accel_globals", "opcache.enable is another kind of setting");
	}
	if (!front->enabled) {
		return true;
	}
	zend_string *path = surus_ini_entry("include_path")->value;
	surus_accel_tail *found = NULL;
	for (size_t offset = sizeof *front; offset < SURUS_ACCEL_DIRECTIVES_MAX; offset++) {
		surus_accel_tail *candidate = (surus_accel_tail *)((char *)front + offset);
		if (((uintptr_t)candidate & 7) == 0 && !candidate->cwd && candidate->include_path && candidate->include_path_check
			&& candidate->cwd_check && candidate->request_time == (time_t)sapi_get_request_time()
			&& zend_string_equals(candidate->include_path, path)) {
			if (found) {
				return surus_not_found(finder, "accel_globals", "its layout is ambiguous");
			}
			found = candidate;
		}
	}
	if (!found || front->counted || front->locked || found->cache_opline || found->cache_persistent_script) {
		return surus_not_found(finder, "accel_globals", "its layout is another one");
	}
	tail = found;
	char *middle = (char *)&found->root_hash;
	return surus_found(finder, "accel_globals", front, (char *)&found->xlat_table - (char *)front, SURUS_INIT_IMAGE)
		&& surus_found(finder, "accel_globals, second part", middle, (char *)(found + 1) - middle, SURUS_INIT_IMAGE)
		&& surus_find_opcache_lock(finder);
}

void surus_opcache_set_time(time_t now)
{
	if (tail) {
		tail->request_time = now;
	}
}

void surus_opcache_entered(void)
{
	if (tail) {
		tail->cache_opline = NULL;
		tail->cache_persistent_script = NULL;
		tail->current_persistent_script = NULL; /* of a compilation, which has ended */
	}
}
