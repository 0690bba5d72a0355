// SPDX-License-Identifier: MIT
// cpu/blocks: long signals by long filters, in parts. What its files share.
#ifndef PARTITA_BLOCKS_H
#define PARTITA_BLOCKS_H

#include "core/plan.h"
#include "geometry/part_schedule.h"
#include "geometry/segments.h"
#include "parts.h"

enum blocks_way {
    BLOCKS_PAIRS,     // spectra of both operands are kept, all pairs summed: blocks_pairs.c
    BLOCKS_LAGS,      // few outputs of long operands: one sum of all parts for a window of outputs:
                      // blocks_lags.c
    BLOCKS_DIVISIONS, // parts of sizes that the caller imposes: blocks_divisions.c
};

enum {
    LAGS_GROUP = 4,   // parts transformed before their products are summed
    LAGS_RUNS = 32,   // runs of parts summed at once, each by one thread
    LAGS_LEVELS = 24, // sums of 1, 2, 4 .. times as many runs, brought together in pairs
};

// How a problem is cut. Along its axis it is y[p] = sum over j < taps of g[j] * x[first + stride*p
// - j], with g from the first tap that any output sees to the last.
struct blocks_layout {
    enum blocks_way way;
    size_t first_tap, taps; // of the causal filter; no taps: the result is zero
    ptrdiff_t first;        // see above
    size_t outputs;         // at full rate, those between strides included
    size_t n;               // transform; 0: sums in time (divisions)
    size_t part, parts;     // taps of a part, parts
    size_t hop, blocks;     // outputs of a block or window, blocks
    size_t run;             // pairs: blocks that are worked on at once
    size_t signal_part;     // divisions: samples of a part of x
    double seconds, flops;
    size_t shared, worker, filter; // bytes of workspace and of a filter
};

struct blocks {
    struct shape shape; // what is run: the plan's problem, or the one that its gradient is
    struct blocks_layout layout;
    struct fft *fft; // NULL: sums in time
};

static inline const struct shape *blocks_shape(const struct partita_plan *plan)
{
    return &((const struct blocks *)plan->state)->shape;
}

// The cheapest layout, or the one that the request asks for, of any way if `way` is negative; false
// if none fits, with a reason.
bool blocks_search(const struct request *request, int way, struct blocks_layout *ret, char *reason,
                   size_t reason_size);

void blocks_explain(const struct partita_plan *plan, struct text *text);

// samples[n] = taps first .. first+count-1 of a cell in causal order, widened to the signal's type,
// and zeros. `narrow` holds n taps where the taps' type is not the signal's.
void blocks_load_taps(const struct shape *shape, char *samples, char *narrow, const void *taps,
                      size_t first, size_t count, size_t n);

// One task of making a filter, of which there is one for each part of each cell, reads this.
struct blocks_filtering {
    const struct partita_filter *filter;
    const char *taps;
    char *work; // [threads]
};

// Reserves the filter's state and `work_bytes` a thread, then runs all tasks.
enum partita_status blocks_filter(struct partita_filter *filter, const char *taps,
                                  size_t state_bytes, size_t work_bytes, task_fn *part);

// Exact sizes once the transform is there; making a filter's state; running.
void pairs_sizes(const struct partita_plan *plan, struct blocks *blocks);
enum partita_status pairs_filter(struct partita_filter *filter, const void *taps);
void pairs_forward(const struct partita_filter *filter, void *y, const void *x, void *workspace);

// Input blocks that the output blocks first .. end-1 see; spectra of parts.
struct segment_range pairs_inputs(const struct partita_plan *plan, size_t first, size_t end);
struct parts_kit pairs_kit(const struct partita_plan *plan);

// Backward weight: the parts of x and of gy are transformed, item by item, and their sums kept.
void weight_sizes(const struct partita_plan *plan, struct blocks *blocks);
void weight_run(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                void *workspace);

void divisions_sizes(const struct partita_plan *plan, struct blocks *blocks);
enum partita_status divisions_filter(struct partita_filter *filter, const void *taps);
void divisions_forward(const struct partita_filter *filter, void *y, const void *x,
                       void *workspace);

struct part_schedule blocks_divisions(const struct partita_plan *plan);

void lags_sizes(const struct partita_plan *plan, struct blocks *blocks);
enum partita_status lags_filter(struct partita_filter *filter, const void *taps);
// The taps are those of the filter, or without one given as they are.
void lags_forward(const struct partita_plan *plan, const struct partita_filter *filter,
                  const void *taps, void *y, const void *x, void *workspace);

#endif
