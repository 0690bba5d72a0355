// SPDX-License-Identifier: MIT
// Echo cancellers, as bench_adaptive measures them.
#ifndef BENCH_CANCELLERS_H
#define BENCH_CANCELLERS_H

#include <stddef.h>

// An implementation of one channel at 48 kHz. open returns NULL if it cannot serve these sizes;
// process takes a block.
struct canceller {
    const char *name;
    void *(*open)(size_t taps, size_t block);
    void (*process)(void *state, float *residual, const float *near_end, const float *far_end);
    void (*close)(void *state);
};

extern const struct canceller canceller_speexdsp;

#endif
