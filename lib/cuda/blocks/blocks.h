// SPDX-License-Identifier: MIT
// cuda/blocks: long signals by long filters, in parts; what its files share. All directions are
// forward problems (decision 18).
#ifndef PARTITA_CUDA_BLOCKS_H
#define PARTITA_CUDA_BLOCKS_H

#include "cuda/device/call.h"
#include "geometry/part_schedule.h"
#include "geometry/segments.h"
#include "parts.h"

enum cuda_blocks_way {
    CUDA_BLOCKS_PAIRS,     // spectra of both operands, all pairs summed: blocks_pairs.c
    CUDA_BLOCKS_LAGS,      // few outputs of long operands, each operand read once: blocks_lags.c
    CUDA_BLOCKS_DIVISIONS, // parts of sizes that the caller imposes: blocks_divisions.c
};

// How a problem is cut; chosen by its shape and the limits alone.
struct cuda_blocks_layout {
    enum cuda_blocks_way way;
    struct trimmed trimmed;
    size_t n, points;   // samples and points of a transform
    size_t part, parts; // taps of a part, parts
    size_t signal_part; // divisions: samples of a part of x
    size_t hop,
        blocks;         // outputs of a block, window or interval, blocks; of intervals as many as a
                        // division has at most
    size_t units, run;  // pairs: what is worked on at once, items of [batch][groups] and blocks of
                        // outputs; of the gradient of taps items of the batch, all blocks
    size_t transforms;  // pairs: of one call of a long transform
    size_t items, runs; // lags: windows of lines at once, runs of parts of each
    size_t filter, workspace; // bytes; workspace without what a long transform wants
    double seconds, flops;
};

struct cuda_blocks {
    struct shape shape; // what is run: the plan's problem, or the one that its gradient is
    struct cuda_blocks_layout layout;
    struct cuda_parts parts; // paired, if the way is
};

// A filter: of pairs and divisions the spectra [out][in of group][parts][planes][points], of lags
// the caller's taps.
struct cuda_blocks_filter {
    void *taps, *bias; // in the device's memory; bias NULL: none
};

static inline const struct cuda_blocks *cuda_blocks_of(const struct partita_plan *plan)
{
    return plan->state;
}

// The cheapest layout, or the one that the request asks for, of any way if `way` is negative; false
// if none fits, with a reason.
bool cuda_blocks_search(const struct request *request, int way, struct cuda_blocks_layout *ret,
                        char *reason, size_t size);

// Lines of y, for `lines` of them from `line` on; bias NULL: none.
struct cuda_sink cuda_blocks_sink(const struct partita_plan *plan, void *y, size_t line,
                                  size_t lines, const void *bias);

// The taps in causal order, cells [out][in of group], or of backward weight lines of gy; and lines
// of x. What windows there are is the caller's to say.
struct cuda_windows cuda_blocks_taps(const struct partita_plan *plan);
struct cuda_windows cuda_blocks_x(const struct partita_plan *plan);

// The bytes of spectra of pairs and divisions: of x and outputs of one run; of the taps, which are
// a filter or of backward weight a part of the workspace.
struct cuda_pairs_bytes {
    size_t inputs, taps, sums;
};
struct cuda_pairs_bytes cuda_pairs_bytes(const struct shape *shape,
                                         enum partita_direction direction,
                                         const struct cuda_blocks_layout *layout);

struct part_schedule cuda_blocks_divisions(const struct shape *shape,
                                           const struct cuda_blocks_layout *layout);

// Which lines of taps and inputs meet in the outputs of some units; the rest is the caller's to
// say.
struct cuda_pairs cuda_blocks_lines(const struct cuda_blocks *blocks, size_t unit, size_t units);

// Making spectra of the taps, complete when the call returns; running.
enum partita_status cuda_pairs_filter(const struct partita_plan *plan, void *spectra,
                                      const void *taps);
enum partita_status cuda_pairs_run(const struct cuda_call *call,
                                   const struct cuda_blocks_filter *filter);
enum partita_status cuda_divisions_run(const struct cuda_call *call,
                                       const struct cuda_blocks_filter *filter);
enum partita_status cuda_lags_run(const struct cuda_call *call, const void *taps, const void *bias);

#endif
