// SPDX-License-Identifier: MIT
// Declarations that the files of cpu/blocks share. The engine convolves long signals with long
// filters, both split into blocks.
#ifndef PARTITA_BLOCKS_H
#define PARTITA_BLOCKS_H

#include "core/plan.h"
#include "geometry/block_search.h"
#include "geometry/part_schedule.h"
#include "pair_sums.h"

enum {
    LAGS_GROUP = 4,   // blocks transformed before their products are summed
    LAGS_CHUNKS = 32, // chunks of blocks summed at once, each by one thread
    LAGS_DIGITS = 24, // sums of 1, 2, 4, .. times LAGS_CHUNKS chunks, added in pairs
};

// plan->state.
struct blocks {
    struct shape shape; // the problem that is computed: the plan's, or its gradient as a forward
                        // problem
    struct block_layout layout;
    struct fft *fft; // NULL: direct sums without transforms
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

void blocks_estimate(const struct request *request, struct estimate *ret);

static inline struct block_transform blocks_transform(const struct partita_plan *plan)
{
    return block_transform(blocks_of(plan)->fft, plan->kernels, blocks_shape(plan)->sample_bytes);
}

// Buffers of one thread: samples and spectra (imposed blocks that are summed in time: samples of
// a block and of an interval), a block of the taps before it is widened, and scratch.
struct blocks_buffers {
    char *samples, *narrow, *scratch, *spectra;
};
struct blocks_buffers blocks_buffers_layout(const struct partita_plan *plan, struct arena *arena);
size_t blocks_buffers_bytes(const struct partita_plan *plan);

static inline struct blocks_buffers blocks_worker_buffers(const struct partita_plan *plan,
                                                          char *workspace, int worker)
{
    const struct estimate *choice = &plan->choice;
    struct arena arena = {.base = workspace + choice->shared + (size_t)worker * choice->worker,
                          .size = choice->worker};
    return blocks_buffers_layout(plan, &arena);
}

// The taps of a path, in the caller's layout.
static inline const char *blocks_path(const struct partita_plan *plan, const char *taps,
                                      size_t path)
{
    const struct shape *shape = blocks_shape(plan);
    const size_t from = shape_path(shape, path / shape->group_in, path % shape->group_in);
    return taps + from * shape->axis[0].kernel * shape->tap_bytes;
}

// samples = a block of the taps of a path, or of a channel of gy, in causal order, widened to the
// signal's type. BLOCK_PAIRS divides it by the transform's gain; other methods append zeros up to
// the length of a transform. `narrow` is used if the taps' type is not the signal's.
void blocks_load_taps(const struct partita_plan *plan, const char *taps, size_t block,
                      char *samples, char *narrow);

struct filter_bytes blocks_filter_bytes(const struct partita_plan *plan);
enum partita_status blocks_filter_pack(struct partita_filter *filter, const void *taps,
                                       const struct region *scratch);

// Bytes of a block of the taps as a filter of lags or of imposed blocks holds it: a spectrum,
// or the causal taps.
size_t blocks_taps_bytes(const struct partita_plan *plan);

// The spectra of a path, or of a channel of gy: the one at `index` of those at `spectra`.
static inline struct block_spectra blocks_taps_spectra(const struct partita_plan *plan,
                                                       char *spectra, size_t index)
{
    const size_t count = blocks_layout(plan)->tap_blocks;
    const size_t bytes = block_spectra_bytes(blocks_of(plan)->fft->lines, count);
    return (struct block_spectra){spectra + index * bytes, count};
}

// The methods (METHODS in blocks.c). pairs_run also computes backward weight.
void pairs_sizes(const struct partita_plan *plan, struct block_layout *layout);
void pairs_run(const struct partita_plan *plan, const struct partita_filter *filter,
               const struct operands *operands, char *workspace);

void lags_sizes(const struct partita_plan *plan, struct block_layout *layout);
void lags_run(const struct partita_plan *plan, const struct partita_filter *filter,
              const struct operands *operands, char *workspace);

void imposed_sizes(const struct partita_plan *plan, struct block_layout *layout);
void imposed_run(const struct partita_plan *plan, const struct partita_filter *filter,
                 const struct operands *operands, char *workspace);

#endif
