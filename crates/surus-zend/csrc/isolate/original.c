/* Memory with the same bytes in every isolate: a private mapping of a file in memory, laid over what malloc() has allocated. A page
 * is copied when it is first written. malloc() and realloc() need not know: they treat the pages as any others, and the
 * mapping ends when they return them to the system. */
#include "isolate/original.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
/* Descriptors below are PHP's. */
#define FIRST_DESCRIPTOR 1024

static int file = -1;
static size_t file_size;

static size_t whole_pages(size_t size)
{
	return (size + PAGE - 1) / PAGE * PAGE;
}

static bool has_file(void)
{
	if (file < 0) {
		int low = memfd_create("surus isolates", MFD_CLOEXEC);
		file = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
		if (low >= 0) {
			close(low);
		}
	}
	return file >= 0;
}

bool surus_original_keep(surus_original *original, const void *bytes, size_t size)
{
	/* Without it less memory is shared, and nothing else. */
	size_t whole = whole_pages(size);
	if (!has_file() || ftruncate(file, (off_t)(file_size + whole))) {
		return false;
	}
	void *written = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)file_size);
	if (written == MAP_FAILED) {
		return false;
	}
	memcpy(written, bytes, size);
	munmap(written, whole);
	*original = (surus_original){file_size, size};
	file_size += whole;
	return true;
}

void *surus_original_copy(const surus_original *original)
{
	void *copy;
	size_t size = whole_pages(original->size);
	if (posix_memalign(&copy, PAGE, size)) {
		return NULL;
	}
	/* Refused where the process has too many mappings, and by valgrind. Linux may have unmapped the pages then: malloc() must not get
	 * them back. */
	return mmap(copy, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, (off_t)original->at) == MAP_FAILED ? NULL : copy;
}

void *surus_original_zeros(size_t size)
{
	void *zeros;
	size_t whole = whole_pages(size);
	if (posix_memalign(&zeros, PAGE, whole)) {
		return NULL;
	}
	/* Not MADV_DONTNEED: where malloc() gives memory again that was a copy of an original, the original's bytes would come back. */
	return mmap(zeros, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? NULL : zeros;
}
