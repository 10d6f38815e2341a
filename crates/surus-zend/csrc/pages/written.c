/* The first write to a page of a private mapping makes a copy of it, which is the process's own and not the file's. */
#include "pages/written.h"
#include "pages/layout.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* linux/fs.h, since 6.7 */
#define IS_FILE (1u << 2)
#define IS_PRESENT (1u << 3)
#define IS_SWAPPED (1u << 4)
typedef struct { uint64_t start, end, categories; } page_region;
typedef struct {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted, category_mask, category_anyof_mask,
		return_mask;
} scan_argument;
#define SCAN _IOWR('f', 16, scan_argument)

/* Bits of an entry of /proc/self/pagemap. */
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_SWAPPED (1ull << 62)
#define ENTRY_FILE (1ull << 61)

/* PHP's descriptors are below. */
#define LOWEST_OF_SERVER 1024

static enum { BY_SCAN, BY_PAGEMAP, BY_COMPARING } means = BY_SCAN;
static int pagemap = -1;
static pid_t owner; /* the file describes the process that has opened it */

void surus_written_start(void)
{
	const char *wanted = getenv("SURUS_SNAPSHOT_PAGES");
	if (wanted && strcmp(wanted, "pagemap") == 0) {
		means = BY_PAGEMAP;
	} else if (wanted && strcmp(wanted, "compare") == 0) {
		means = BY_COMPARING;
	}
}

void surus_written_open(void)
{
	if (means == BY_COMPARING || owner == getpid()) {
		return;
	}
	if (pagemap >= 0) {
		close(pagemap);
	}
	owner = getpid();
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	int high = pagemap < 0 ? -1 : fcntl(pagemap, F_DUPFD_CLOEXEC, LOWEST_OF_SERVER);
	if (high >= 0) {
		close(pagemap);
		pagemap = high;
	}
	if (pagemap < 0) {
		means = BY_COMPARING;
	}
}

/* False: this kernel does not know the call. */
static bool scan(char *start, size_t count, surus_page_found found, void *who)
{
	page_region regions[256];
	uint64_t from = (uintptr_t)start, end = from + count * SURUS_PAGE;
	while (from < end) {
		scan_argument argument = {
			.size = sizeof argument,
			.start = from,
			.end = end,
			.vec = (uintptr_t)regions,
			.vec_len = sizeof regions / sizeof *regions,
			.category_inverted = IS_FILE,
			.category_mask = IS_FILE,
			.category_anyof_mask = IS_PRESENT | IS_SWAPPED,
			.return_mask = IS_PRESENT,
		};
		int got = ioctl(pagemap, SCAN, &argument);
		if (got < 0 || argument.walk_end <= from) {
			return false;
		}
		for (int i = 0; i < got; i++) {
			for (uint64_t at = regions[i].start; at < regions[i].end; at += SURUS_PAGE) {
				found(who, (size_t)(at - (uintptr_t)start) / SURUS_PAGE);
			}
		}
		from = argument.walk_end;
	}
	return true;
}

static bool read_entries(char *start, size_t count, surus_page_found found, void *who)
{
	uint64_t entries[SURUS_CHUNK_PAGES];
	for (size_t page = 0; page < count;) {
		size_t wanted = MIN(SURUS_CHUNK_PAGES, count - page) * sizeof *entries;
		off_t at = (off_t)((uintptr_t)start / SURUS_PAGE + page) * (off_t)sizeof *entries;
		ssize_t got = pread(pagemap, entries, wanted, at);
		if (got < (ssize_t)sizeof *entries) {
			return false;
		}
		for (size_t i = 0; i < (size_t)got / sizeof *entries; i++, page++) {
			if ((entries[i] & (ENTRY_PRESENT | ENTRY_SWAPPED)) && !(entries[i] & ENTRY_FILE)) {
				found(who, page);
			}
		}
	}
	return true;
}

bool surus_written_find(char *start, size_t count, surus_page_found found, void *who)
{
	if (means == BY_SCAN) {
		if (scan(start, count, found, who)) {
			return true;
		}
		means = BY_PAGEMAP;
	}
	if (means == BY_PAGEMAP) {
		if (read_entries(start, count, found, who)) {
			return true;
		}
		means = BY_COMPARING;
	}
	return false;
}

static long count_faults(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

bool surus_written_has_faulted(long *seen)
{
	return count_faults() != *seen;
}

void surus_written_note_faults(long *seen)
{
	*seen = count_faults();
}
