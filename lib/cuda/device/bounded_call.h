// SPDX-License-Identifier: MIT
// One call on a device. Arrays in device memory are used in place. Others are copied there for the
// duration of the call, through staging.h if the host's pages are not pinned. Engines are called
// with arrays in device memory only.
#ifndef PARTITA_CUDA_BOUNDED_CALL_H
#define PARTITA_CUDA_BOUNDED_CALL_H

#include "device.h"
#include "staging.h"

struct cuda_call {
    const struct partita_plan *plan;
    void *to;                     // in device memory
    const void *from[2];          // likewise
    void *workspace;              // likewise; its size is in the plan's choice
    size_t to_bytes;              // of the result
    void *caller_to;              // the caller's array for the result
    void *taken[4];               // to, from[0], from[1], workspace; NULL: not allocated by the
                                  // call
    bool queued;                  // as operands->queued
    struct cuda_staging *staging; // NULL: no array was pageable
};

// The bytes of the arrays of a call; 0: there is no such array. Arrays in device memory that are
// not aligned to `alignment` bytes are copied too; 0: kernels need no alignment.
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

// Those of the plan's direction, its workspace being the choice's shared bytes.
struct cuda_sizes cuda_sizes_of(const struct partita_plan *plan);

// Prepares a call on a plan; sizes NULL: those of its direction. The caller must call
// cuda_call_end, whatever was returned.
enum partita_status cuda_call_begin(const struct partita_plan *plan,
                                    const struct operands *operands, const struct cuda_sizes *sizes,
                                    void *workspace, struct cuda_call *ret);

// Copies the result to the caller's array if `status` is PARTITA_OK, releases memory, and waits
// unless operands->queued; returns the first failure.
enum partita_status cuda_call_end(struct cuda_call *call, enum partita_status status);

// Calls the plan's engine between cuda_call_begin and cuda_call_end.
enum partita_status cuda_bounded_run(const struct partita_plan *plan,
                                     const struct partita_filter *filter,
                                     const struct operands *operands, void *workspace);

// For engines: queues zeros for the whole result of a call on a plan.
enum partita_status cuda_clear_result(const struct partita_plan *plan, void *to);
// Queues bias (NULL: none) and activation of a whole result of sums; forward only.
enum partita_status cuda_finish_result(const struct partita_plan *plan, void *y, const void *bias);

#endif
