// SPDX-License-Identifier: MIT
// Arrays in host memory in micro-batches, each for a plan of its own: so many items of a batch;
// where an item is too large and has one axis, so many outputs of its rows with the inputs that
// they read; where few outputs read long taps, so many taps. (decision 27)
#ifndef PARTITA_CUDA_MICRO_BATCH_H
#define PARTITA_CUDA_MICRO_BATCH_H

#include "core/plan.h"

// Makes plan->micro_batch where arrays are worth splitting: by the same engine, for a filter of the
// plan's. How they are split follows from the shape, the workspace limit and the size of the
// device's memory alone.
enum partita_status cuda_micro_batch_plan(struct partita_plan *plan, const struct request *request);
void cuda_micro_batch_release(struct partita_plan *plan);

// Rows of an array, and the range of each that belongs to micro-batch i: bytes first + i*hop .. +
// bytes - 1, with zeros for what is before the row or from `end` on, which no output reads. Pitch
// and hop 0: the same for all.
struct cuda_row_ranges {
    size_t rows, pitch, end, bytes;
    ptrdiff_t first, hop;
};

// The micro-batches of a call: of_set for each of `sets` sets of rows, which follow each other.
struct cuda_micro_batches {
    size_t sets, of_set;
    struct cuda_row_ranges to, from[2]; // of operands; no rows: there is no such array, or a sum
    size_t sum_bytes;                   // of a result that is a sum over all; 0: it is not
};

// Of a plan that has them; `from_taps`: of calls that read the taps in place.
struct cuda_micro_batches cuda_micro_batches_of(const struct partita_plan *plan, bool from_taps);

// Of the gradient of the bias, *ret_shape having batch and outputs of a micro-batch of gy; false if
// gy stays whole.
bool cuda_micro_batches_of_bias(const struct partita_plan *plan, struct cuda_micro_batches *ret,
                                struct shape *ret_shape);

// Whether they are of taps: those of the call, or filter_taps.
bool cuda_micro_batches_of_taps(const struct partita_plan *plan);

#endif
