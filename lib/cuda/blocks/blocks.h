// SPDX-License-Identifier: MIT
// Declarations that the files of cuda/blocks share. The engine convolves long signals with long
// filters, both split into blocks. All directions are computed as forward problems (decision 18).
#ifndef PARTITA_CUDA_BLOCKS_H
#define PARTITA_CUDA_BLOCKS_H

#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "geometry/block_search.h"
#include "geometry/part_schedule.h"
#include "transforms.h"

struct cuda_blocks {
    struct shape shape; // the problem that is computed: the plan's, or its gradient as a forward
                        // problem
    struct block_layout layout;
    struct cuda_fft fft;
};

static inline const struct cuda_blocks *cuda_blocks_of(const struct partita_plan *plan)
{
    return plan->state;
}

void cuda_blocks_estimate(const struct request *request, struct estimate *ret);

// cuda_blocks_points: points of the transforms of a layout. cuda_blocks_batch: transforms of one
// call of cuFFT.
size_t cuda_blocks_points(const struct shape *shape, const struct block_layout *layout);
size_t cuda_blocks_batch(const struct shape *shape, const struct block_layout *layout);

// The sink for rows row .. row + rows - 1 of y; bias NULL: none.
struct cuda_sink cuda_blocks_sink(const struct partita_plan *plan, void *y, size_t row, size_t rows,
                                  const void *bias);

// The taps in causal order, paths [out][in of group], or for backward weight rows of gy. The caller
// fills in the windows.
struct cuda_windows cuda_blocks_taps(const struct partita_plan *plan);

// Bytes of spectra for pairs and divisions: of x and of outputs, for the units that are computed
// together; and of the taps, which are in the filter or, for backward weight, in the workspace.
struct cuda_pairs_bytes {
    size_t inputs, taps, sums;
};
struct cuda_pairs_bytes cuda_pairs_bytes(const struct shape *shape,
                                         enum partita_direction direction,
                                         const struct block_layout *layout);

// The workspace for these spectra and `work_area` bytes for cuFFT.
size_t cuda_pairs_workspace(const struct shape *shape, enum partita_direction direction,
                            const struct block_layout *layout, size_t work_area);

// One call; its spectra are in the workspace or the filter.
struct cuda_blocks_call {
    const struct partita_plan *plan;
    const struct cuda_blocks *blocks;
    const struct operands *operands;
    char *inputs, *taps, *sums; // spectra; of lags the taps themselves
    const void *bias;
};

// Which rows of taps (left) and inputs (right) contribute to the outputs of some units:
// [item][group], or items of backward weight. The caller fills in the blocks.
struct cuda_pairs cuda_blocks_rows(const struct cuda_blocks_call *call, size_t unit, size_t units);

// cuda_pairs_filter: queues the transforms of a filter's taps; `area` has cuda_fft_work_bytes. The
// others run a call.
enum partita_status cuda_pairs_filter(const struct partita_plan *plan, void *spectra,
                                      const void *taps, void *area);
enum partita_status cuda_pairs_run(const struct cuda_blocks_call *call);
enum partita_status cuda_divisions_run(const struct cuda_blocks_call *call);
enum partita_status cuda_lags_run(const struct cuda_blocks_call *call);

#endif
