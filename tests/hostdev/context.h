// SPDX-License-Identifier: MIT
// Switches between stacks.
#ifndef HOSTDEV_CONTEXT_H
#define HOSTDEV_CONTEXT_H

#include <stddef.h>

#ifdef __x86_64__
struct context {
    void *stack; // its registers
};
#else
#include <ucontext.h>
struct context {
    ucontext_t saved;
};
#endif

// A context that runs `entry`, which never returns, on a stack of its own.
void context_make(struct context *context, void *stack, size_t bytes, void (*entry)(void));

// Saves the running context in `from` and continues `to`.
void context_switch(struct context *from, struct context *to);

#endif
