// SPDX-License-Identifier: MIT
// What the files of the native transform share: its tables (native_plan.c), its passes (native.c).
#ifndef PARTITA_NATIVE_H
#define PARTITA_NATIVE_H

#include <assert.h>

#include "base/sizes.h"
#include "kernels/fft_kernels.h"
#include "provider.h"

enum {
    MAX_PASSES = 16,
    TWIST_BYTES = 1 << 14, // of one group: stays in L1
    // A node this small is done pass by pass; larger ones child by child, so that these stay near.
    NEAR_BYTES = 1 << 17,
    STEP_BYTES = 1 << 12,  // a node this small is one step,
    CHUNK_BYTES = 1 << 13, // and this much of a larger node's pass
};

struct native {
    struct fft fft;
    const struct fft_kernels *kernels;
    bool f64, complex;
    size_t length; // L
    int passes, radix[MAX_PASSES];
    size_t chunks[MAX_PASSES];    // columns of a pass over one node are split into so many steps
    size_t steps[MAX_PASSES + 1]; // of a node that a pass splits, with all below it
    void *factors[MAX_PASSES];    // of each pass's nodes, in order
    void *leaf_factors;
    int grouped_from; // leaves below one node of this pass are a group; pass 0: all are one group
    size_t group;     // leaves of a group
    void *twists;     // of the leaves of any group
    void *common;     // what each group's twists have in common, if there are several
};

static inline size_t complex_bytes(const struct native *native)
{
    return native->f64 ? 16 : 8;
}

static inline size_t vector_bytes(const struct native *native)
{
    return native->kernels->lanes * complex_bytes(native);
}

bool native_serves(size_t n);
enum partita_status native_create(const struct fft_request *request,
                                  const struct partita_allocator *allocator, struct fft **ret);
void native_destroy(struct fft *fft);

#endif
