// SPDX-License-Identifier: MIT
// The filter of an engine: the taps in the layout of the engine's kernels, and the bias, both in
// device memory.
#ifndef PARTITA_CUDA_FILTER_H
#define PARTITA_CUDA_FILTER_H

#include "cuda/kernels/pass.h"
#include "cuda/kernels/windows.h"
#include "device.h"

struct cuda_filter {
    void *taps, *bias; // bias NULL: none
};

// How samples, taps and bias of a problem are stored.
static inline enum cuda_storage cuda_storage_of(const struct shape *shape)
{
    if (shape->half) return shape->signal == PARTITA_F16 ? CUDA_STORED_F16 : CUDA_STORED_BF16;
    return shape->f64 ? CUDA_STORED_F64 : CUDA_STORED_F32;
}

// Bytes of the caller's taps.
size_t cuda_taps_bytes(const struct shape *shape);

// Windows of the rows of an array in its order; the caller fills in count, first, hop and length.
struct cuda_windows cuda_row_windows(size_t size, bool complex_samples);

// The same of the rows of taps in causal order, [out][in of group] of the problem; those that an
// adjoint problem has `transposed` are paths [in of group][out] of the array. (A correlation has
// its taps reversed.)
struct cuda_windows cuda_taps_windows(const struct shape *shape, bool transposed);

// filter.bytes and filter.pack of a copy of the taps as they are.
struct filter_bytes cuda_filter_copy_bytes(const struct partita_plan *plan);
enum partita_status cuda_filter_copy(struct partita_filter *filter, const void *taps,
                                     const struct region *scratch);

// Queues packing of the taps arrays->from[0] for all directions of a filter, and a copy of the bias
// from[1] unless it is NULL, both in the device's memory. cuda_filter_scratch: the bytes of scratch
// memory there that this needs.
enum partita_status cuda_filter_queue(struct partita_filter *filter, const struct operands *arrays,
                                      const struct region *scratch);
size_t cuda_filter_scratch(const struct partita_filter *filter);

// The same of arrays in any memory; complete when the call returns. A workspace that is not in the
// device's memory is not used.
enum partita_status cuda_filter_repack(struct partita_filter *filter,
                                       const struct operands *operands, void *workspace);

// Members of struct filter_ops for every engine whose filters have filter.pack.
enum partita_status cuda_filter_create(struct partita_filter *filter, const void *taps);
enum partita_status cuda_filter_bias(struct partita_filter *filter, const void *bias);
void cuda_filter_destroy(struct partita_filter *filter);
#define CUDA_FILTER_OPS(filter_bytes, filter_pack)                                                 \
    .bytes = filter_bytes, .pack = filter_pack, .create = cuda_filter_create,                      \
    .bias = cuda_filter_bias, .destroy = cuda_filter_destroy

static inline void *cuda_filter_taps(const struct partita_filter *filter)
{
    return ((const struct cuda_filter *)filter->state)->taps;
}

// The bias that a call on a plan of the filter's direction adds; NULL: none.
static inline const void *cuda_filter_added(const struct partita_filter *filter)
{
    const struct cuda_filter *state = filter->state;
    return filter->plan->direction == PARTITA_FORWARD ? state->bias : NULL;
}

static inline struct cuda_arrays cuda_arrays_of(const struct partita_filter *filter,
                                                const struct operands *operands, void *workspace)
{
    return (struct cuda_arrays){operands->to, operands->from[0], cuda_filter_taps(filter),
                                cuda_filter_added(filter), workspace};
}

#endif
