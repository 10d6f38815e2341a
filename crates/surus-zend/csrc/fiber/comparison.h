/* Compares many pieces of memory with one copy of all of them, faster than a memcmp() for each. */
#ifndef SURUS_FIBER_COMPARISON_H
#define SURUS_FIBER_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

/* From now on compares the `size` bytes at `address` too; their copy is `offset` bytes into the copy. */
void surus_comparison_add(const void *address, size_t size, size_t offset);
/* Whether all bytes that were added are those of the copy. */
bool surus_comparison_holds(const char *copy);

#endif
