/* For tests: finds bytes of libphp, of the extensions and of the libraries that change while PHP runs but are not
 * swapped with isolates. Each must be explained in tests/phpt/explained.txt. Compares the writable data and the
 * thread-local variables of each object that is loaded when PHP has started, except this program; not heaps. */
#include "base.h"
#include "isolate/isolate.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#define PIECE 4096
#define MAX_AREAS 1024
/* Changes with smaller gaps are reported as one. */
#define GAP 8

enum { WATCHED, SWAPPED, CHANGED };

typedef struct {
	char *start;
	size_t size;
	char *before;        /* as it was when it was last looked at */
	unsigned char *kind; /* of each byte */
	const char *object;  /* its file */
	uintptr_t base;      /* where the object, or what it has of this thread, begins */
	bool of_thread;
} area;

static area areas[MAX_AREAS];
static size_t area_count;
static bool complete;

static void add_area(const struct dl_phdr_info *info, char *start, char *end, bool of_thread)
{
	size_t size = start < end ? (size_t)(end - start) : 0;
	if (size == 0) {
		return;
	}
	char *before = malloc(size);
	unsigned char *kind = calloc(size, 1);
	if (!before || !kind || area_count == MAX_AREAS) {
		complete = false;
		return;
	}
	areas[area_count++] = (area){.start = start, .size = size, .before = before, .kind = kind, .object = info->dlpi_name,
		.base = of_thread ? (uintptr_t)start : info->dlpi_addr, .of_thread = of_thread};
}

static void mark(const void *address, size_t size, unsigned char kind)
{
	const char *from = address, *to = from + size;
	for (size_t i = 0; i < area_count; i++) {
		area *a = &areas[i];
		for (const char *at = MAX(from, a->start); at < MIN(to, a->start + a->size); at++) {
			a->kind[at - a->start] = kind;
		}
	}
}

/* Excludes the table in which the loader stores addresses of functions at their first call. */
static void mark_calls(const struct dl_phdr_info *info, const ElfW(Dyn) *entry)
{
	const char *table = NULL;
	size_t relocations = 0;
	for (; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_PLTGOT) {
			table = (const char *)entry->d_un.d_ptr;
		} else if (entry->d_tag == DT_PLTRELSZ) {
			relocations = entry->d_un.d_val / sizeof(ElfW(Rela));
		}
	}
	if (table && table < (const char *)info->dlpi_addr) {
		table += info->dlpi_addr; /* not relocated */
	}
	if (table) {
		mark(table, (relocations + 3) * sizeof(void *), SWAPPED);
	}
}

static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	if (!strchr(info->dlpi_name, '/')) {
		return 0; /* this program, and the kernel's */
	}
	uintptr_t read_only_from = 0, read_only_until = 0, page = (uintptr_t)sysconf(_SC_PAGESIZE);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		if (header->p_type == PT_GNU_RELRO) {
			read_only_from = info->dlpi_addr + header->p_vaddr;
			read_only_until = (read_only_from + header->p_memsz) & ~(page - 1);
		}
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		char *start = (char *)(info->dlpi_addr + header->p_vaddr), *end = start + header->p_memsz;
		if (header->p_type == PT_LOAD && (header->p_flags & PF_W)) {
			bool hides = (uintptr_t)start <= read_only_from && read_only_from < (uintptr_t)end;
			add_area(info, hides ? (char *)MAX((uintptr_t)start, read_only_until) : start, end, false);
		} else if (header->p_type == PT_TLS && info->dlpi_tls_data) {
			add_area(info, info->dlpi_tls_data, (char *)info->dlpi_tls_data + header->p_memsz, true);
		}
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
			mark_calls(info, (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
		}
	}
	return 0;
}

bool surus_changes_start(void)
{
	complete = true;
	dl_iterate_phdr(add_object, NULL);
	void *address;
	size_t size;
	for (size_t i = 0; surus_region_at(i, &address, &size); i++) {
		mark(address, size, SWAPPED);
	}
	for (size_t i = 0; i < area_count; i++) {
		memcpy(areas[i].before, areas[i].start, areas[i].size);
	}
	return complete;
}

void surus_changes_look(void)
{
	for (size_t i = 0; i < area_count; i++) {
		area *a = &areas[i];
		for (size_t from = 0; from < a->size; from += PIECE) {
			size_t size = MIN(PIECE, a->size - from);
			if (memcmp(a->before + from, a->start + from, size) == 0) {
				continue;
			}
			for (size_t at = from; at < from + size; at++) {
				if (a->kind[at] == WATCHED && a->before[at] != a->start[at]) {
					a->kind[at] = CHANGED;
				}
			}
			memcpy(a->before + from, a->start + from, size);
		}
	}
}

/* "object <tab> address in it <tab> length <tab> who"; for thread-local variables, "+" and the offset in their
 * block. */
static bool write_change(int file, const area *a, size_t from, size_t until, const char *who)
{
	char line[4096];
	size_t address = (uintptr_t)a->start + from - a->base;
	int length = snprintf(line, sizeof line, "%s\t%s%zu\t%zu\t%s\n", a->object, a->of_thread ? "+" : "", address, until - from, who);
	return length > 0 && (size_t)length < sizeof line && write(file, line, (size_t)length) == length;
}

bool surus_changes_write(const char *path, const char *who)
{
	int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (file < 0) {
		return false;
	}
	bool written = true;
	for (size_t i = 0; written && i < area_count; i++) {
		const area *a = &areas[i];
		for (size_t at = 0; at < a->size; at++) {
			if (a->kind[at] != CHANGED) {
				continue;
			}
			size_t until = at + 1;
			for (size_t next = until; next < a->size && next < until + GAP; next++) {
				if (a->kind[next] == SWAPPED) {
					break;
				}
				if (a->kind[next] == CHANGED) {
					until = next + 1;
				}
			}
			written = written && write_change(file, a, at, until, who);
			at = until;
		}
	}
	close(file);
	return written;
}
