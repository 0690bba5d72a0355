// SPDX-License-Identifier: MIT
// Shared by the files of the native transform: its tables (native_plan.c), its passes (native.c).
#ifndef PARTITA_NATIVE_H
#define PARTITA_NATIVE_H

#include <assert.h>

#include "kernels/fft_kernels.h"
#include "provider.h"

enum {
    MAX_PASSES = 16,
    TWIST_BYTES = 1 << 14, // of one group: stays in L1
    // A node of at most this size is computed pass by pass; larger ones child by child, so that
    // each child stays in the cache.
    NEAR_BYTES = 1 << 17,
    STEP_BYTES = 1 << 12,  // a node of at most this size is one step,
    CHUNK_BYTES = 1 << 13, // and so is this much of a larger node's pass
};

struct native {
    struct fft fft;
    const struct fft_kernels *kernels;
    int passes, radix[MAX_PASSES];
    size_t length[MAX_PASSES + 1]; // of a node that a pass splits, L at first; at last of a leaf
    size_t chunks[MAX_PASSES];     // number of steps into which the columns of a pass over one node
                                   // are split
    size_t steps[MAX_PASSES + 1];  // of a node that a pass splits, including all nodes below it
    void *factors[MAX_PASSES];     // of each pass's nodes, in order
    void *leaf_factors;
    int grouped_from; // the leaves below one node of this pass are a group; 0: all leaves are one
                      // group
    size_t group;     // leaves of a group
    void *twists;     // of the leaves of a group, the same for every group
    void *common;     // common factor of each group's twists, if there are several groups
};

static inline size_t complex_bytes(const struct native *native)
{
    return native->fft.f64 ? 16 : 8;
}

static inline size_t vector_bytes(const struct native *native)
{
    return native->kernels->lanes * complex_bytes(native);
}

bool native_serves(size_t n);
enum partita_status native_create(const struct fft_request *request,
                                  const struct partita_allocator *allocator, struct fft **ret);

#endif
