// SPDX-License-Identifier: MIT
// cuda/blocks: long signals by long filters, in parts; what its files share. All directions are
// forward problems (decision 18).
#ifndef PARTITA_CUDA_BLOCKS_H
#define PARTITA_CUDA_BLOCKS_H

#include "cuda/device/call.h"
#include "cuda/device/filter.h"
#include "geometry/block_search.h"
#include "geometry/part_schedule.h"
#include "parts.h"

struct cuda_blocks {
    struct shape shape; // what is run: the plan's problem, or the one that its gradient is
    struct block_layout layout;
    struct cuda_fft fft;
};

static inline const struct cuda_blocks *cuda_blocks_of(const struct partita_plan *plan)
{
    return plan->state;
}

// The cheapest layout, which is the decision of an estimate; false if none fits, with a reason.
bool cuda_blocks_search(const struct request *request, struct block_layout *ret, char *reason,
                        size_t size);

// Points of the transforms of a layout; transforms of one call of cuFFT.
size_t cuda_blocks_points(const struct shape *shape, const struct block_layout *layout);
size_t cuda_blocks_batch(const struct shape *shape, const struct block_layout *layout);

// Rows of y, `rows` of them from `row` on; bias NULL: none.
struct cuda_sink cuda_blocks_sink(const struct partita_plan *plan, void *y, size_t row, size_t rows,
                                  const void *bias);

// The taps in causal order, paths [out][in of group], or of backward weight rows of gy; and rows of
// x. The caller fills in the windows.
struct cuda_windows cuda_blocks_taps(const struct partita_plan *plan);
struct cuda_windows cuda_blocks_x(const struct partita_plan *plan);

// The bytes of spectra of pairs and divisions: of x and outputs of the units in work; of the taps,
// which are a filter or of backward weight a part of the workspace.
struct cuda_pairs_bytes {
    size_t inputs, taps, sums;
};
struct cuda_pairs_bytes cuda_pairs_bytes(const struct shape *shape,
                                         enum partita_direction direction,
                                         const struct block_layout *layout);

// The workspace for these, with so many bytes of cuFFT's work area.
size_t cuda_pairs_workspace(const struct shape *shape, enum partita_direction direction,
                            const struct block_layout *layout, size_t work_area);

struct part_schedule cuda_blocks_divisions(const struct shape *shape,
                                           const struct block_layout *layout);

// A call by pairs or divisions: its spectra and arrays.
struct cuda_blocks_call {
    const struct cuda_blocks *blocks;
    char *inputs, *taps, *sums; // spectra
    const struct cuda_call *arrays;
    const void *bias;
};

// Begins a call; cuda_fft_end of blocks->fft is to follow, whatever was returned.
enum partita_status cuda_blocks_call_begin(const struct cuda_call *call,
                                           const struct cuda_filter *filter,
                                           struct cuda_blocks_call *ret);

// Which rows of taps and inputs meet in the outputs of some units; left are the taps. The caller
// fills in blocks.
struct cuda_pairs cuda_blocks_rows(const struct cuda_blocks_call *call, size_t unit, size_t units);

// Queues spectra of a filter; running.
enum partita_status cuda_pairs_filter(const struct partita_plan *plan, void *spectra,
                                      const void *taps);
enum partita_status cuda_pairs_run(const struct cuda_call *call, const struct cuda_filter *filter);
enum partita_status cuda_divisions_run(const struct cuda_call *call,
                                       const struct cuda_filter *filter);
enum partita_status cuda_lags_run(const struct cuda_call *call, const void *taps, const void *bias);

#endif
