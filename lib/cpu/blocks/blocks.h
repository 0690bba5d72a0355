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
    LAGS_CHUNKS = 32, // chunks of blocks summed in a round, each by one thread
    // Variants are the methods, and imposed blocks with several divisions at once.
    PRIVATE_DIVISIONS = BLOCK_IMPOSED + 1,
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

// Bytes of the outputs of one channel.
static inline size_t blocks_row_bytes(const struct shape *shape)
{
    return mem_round(shape->axis[0].out * shape->sample_bytes);
}

// The transform and the buffers of a thread, which are in the workspace of a call; NULL: the caller
// sets their memory. Imposed blocks that are summed in time have no transform: their buffers hold
// the samples of a block and the sums of an interval.
struct block_transform blocks_transform(const struct partita_plan *plan, char *workspace);

// The taps of a path, in the caller's layout.
static inline const char *blocks_path(const struct partita_plan *plan, const char *taps,
                                      size_t path)
{
    const struct shape *shape = blocks_shape(plan);
    const size_t from = shape_path(shape, path / shape->group_in, path % shape->group_in);
    return taps + from * shape->axis[0].kernel * shape->tap_bytes;
}

// buffers->samples = a block of the taps of a path, or of a channel of gy, in causal order, widened
// to the signal's type. BLOCK_PAIRS divides it by the transform's gain; other methods append zeros
// up to the length of a transform.
void blocks_load_taps(const struct partita_plan *plan, const char *taps, size_t block,
                      const struct block_buffers *buffers);

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

// The methods: bytes of workspace that threads share, once the transform has been created; a call.
// pairs_run also computes backward weight.
size_t pairs_shared(const struct partita_plan *plan);
void pairs_run(const struct partita_plan *plan, const struct partita_filter *filter,
               const struct operands *operands, char *workspace);

size_t lags_shared(const struct partita_plan *plan);
void lags_run(const struct partita_plan *plan, const struct partita_filter *filter,
              const struct operands *operands, char *workspace);

size_t imposed_shared(const struct partita_plan *plan);
void imposed_run(const struct partita_plan *plan, const struct partita_filter *filter,
                 const struct operands *operands, char *workspace);

#endif
