#include "hidden/probe.h"

#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
	const char *object;  /* part of a file name, or NULL: */
	const char *address; /* anything inside the object */
	char *start;
	char *end;
} search;

static bool is_wanted(const struct dl_phdr_info *info, const search *wanted)
{
	if (wanted->object) {
		const char *name = strrchr(info->dlpi_name, '/');
		return strstr(name ? name : info->dlpi_name, wanted->object) != NULL;
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const char *start = (const char *)(info->dlpi_addr + header->p_vaddr);
		if (header->p_type == PT_LOAD && wanted->address >= start && wanted->address < start + header->p_memsz) {
			return true;
		}
	}
	return false;
}

/* The last writable PT_LOAD without the part that the loader made read-only again (RELRO). */
static int find_segment(struct dl_phdr_info *info, size_t size, void *data)
{
	search *wanted = data;
	if (!is_wanted(info, wanted)) {
		return 0;
	}
	uintptr_t read_only_until = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + header->p_vaddr;
		if (header->p_type == PT_GNU_RELRO) {
			read_only_until = start + header->p_memsz;
		} else if (header->p_type == PT_LOAD && (header->p_flags & PF_W)) {
			wanted->start = (char *)start;
			wanted->end = (char *)start + header->p_memsz;
		}
	}
	/* The loader protects whole pages: what follows the last of them stays writable. */
	read_only_until &= ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
	if ((uintptr_t)wanted->start < read_only_until && read_only_until < (uintptr_t)wanted->end) {
		wanted->start = (char *)read_only_until;
	}
	return wanted->start != NULL;
}

bool surus_writable_segment(const void *address, char **start, size_t *size)
{
	search wanted = {.address = address};
	if (!dl_iterate_phdr(find_segment, &wanted)) {
		return false;
	}
	*start = wanted.start;
	*size = (size_t)(wanted.end - wanted.start);
	return true;
}

bool surus_probe_open(surus_probe *probe, const char *object)
{
	search wanted = {.object = object};
	if (!dl_iterate_phdr(find_segment, &wanted)) {
		return false;
	}
	probe->start = (char *)(((uintptr_t)wanted.start + 7) & ~(uintptr_t)7);
	probe->size = (size_t)(wanted.end - probe->start) & ~(size_t)7;
	probe->alive = malloc(probe->size);
	if (!probe->alive) {
		return false;
	}
	memset(probe->alive, 1, probe->size);
	return true;
}

void surus_probe_close(surus_probe *probe)
{
	free(probe->alive);
	probe->alive = NULL;
}

void surus_probe_keep(surus_probe *probe, size_t unit, surus_probe_match match, void *context)
{
	for (size_t offset = 0; offset < probe->size; offset++) {
		if (probe->alive[offset] && (offset % unit != 0 || !match(probe->start + offset, context))) {
			probe->alive[offset] = 0;
		}
	}
}

typedef struct {
	size_t unit;
	unsigned long value;
} expected;

static bool equals(const void *address, void *context)
{
	const expected *wanted = context;
	switch (wanted->unit) {
	case 1:
		return *(const uint8_t *)address == wanted->value;
	case 4:
		return *(const uint32_t *)address == wanted->value;
	default:
		return *(const uint64_t *)address == wanted->value;
	}
}

void surus_probe_keep_value(surus_probe *probe, size_t unit, unsigned long value)
{
	expected wanted = {.unit = unit, .value = value};
	surus_probe_keep(probe, unit, equals, &wanted);
}

void *surus_probe_only(const surus_probe *probe)
{
	char *only = NULL;
	for (size_t offset = 0; offset < probe->size; offset++) {
		if (probe->alive[offset]) {
			if (only) {
				return NULL;
			}
			only = probe->start + offset;
		}
	}
	return only;
}

bool surus_probe_covers(const surus_probe *probe, const void *address, size_t size)
{
	const char *at = address;
	return at >= probe->start && size <= probe->size && at <= probe->start + probe->size - size;
}
