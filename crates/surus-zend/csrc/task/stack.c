#include "task/stack.h"
#include "task/checker.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* More than one page, so that a large frame cannot step over it. */
#define GUARD_SIZE (64 * 1024)

extern void surus_stack_entry(void);

bool surus_stack_map(surus_stack *stack, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size = (size + page - 1) & ~(page - 1);
	stack->map_size = size + GUARD_SIZE;
	void *map = mmap(NULL, stack->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (map == MAP_FAILED) {
		return false;
	}
	if (mprotect(map, GUARD_SIZE, PROT_NONE) != 0) {
		munmap(map, stack->map_size);
		return false;
	}
	stack->map = map;
	stack->base = stack->map + GUARD_SIZE;
	stack->top = stack->map + stack->map_size;
	stack->valgrind_id = surus_ask_valgrind(SURUS_STACK_REGISTER, (uintptr_t)stack->base, (uintptr_t)stack->top);
	return true;
}

void surus_stack_unmap(surus_stack *stack)
{
	if (stack->map) {
		surus_ask_valgrind(SURUS_STACK_DEREGISTER, stack->valgrind_id, 0);
		munmap(stack->map, stack->map_size);
		stack->map = NULL;
	}
}

void surus_stack_trim(surus_stack *stack)
{
	const size_t keep = 64 * 1024;
	size_t size = (size_t)(stack->top - stack->base);
	if (size > keep) {
		madvise(stack->base, size - keep, MADV_DONTNEED);
	}
}

void *surus_stack_prepare(surus_stack *stack, void (*function)(void *), void *argument)
{
	uintptr_t *sp = (uintptr_t *)((uintptr_t)stack->top & ~(uintptr_t)15);
#if defined(__x86_64__)
	/* As surus_stack_switch leaves it: control words, r15 r14 r13 r12 rbx rbp, return address. At surus_stack_entry the
	 * stack pointer is 16-byte aligned; its call instruction makes the frame that the ABI requires. */
	sp -= 2;
	*--sp = (uintptr_t)surus_stack_entry;
	*--sp = 0;                    /* rbp */
	*--sp = 0;                    /* rbx */
	*--sp = (uintptr_t)function;  /* r12 */
	*--sp = (uintptr_t)argument;  /* r13 */
	*--sp = 0;                    /* r14 */
	*--sp = 0;                    /* r15 */
	*--sp = 0x0000037F00001F80;   /* x87 and SSE control words: their defaults */
#elif defined(__aarch64__)
	sp -= 22;
	memset(sp, 0, 22 * sizeof *sp);
	sp[0] = (uintptr_t)function;            /* x19 */
	sp[1] = (uintptr_t)argument;            /* x20 */
	sp[11] = (uintptr_t)surus_stack_entry;  /* x30 */
#endif
	return sp;
}

bool surus_stack_guards(const surus_stack *stack, const void *address)
{
	const char *at = address;
	return stack->map && at >= stack->map && at < stack->base;
}
