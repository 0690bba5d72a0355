// SPDX-License-Identifier: MIT
// What the files of cpu/depthwise share: which planes lie side by side in the lanes of a vector,
// and its two ways, sums tap by tap over packed boxes (depthwise_direct.c, depthwise_weight.c) and
// transforms (depthwise_fft.c).
#ifndef PARTITA_DEPTHWISE_H
#define PARTITA_DEPTHWISE_H

#include "core/plan.h"
#include "cpu/conv/pass.h"

enum { DEPTHWISE_LANES = CONV_BLOCK_BYTES / 4 }; // at most; of f64 half as many

// The numbers of estimate.variant.
enum depthwise_way { DEPTHWISE_DIRECT, DEPTHWISE_FFT };

// A block of lanes is a run of input channels of one image; what is left of the channels at the end
// lies side by side with the same channels of further images. Lane l holds channel first + l %
// channels.
struct depthwise_block {
    size_t first, channels, images;
};

size_t depthwise_blocks(const struct shape *shape);
struct depthwise_block depthwise_block(const struct shape *shape, size_t i);

// Runs of images of a block.
size_t depthwise_turns(const struct shape *shape, const struct depthwise_block *block);

// The lanes of one block in one turn. `plane` of a lane is (item * in_channels + channel) * planes:
// where its planes begin in an array with that many planes for each input channel. Lanes from
// `used` on are empty: zeros.
struct depthwise_lanes {
    size_t used, plane[DEPTHWISE_LANES];
};

struct depthwise_lanes depthwise_lanes(const struct shape *shape,
                                       const struct depthwise_block *block, size_t turn,
                                       size_t planes);

// A block and a turn of it: the tasks of forward and backward data, block after block.
struct depthwise_task {
    size_t block, turn;
};

size_t depthwise_tasks(const struct shape *shape);
struct depthwise_task depthwise_task(const struct shape *shape, size_t i);

// The lanes of a task; none of the one behind the last.
struct depthwise_lanes depthwise_task_lanes(const struct shape *shape, size_t i, size_t planes);

static inline size_t depthwise_width(const struct shape *shape)
{
    return CONV_BLOCK_BYTES / shape->scalar_bytes;
}

// Output channels of each input channel.
static inline size_t depthwise_multiple(const struct shape *shape)
{
    return shape->group_out;
}

// Rows of n samples of the lanes' planes, `plane_size` samples each, side by side at `to`: from
// sample `row + first` of the plane on every step-th, zero where first + i*step is outside [0,
// size).
struct depthwise_row {
    size_t plane_size, row, size, step, n;
    ptrdiff_t first;
};

void depthwise_read(const struct partita_plan *plan, const struct depthwise_lanes *lanes, char *to,
                    const char *x, const struct depthwise_row *row);

// The same back, of rows that lie inside; bias: a block of the lanes' or NULL.
void depthwise_write(const struct partita_plan *plan, const struct depthwise_lanes *lanes, char *y,
                     const char *from, const struct depthwise_row *row, const void *bias,
                     bool relu);

// Asks for row i, if there is one, of planes of rows x width samples that will be read next: rows
// of many planes are too many streams for the processor to see coming.
void depthwise_fetch_ahead(const struct partita_plan *plan, const struct depthwise_lanes *lanes,
                           const char *x, size_t i, size_t rows, size_t width);

// bias of the filter by lanes, for output j of each input channel.
void depthwise_bias(const struct partita_filter *filter, const struct depthwise_block *block,
                    size_t j, void *lanes);

// Seconds of so many products and samples that are moved into lanes or out of them, of all planes;
// memory's if that is more.
double depthwise_seconds(const struct request *request, double products, double moved);

// The share of lanes that hold planes.
double depthwise_filled(const struct shape *shape);

// Taps of a pass by their offsets in the packed box, neighbours in runs.
struct depthwise_taps {
    size_t n, n_runs;
    size_t *order; // term of the pass at each place
    struct tap_span *run;
};

void depthwise_taps_cut(const struct conv_pass *pass, struct depthwise_taps *taps,
                        struct arena *arena);

// A box of the task's planes, x having `planes` planes for each input channel of which the lanes
// say the first, packed side by side.
void depthwise_pack(const struct partita_plan *plan, const struct conv_pass *pass,
                    const struct conv_index *place, const struct depthwise_lanes *lanes,
                    char *packed, const char *x);

// The way tap by tap.
void depthwise_direct_estimate(const struct request *request, struct estimate *ret);
enum partita_status depthwise_direct_plan_create(struct partita_plan *plan,
                                                 const struct request *request);
enum partita_status depthwise_direct_filter_create(struct partita_filter *filter, const void *taps);
void depthwise_direct_run(const struct partita_plan *plan, const struct partita_filter *filter,
                          void *to, const void *from, void *workspace);

// The way by transforms, for a direction each.
void depthwise_fft_estimate(const struct request *request, struct estimate *ret);
enum partita_status depthwise_fft_plan_create(struct partita_plan *plan,
                                              const struct request *request);
enum partita_status depthwise_fft_filter_create(struct partita_filter *filter, const void *taps);
void depthwise_fft_run(const struct partita_plan *plan, const struct partita_filter *filter,
                       void *to, const void *from, void *workspace);
void depthwise_fft_explain(const struct partita_plan *plan, struct text *text);
void depthwise_fft_weight(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                          void *workspace);

// Sums of backward weight, [block][run][output][tap][lane], into gw: runs in a tree, then a
// channel's lanes in order. tap_of: the caller's tap behind each of the sums'.
struct depthwise_sums {
    char *sums;
    size_t runs, run_bytes;
    size_t (*tap_of)(const void *state, size_t i);
};

void depthwise_add_sums(const struct partita_plan *plan, const struct depthwise_sums *sums,
                        void *gw);

void depthwise_weight_estimate(const struct request *request, struct estimate *ret);
enum partita_status depthwise_weight_plan_create(struct partita_plan *plan,
                                                 const struct request *request);
void depthwise_weight_run(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                          void *workspace);

#endif
