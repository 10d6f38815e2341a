/* surus_stack_switch(void **from_sp, void *to_sp): saves the callee-saved registers on the running stack, stores its
 * stack pointer in *from_sp, and goes on where to_sp left off. The floating-point control words belong to a stack.
 * System V ABI for x86-64, AAPCS64 for aarch64. */
#if defined(__x86_64__)
	.text
	.globl surus_stack_switch
	.hidden surus_stack_switch
	.type surus_stack_switch, @function
surus_stack_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	subq $8, %rsp
	stmxcsr (%rsp)
	fnstcw 4(%rsp)
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	ldmxcsr (%rsp)
	fldcw 4(%rsp)
	addq $8, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size surus_stack_switch, .-surus_stack_switch

	/* The bottom of a new stack: r12 holds the function, r13 its argument. */
	.globl surus_stack_entry
	.hidden surus_stack_entry
	.type surus_stack_entry, @function
surus_stack_entry:
	.cfi_startproc
	.cfi_undefined rip
	xorl %ebp, %ebp
	movq %r13, %rdi
	call *%r12
	ud2
	.cfi_endproc
	.size surus_stack_entry, .-surus_stack_entry
#elif defined(__aarch64__)
	.text
	.globl surus_stack_switch
	.hidden surus_stack_switch
	.type surus_stack_switch, %function
surus_stack_switch:
	sub sp, sp, #176
	stp x19, x20, [sp, #0]
	stp x21, x22, [sp, #16]
	stp x23, x24, [sp, #32]
	stp x25, x26, [sp, #48]
	stp x27, x28, [sp, #64]
	stp x29, x30, [sp, #80]
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	mrs x9, fpcr
	str x9, [sp, #160]
	mov x9, sp
	str x9, [x0]
	mov sp, x1
	ldp x19, x20, [sp, #0]
	ldp x21, x22, [sp, #16]
	ldp x23, x24, [sp, #32]
	ldp x25, x26, [sp, #48]
	ldp x27, x28, [sp, #64]
	ldp x29, x30, [sp, #80]
	ldp d8, d9, [sp, #96]
	ldp d10, d11, [sp, #112]
	ldp d12, d13, [sp, #128]
	ldp d14, d15, [sp, #144]
	ldr x9, [sp, #160]
	msr fpcr, x9
	add sp, sp, #176
	ret
	.size surus_stack_switch, .-surus_stack_switch

	.globl surus_stack_entry
	.hidden surus_stack_entry
	.type surus_stack_entry, %function
surus_stack_entry:
	mov x29, xzr
	mov x0, x20
	blr x19
	brk #1
	.size surus_stack_entry, .-surus_stack_entry
#else
#error "surus: no stack switch for this processor"
#endif
	.section .note.GNU-stack, "", %progbits
