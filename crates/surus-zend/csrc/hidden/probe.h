/* Finds a variable in the writable segment of a shared object by the values that it has at certain times. */
#ifndef SURUS_HIDDEN_PROBE_H
#define SURUS_HIDDEN_PROBE_H

#include "base.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	char *start;          /* aligned to 8 bytes */
	size_t size;          /* bytes, a multiple of 8 */
	unsigned char *alive; /* one per byte: still a candidate */
} surus_probe;

/* `object` is a part of the file's name; false when no such object is loaded or memory is short. */
bool surus_probe_open(surus_probe *probe, const char *object);
/* The writable data of the object that contains `address`, without what the loader made read-only again. */
bool surus_writable_segment(const void *address, char **start, size_t *size);
void surus_probe_close(surus_probe *probe);

typedef bool (*surus_probe_match)(const void *address, void *context);

/* Keeps only the candidates, aligned to `unit` bytes, that match now. */
void surus_probe_keep(surus_probe *probe, size_t unit, surus_probe_match match, void *context);
/* The same for a value of `unit` bytes (1, 4 or 8). */
void surus_probe_keep_value(surus_probe *probe, size_t unit, unsigned long value);
/* The only remaining candidate; NULL when there is none or more than one. */
void *surus_probe_only(const surus_probe *probe);
/* Whether [address, address + size) lies in the segment. */
bool surus_probe_covers(const surus_probe *probe, const void *address, size_t size);

#endif
