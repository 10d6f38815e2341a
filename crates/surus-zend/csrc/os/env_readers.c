/* Memory of environments that other threads may still be reading.
 *
 * getenv() goes through `environ` without a lock. Most of it runs on PHP's thread, which is also the one that changes
 * environments; but a name lookup (libc's configuration: LOCALDOMAIN, RES_OPTIONS) runs on helper threads, of ours and
 * of libraries. Such a call is counted in the epoch in which it began. What is taken out of an environment is put on
 * the list of the epoch that runs; an epoch ends when no call is left that began in the one before, and then the list
 * of the one before is freed: whoever began later has found the environment without it.
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
		/* Counted before the epoch could end? */
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

/* Two steps free everything when nobody reads, which is nearly always. */
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
