// SPDX-License-Identifier: MIT
// One call on a device: arrays that are there already are used as they are, others get a copy there
// for the time of the call, through staging.h where the host's pages are not pinned.
#ifndef PARTITA_CUDA_CALL_H
#define PARTITA_CUDA_CALL_H

#include "device.h"
#include "staging.h"

struct cuda_call {
    const struct partita_plan *plan;
    void *to;                     // in device memory
    const void *from[2];          // likewise
    void *workspace;              // likewise; as large as the plan's choice says
    size_t to_bytes;              // of the result
    void *caller_to;              // where the result belongs
    void *own[4];                 // to, from, workspace, where the call allocated them
    bool queued;                  // as operands->queued
    struct cuda_staging *staging; // NULL: nothing was pageable
};

// The bytes of the arrays of a call; 0 where there is none. Arrays of the device's that are not at
// a multiple of `alignment` bytes get a copy too; 0: kernels take them anywhere.
struct cuda_sizes {
    size_t to, from[2], workspace, alignment;
};

// Bytes of x and y of the whole batch.
static inline size_t cuda_input_bytes(const struct shape *shape)
{
    return shape->batch * shape->in_channels * shape_inputs(shape) * shape->sample_bytes;
}

static inline size_t cuda_output_bytes(const struct shape *shape)
{
    return shape->batch * shape->out_channels * shape_outputs(shape) * shape->sample_bytes;
}

// Prepares a call on a plan; sizes NULL: those of its direction. cuda_call_end is to follow,
// whatever was returned.
enum partita_status cuda_call_begin(const struct partita_plan *plan,
                                    const struct operands *operands, const struct cuda_sizes *sizes,
                                    void *workspace, struct cuda_call *ret);

// Copies the result to the caller if `status` is PARTITA_OK, releases, waits unless the caller
// will; returns the first failure.
enum partita_status cuda_call_end(struct cuda_call *call, enum partita_status status);

#endif
