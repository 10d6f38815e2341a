#ifndef SURUS_ISOLATE_ORIGINAL_H
#define SURUS_ISOLATE_ORIGINAL_H

#include "base.h"

/* Bytes that all isolates of this process begin with. */
typedef struct {
	size_t at;   /* in the file */
	size_t size; /* 0: not there yet */
} surus_original;

/* Keeps `bytes`. False if that is not possible: copy them. */
bool surus_original_keep(surus_original *original, const void *bytes, size_t size);
/* A copy to write to, which takes memory for the pages that are written. free() frees it. NULL: copy the bytes. */
void *surus_original_copy(const surus_original *original);
/* As calloc(), but no page takes memory before it is written. */
void *surus_original_zeros(size_t size);

#endif
