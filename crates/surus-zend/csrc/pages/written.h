/* Which pages of a private mapping were written. */
#ifndef SURUS_PAGES_WRITTEN_H
#define SURUS_PAGES_WRITTEN_H

#include "base.h"

typedef void (*surus_page_found)(void *who, size_t page);

/* Chooses the means: SURUS_SNAPSHOT_PAGES is "scan" (PAGEMAP_SCAN, Linux 6.7), "pagemap" (/proc/self/pagemap) or "compare"
 * (nothing of the kernel's); without it the first one that works here. */
void surus_written_start(void);
/* In a process that puts pages back. */
void surus_written_open(void);
/* Calls `found` for each of the `count` pages from `start` that is this process's own copy, in memory or swapped out. False:
 * the kernel does not tell, compare them. */
bool surus_written_find(char *start, size_t count, surus_page_found found, void *who);
/* Whether the process had page faults since the last call: without one it has written no page for the first time. */
bool surus_written_has_faulted(long *seen);
/* Sets `*seen` to the page faults so far. */
void surus_written_note_faults(long *seen);

#endif
