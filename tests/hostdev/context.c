// SPDX-License-Identifier: MIT
#include "context.h"

#ifdef __x86_64__
// As swapcontext without the signal mask, which costs two system calls: pushes the callee-saved
// registers (System V ABI) onto the old stack and pops them from the new one.
void hostdev_switch(void **from, void *to);
__asm__(".text\n"
        ".globl hostdev_switch\n"
        ".type hostdev_switch, @function\n"
        "hostdev_switch:\n"
        "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
        "popq %rcx\n jmp *%rcx\n" // not ret: the processor would expect the caller of this function
        ".size hostdev_switch, .-hostdev_switch\n");

void context_make(struct context *context, void *stack, size_t bytes, void (*entry)(void))
{
    enum { REGISTERS = 6 };
    void **top = (void **)((char *)stack + bytes);
    *--top = NULL; // return address
    *--top = (void *)entry;
    for (int i = 0; i < REGISTERS; i++) *--top = NULL;
    context->stack = top;
}

void context_switch(struct context *from, struct context *to)
{
    hostdev_switch(&from->stack, to->stack);
}
#else
void context_make(struct context *context, void *stack, size_t bytes, void (*entry)(void))
{
    getcontext(&context->saved);
    context->saved.uc_stack.ss_sp = stack;
    context->saved.uc_stack.ss_size = bytes;
    makecontext(&context->saved, entry, 0);
}

void context_switch(struct context *from, struct context *to)
{
    swapcontext(&from->saved, &to->saved);
}
#endif
