/* C stacks for PHP: mapped, with guard pages below, reused by their owners. */
#ifndef SURUS_TASK_STACK_H
#define SURUS_TASK_STACK_H

#include "base.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	char *map;       /* the mapping, the guard page first */
	size_t map_size;
	char *base;      /* lowest usable byte */
	char *top;       /* one past the highest byte */
	unsigned valgrind_id;
} surus_stack;

/* False when the mapping fails (vm.max_map_count, memory). */
bool surus_stack_map(surus_stack *stack, size_t size);
void surus_stack_unmap(surus_stack *stack);
/* Returns all pages but the topmost ones to the system; only for a stack on which nothing runs. */
void surus_stack_trim(surus_stack *stack);
/* The stack pointer with which surus_stack_switch starts `function(argument)` on this stack; it must never return. */
void *surus_stack_prepare(surus_stack *stack, void (*function)(void *), void *argument);
void surus_stack_switch(void **from_sp, void *to_sp);
/* Is the address in the guard page? */
bool surus_stack_guards(const surus_stack *stack, const void *address);

#endif
