// SPDX-License-Identifier: MIT
// Splits arrays in host memory into micro-batches, each of which is a call of a plan for
// micro-batches. A micro-batch is some items of a batch; or, if an item is too large and has one
// axis, some outputs of its rows with the inputs that they read. (decision 27)
#ifndef PARTITA_CUDA_MICRO_BATCH_H
#define PARTITA_CUDA_MICRO_BATCH_H

#include "core/plan.h"

// Makes plan->micro_batch if splitting pays: a plan of the same engine that is compatible with the
// plan's filters. How arrays are split depends only on the shape, the workspace limit and the size
// of the device's memory.
enum partita_status cuda_micro_batch_plan(struct partita_plan *plan, const struct request *request);
void cuda_micro_batch_release(struct partita_plan *plan);

// Rows of an array, and the range of each row that belongs to micro-batch i: `bytes` bytes from
// first + i*hop on. The range holds zeros for bytes before the row and from `end` on. Pitch
// and hop 0: the same range for all micro-batches.
struct cuda_row_ranges {
    size_t rows, pitch, end, bytes;
    ptrdiff_t first, hop;
};

// The micro-batches of a call: of_set of them for each of `sets` consecutive sets of rows.
struct cuda_micro_batches {
    size_t sets, of_set;
    struct cuda_row_ranges to, from[2]; // of the operands; rows 0: there is no such array, or it is
                                        // a sum
    size_t sum_bytes;                   // bytes of a result that is a sum over all micro-batches;
                                        // 0: it is no such sum
};

// For a plan that has micro-batches; `from_taps`: for calls that read the taps in place.
struct cuda_micro_batches cuda_micro_batches_of(const struct partita_plan *plan, bool from_taps);

#endif
