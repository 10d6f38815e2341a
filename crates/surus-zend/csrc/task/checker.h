/* Tells valgrind about stacks. Without it a switch looks like a very large frame, and valgrind loses all that it knows
 * about the stack. As in valgrind's header, these are a few instructions without effect outside of valgrind: the tested
 * binary is the shipped one, and the build needs no package. */
#ifndef SURUS_TASK_CHECKER_H
#define SURUS_TASK_CHECKER_H

#include "base.h"

#include <stdint.h>

#define SURUS_STACK_REGISTER 0x1501
#define SURUS_STACK_DEREGISTER 0x1502

static inline uintptr_t surus_ask_valgrind(uintptr_t request, uintptr_t first, uintptr_t second)
{
	volatile uintptr_t arguments[6] = {request, first, second, 0, 0, 0};
	uintptr_t result = 0;
#if defined(__x86_64__)
	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
		: "=d"(result) : "a"(arguments), "0"(result) : "cc", "memory");
#elif defined(__aarch64__)
	register volatile uintptr_t *x4 __asm__("x4") = arguments;
	register uintptr_t x3 __asm__("x3") = 0;
	__asm__ volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61; orr x10, x10, x10"
		: "+r"(x3) : "r"(x4) : "cc", "memory");
	result = x3;
#endif
	return result;
}

#endif
