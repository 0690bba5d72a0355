// SPDX-License-Identifier: MIT
// The filter of an engine: its taps, as its kernels read them, and the bias, in device memory.
#ifndef PARTITA_CUDA_FILTER_H
#define PARTITA_CUDA_FILTER_H

#include "device.h"

struct cuda_filter {
    void *taps, *bias; // bias NULL: none
};

// Bytes of the caller's taps.
size_t cuda_taps_bytes(const struct shape *shape);

// Makes filter->state with a copy of `bytes` bytes of taps in any memory.
enum partita_status cuda_filter_copy(struct partita_filter *filter, const void *taps, size_t bytes);

// Makes filter->state with `bytes` bytes of taps that `transform` queues from the caller's.
enum partita_status cuda_filter_transform(struct partita_filter *filter, const void *taps,
                                          size_t bytes,
                                          cudaError_t (*transform)(const struct partita_plan *plan,
                                                                   void *to, const void *taps));

// The functions of struct engine.
enum partita_status cuda_filter_bias(struct partita_filter *filter, const void *bias);
void cuda_filter_destroy(struct partita_filter *filter);

// The bias that a call adds, of a plan of the filter's direction.
static inline const void *cuda_filter_added(const struct partita_filter *filter)
{
    const struct cuda_filter *state = filter->state;
    return filter->plan->direction == PARTITA_FORWARD ? state->bias : NULL;
}

#endif
