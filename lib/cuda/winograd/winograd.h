// SPDX-License-Identifier: MIT
// cuda/winograd: what its files share.
#ifndef PARTITA_CUDA_WINOGRAD_H
#define PARTITA_CUDA_WINOGRAD_H

#include "cuda/device/device.h"
#include "cuda/kernels/product.h"
#include "kernels.h"

// What an estimate decides.
struct cuda_winograd_choice {
    int split;      // winograd_split's number
    size_t batch;   // tiles at once
    int64_t chunks; // backward weight: of a batch's tiles, with sums of their own
};

// Everything about one direction: what is queued for a batch of tiles, of which the kernels'
// descriptions lack `first` and `n` alone. Forward and backward data: tiles of `from` are
// transformed, multiplied by the filter, and the sums are transformed to `to`. Backward weight:
// tiles of x (`from`) by those of gy (`to`), sums to `taps`.
struct cuda_winograd {
    struct cuda_winograd_choice choice;
    struct cuda_winograd_tiles from, to;
    struct cuda_winograd_taps taps;
    struct cuda_product product;
    size_t tiles, frequencies;
    bool covers; // backward data: gx has no other samples
    // Bytes of matrices in the workspace, behind each other: of a batch's tiles, of the other
    // operand's (backward weight: gy's tiles, else none, it is the filter), of sums.
    size_t from_bytes, other_bytes, sum_bytes;
};

// Functions of struct engine.
enum partita_status cuda_winograd_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace);
enum partita_status cuda_winograd_filter_create(struct partita_filter *filter, const void *taps);

#endif
