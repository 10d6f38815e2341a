/* Memory of environments that other threads may still be reading.
 *
 * getenv() reads `environ` without a lock. Most calls run on PHP's thread, which is also the one that changes
 * environments; but name lookups (libc's configuration: LOCALDOMAIN, RES_OPTIONS) run on helper threads of Surus and of
 * libraries. Such a call is counted in the epoch in which it began. Memory that is removed from an environment is put
 * on the list of the current epoch. An epoch ends when no call is left that began in the previous one; then the list of
 * the previous epoch is freed: calls that began later have read the environment without it.
 */
#include "os/env_readers.h"

#include <stdlib.h>

typedef struct retired {
	struct retired *next;
	void *memory;
} retired;

static unsigned epoch;      /* written by PHP's thread only */
static unsigned readers[2]; /* calls under way that began in an even, an odd epoch */
static retired *lists[2];

unsigned surus_env_read_begin(void)
{
	for (;;) {
		unsigned now = __atomic_load_n(&epoch, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&readers[now & 1], 1, __ATOMIC_SEQ_CST);
		/* Was it counted before the epoch ended? */
		if (__atomic_load_n(&epoch, __ATOMIC_SEQ_CST) == now) {
			return now & 1;
		}
		__atomic_fetch_sub(&readers[now & 1], 1, __ATOMIC_SEQ_CST);
	}
}

void surus_env_read_end(unsigned reader)
{
	__atomic_fetch_sub(&readers[reader], 1, __ATOMIC_SEQ_CST);
}

static void free_list(retired **list)
{
	while (*list) {
		retired *first = *list;
		*list = first->next;
		free(first->memory);
		free(first);
	}
}

/* Two steps free everything if there are no readers, which is nearly always the case. */
static void advance(void)
{
	for (int i = 0; i < 2; i++) {
		unsigned before = (epoch + 1) & 1;
		if (__atomic_load_n(&readers[before], __ATOMIC_SEQ_CST)) {
			return;
		}
		free_list(&lists[before]);
		__atomic_store_n(&epoch, epoch + 1, __ATOMIC_SEQ_CST);
	}
}

void surus_env_retire(void *memory)
{
	retired *entry = malloc(sizeof *entry);
	if (!entry) {
		return; /* lost rather than freed too early */
	}
	*entry = (retired){lists[epoch & 1], memory};
	lists[epoch & 1] = entry;
	advance();
}
