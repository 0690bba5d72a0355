// SPDX-License-Identifier: MIT
// cuda/winograd: what its files share.
#ifndef PARTITA_CUDA_WINOGRAD_H
#define PARTITA_CUDA_WINOGRAD_H

#include "cuda/device/device.h"
#include "cuda/kernels/product.h"
#include "geometry/tile_grid.h"
#include "kernels.h"

extern const struct engine cuda_winograd;

// Everything decided about one direction: what is queued for a run of tiles, of which the kernels'
// descriptions lack `first` and `n` alone. Forward and backward data: tiles of `from` are
// transformed, multiplied by the filter, and the sums are transformed to `to`. Backward weight:
// tiles of x (`from`) by those of gy (`to`), sums to `taps`.
struct cuda_winograd {
    struct tile_grid grid;
    struct cuda_winograd_tiles from, to;
    struct cuda_winograd_taps taps;
    struct cuda_product product;
    size_t frequencies;
    size_t tiles, run; // of the problem; of one run, at most
    // Bytes of matrices in the workspace, behind each other: of a run's tiles, of the other
    // operand's (backward weight: gy's tiles, else none, it is the filter), of sums.
    size_t from_bytes, other_bytes, sum_bytes;
};

static inline const struct tile_axis *cuda_winograd_axis(const struct cuda_winograd *winograd,
                                                         int axis)
{
    return &winograd->grid.axis[1 + axis];
}

enum partita_status cuda_winograd_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace);

// A filter's state: transformed taps, and the bias.
struct cuda_winograd_filter_state {
    void *taps, *bias; // in the device's memory; bias NULL: none
};

enum partita_status cuda_winograd_filter_create(struct partita_filter *filter, const void *taps);
enum partita_status cuda_winograd_filter_bias(struct partita_filter *filter, const void *bias);
void cuda_winograd_filter_destroy(struct partita_filter *filter);

#endif
