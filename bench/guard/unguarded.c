/* Preloaded, it keeps the server from guarding connections where UNGUARDED is set: the guard wants a place in each function,
 * and gets none. For bench/guard/instructions, and to see what the guard keeps from happening.
 *
 * Valgrind takes the kernel's vDSO away, and a library of the server looks for it where the kernel says it is: there is a page
 * without one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <elf.h>

#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif

int zend_get_resource_handle(const char *module_name);

int zend_get_resource_handle(const char *module_name)
{
	int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "zend_get_resource_handle");
	return getenv("UNGUARDED") && strcmp(module_name, "Surus") == 0 ? -1 : real(module_name);
}

__attribute__((constructor)) static void stand_for_the_vdso(void)
{
	Elf64_auxv_t about[64] = {0};
	int size = prctl(PR_GET_AUXV, about, sizeof about, 0, 0);
	for (size_t i = 0; size > 0 && i < (size_t)size / sizeof *about; i++) {
		if (about[i].a_type == AT_SYSINFO_EHDR && getauxval(AT_SYSINFO_EHDR) == 0) {
			mmap((void *)about[i].a_un.a_val, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		}
	}
}
