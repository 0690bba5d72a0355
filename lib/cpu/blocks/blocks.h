// SPDX-License-Identifier: MIT
// cpu/blocks: long signals by long filters, both in segments. What its files share.
#ifndef PARTITA_BLOCKS_H
#define PARTITA_BLOCKS_H

#include "core/plan.h"
#include "geometry/block_search.h"
#include "geometry/part_schedule.h"
#include "pair_sums.h"

enum {
    LAGS_GROUP = 4,   // segments transformed before their products are summed
    LAGS_CHUNKS = 32, // chunks of segments summed at once, each by one thread
    LAGS_DIGITS = 24, // sums of 1, 2, 4 .. times as many chunks, added in pairs
};

// plan->state.
struct blocks {
    struct shape shape; // what is run: the plan's problem, or the one that its gradient is
    struct block_layout layout;
    struct fft *fft; // NULL: sums in time
};

static inline const struct blocks *blocks_of(const struct partita_plan *plan)
{
    return plan->state;
}

static inline const struct shape *blocks_shape(const struct partita_plan *plan)
{
    return &blocks_of(plan)->shape;
}

static inline const struct block_layout *blocks_layout(const struct partita_plan *plan)
{
    return &blocks_of(plan)->layout;
}

// The cheapest layout that the request allows; false if none fits, with a reason.
bool blocks_search(const struct request *request, struct block_layout *ret, char *reason,
                   size_t size);

// What one thread has to itself of a call's workspace.
static inline struct arena blocks_worker(const struct partita_plan *plan, char *workspace,
                                         int worker)
{
    const struct estimate *choice = &plan->choice;
    return (struct arena){.base = workspace + choice->shared + (size_t)worker * choice->worker,
                          .size = choice->worker};
}

static inline struct segment_transform blocks_transform(const struct partita_plan *plan)
{
    return segment_transform(blocks_of(plan)->fft, plan->kernels, blocks_shape(plan)->sample_bytes);
}

// samples[n] = taps first .. first+count-1 of a path in causal order, widened to the signal's type,
// and zeros. `narrow` holds n taps where the taps' type is not the signal's.
struct blocks_taps {
    const void *taps;
    size_t first, count, n;
};
void blocks_load_taps(const struct shape *shape, const struct blocks_taps *taps, char *samples,
                      char *narrow);

// The taps of a segment as a filter or gy holds them, of n samples.
struct blocks_taps blocks_segment(const struct partita_plan *plan, const char *taps, size_t path,
                                  size_t segment, size_t n);

// One task of making a filter, of which there is one for each segment of each path, reads this.
struct blocks_filtering {
    const struct partita_filter *filter;
    const char *taps;
    char *work; // work_bytes a thread
    size_t work_bytes;
};

// Reserves the filter's state and `work_bytes` a thread, then runs all tasks.
enum partita_status blocks_filter(struct partita_filter *filter, const char *taps,
                                  size_t state_bytes, size_t work_bytes, task_fn *task);

// Of each method: exact bytes in the layout, once the transform is there; making a filter; running
// the problem as a forward one.
void pairs_sizes(const struct partita_plan *plan, struct block_layout *layout);
enum partita_status pairs_filter(struct partita_filter *filter, const void *taps);
void pairs_run(const struct partita_plan *plan, const struct partita_filter *filter,
               const struct operands *operands, char *workspace);

void lags_sizes(const struct partita_plan *plan, struct block_layout *layout);
enum partita_status lags_filter(struct partita_filter *filter, const void *taps);
void lags_run(const struct partita_plan *plan, const struct partita_filter *filter,
              const struct operands *operands, char *workspace);

void imposed_sizes(const struct partita_plan *plan, struct block_layout *layout);
enum partita_status imposed_filter(struct partita_filter *filter, const void *taps);
void imposed_run(const struct partita_plan *plan, const struct partita_filter *filter,
                 const struct operands *operands, char *workspace);

// Backward weight: the segments of x and of gy are transformed, item by item, and their sums kept.
void weight_sizes(const struct partita_plan *plan, struct block_layout *layout);
void weight_run(const struct partita_plan *plan, const struct operands *operands, char *workspace);

// The segments of x that the output blocks first .. end-1 read.
struct segment_range pairs_inputs(const struct partita_plan *plan, size_t first, size_t end);

// Where segment `index` of a channel of x starts, and its samples.
void pairs_load_input(const struct partita_plan *plan, const char *x, ptrdiff_t index,
                      char *samples);

// Imposed segments: which pairs meet where.
struct part_schedule imposed_schedule(const struct partita_plan *plan);

#endif
