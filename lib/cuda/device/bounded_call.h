// SPDX-License-Identifier: MIT
// Calls on a device. Arrays in device memory are used in place. Others are copied there for the
// duration of the call, through staging.h if the host's pages are not pinned; or by micro-batches:
// while one is computed, the next one is copied to the device and the previous one is copied back,
// and the device holds the arrays of two (decision 27). Engines are called with arrays in device
// memory only.
#ifndef PARTITA_CUDA_BOUNDED_CALL_H
#define PARTITA_CUDA_BOUNDED_CALL_H

#include "device.h"
#include "micro_batch.h"

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

// A call that queues some work.
struct cuda_call {
    const struct partita_plan *plan; // which says the device
    struct cuda_sizes sizes;
    const struct cuda_micro_batches *split; // NULL: of whole arrays
    enum partita_status (*queue)(void *context, const struct operands *operands, void *workspace);
    void *context;
};

// Runs a call on arrays in any memory, or if an array that `parts` splits is not in device memory
// that one (NULL: there is none). The workspace has the size that `call` says; one that is not in
// device memory is not used. Waits for all work, also after a failure, and returns the first
// failure.
enum partita_status cuda_call_run(const struct cuda_call *call, const struct cuda_call *parts,
                                  const struct operands *operands, void *workspace);

// Calls the plan's engine, by micro-batches if the plan has them.
enum partita_status cuda_bounded_run(const struct partita_plan *plan,
                                     const struct partita_filter *filter,
                                     const struct operands *operands, void *workspace);

// Queues to[i] = x[i] + y[i] for two arrays of `bytes` bytes of the plan's samples or taps.
enum partita_status cuda_add(const struct partita_plan *plan, void *to, const void *x,
                             const void *y, size_t bytes);

// For engines: queues zeros for the whole result of a call on a plan.
enum partita_status cuda_clear_result(const struct partita_plan *plan, void *to);
// Queues bias (NULL: none) and activation of a whole result of sums; forward only.
enum partita_status cuda_finish_result(const struct partita_plan *plan, void *y, const void *bias);

#endif
