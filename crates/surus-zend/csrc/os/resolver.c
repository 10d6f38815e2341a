/* DNS searches with the settings of a resolver's state that belongs to another thread (src/blocking/resolver.rs). */
#include "base.h"

#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <string.h>

_Static_assert(sizeof ((surus_resolver *)0)->servers == sizeof ((struct __res_state *)0)->nsaddr_list, "as libc has them");

void surus_resolver_settings(const void *state, surus_resolver *settings)
{
	const struct __res_state *from = state;
	settings->retrans = from->retrans;
	settings->retry = from->retry;
	settings->options = from->options;
	settings->count = from->nscount;
	memcpy(settings->servers, from->nsaddr_list, sizeof settings->servers);
}

int surus_resolver_search(surus_resolver_call search, const surus_resolver *settings, const char *name, int class,
	int type, unsigned char *answer, int size, int *host_error)
{
	struct __res_state own;
	memset(&own, 0, sizeof own);
	if (res_ninit(&own) != 0) {
		*host_error = NETDB_INTERNAL;
		return -1;
	}
	own.retrans = settings->retrans;
	own.retry = settings->retry;
	own.options = settings->options;
	own.nscount = settings->count;
	memcpy(own.nsaddr_list, settings->servers, sizeof settings->servers);
	int length = search(&own, name, class, type, answer, size);
	*host_error = own.res_h_errno;
	res_nclose(&own);
	return length;
}

void surus_resolver_tell(void *state, int host_error)
{
	((struct __res_state *)state)->res_h_errno = host_error;
	h_errno = host_error;
}
