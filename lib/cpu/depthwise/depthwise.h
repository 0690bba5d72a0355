// SPDX-License-Identifier: MIT
// What the files of cpu/depthwise share: its limits and costs, which planes lie side by side in the
// lanes of a vector, and its two variants: sums tap by tap over packed boxes (direct.c, weight.c)
// and transforms (fft.c).
#ifndef PARTITA_DEPTHWISE_H
#define PARTITA_DEPTHWISE_H

#include "core/plan.h"
#include "cpu/conv/pass.h"

enum { DEPTHWISE_LANES = CONV_BLOCK_BYTES / 4 }; // at most; of f64 half as many

enum depthwise_variant { DEPTHWISE_DIRECT, DEPTHWISE_FFT };

// "Measured": on AVX-512 and AVX2 with maps of 7 x 7 to 56 x 56; "typed": chosen (decision 16).
struct depthwise_limits {
    size_t max_taps, weight_taps; // of sums tap by tap; typed
    size_t max_passes;            // of backward data; typed
    size_t max_spans; // of taps summed in registers before a sum is rounded: 512 taps; derived
    size_t min_tasks; // fewer tasks get smaller boxes, or split sums of the gradient; typed
    size_t ahead;     // rows that are fetched before they are read; measured
    double moved;     // products that a sample's way through a transposition takes; measured
    // A product of direct sums, and products that a row of taps takes to begin and end on a row of
    // outputs; the same of the gradient. Measured.
    double product, row, weight_product, weight_row;
    // A vector operation of a transform against a multiply-add of the direct sums: loads, stores
    // and the L2 cache; of the gradient, whose three spectra fit the cache worse. Measured.
    double operation, weight_operation;
};
static const struct depthwise_limits DEPTHWISE = {
    .max_taps = 1 << 16,
    .weight_taps = 1 << 14,
    .max_passes = 1 << 12,
    .max_spans = 64,
    .min_tasks = 32,
    .ahead = 2,
    .moved = 9,
    .product = 1.05,
    .row = 8,
    .weight_product = 1.1,
    .weight_row = 12,
    .operation = 1.1,
    .weight_operation = 1.4,
};

// A lane group is some input channels of one image; what is left of the channels at the end lies
// side by side with the same channels of further images. Lane l holds channel first + l % channels.
struct depthwise_group {
    size_t first, channels, images;
};
size_t depthwise_groups(const struct shape *shape);
struct depthwise_group depthwise_group(const struct shape *shape, size_t i);

// Sets of images of a group.
size_t depthwise_sets(const struct shape *shape, const struct depthwise_group *group);

// The lanes of one group and set. plane[l] is (item * in_channels + channel) * planes: where a
// lane's planes begin in an array with that many planes for each input channel. Lanes from `used`
// on are empty: zeros.
struct depthwise_lanes {
    size_t used, plane[DEPTHWISE_LANES];
};
struct depthwise_lanes depthwise_lanes(const struct shape *shape,
                                       const struct depthwise_group *group, size_t set,
                                       size_t planes);

// A group and set: the tasks of forward and backward data, group after group.
struct depthwise_task {
    size_t group, set;
};
size_t depthwise_tasks(const struct shape *shape);
struct depthwise_task depthwise_task(const struct shape *shape, size_t i);

// The lanes of a task; none of the one after the last.
struct depthwise_lanes depthwise_task_lanes(const struct shape *shape, size_t i, size_t planes);

static inline size_t depthwise_width(const struct shape *shape)
{
    return CONV_BLOCK_BYTES / shape->scalar_bytes;
}

// Output channels of each input channel.
static inline size_t depthwise_multiplier(const struct shape *shape)
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

// What is done to outputs as they are written: bias of the lanes, or NULL, and activation.
struct depthwise_finish {
    const void *bias;
    bool relu;
};

// The same back, of rows that lie inside.
void depthwise_write(const struct partita_plan *plan, const struct depthwise_lanes *lanes, char *y,
                     const char *from, const struct depthwise_row *row,
                     const struct depthwise_finish *finish);

// That of forward for output j of each input channel; `bias` holds its lanes.
struct depthwise_finish depthwise_finish(const struct partita_filter *filter, size_t group,
                                         size_t j, char bias[CONV_BLOCK_BYTES]);

// Prefetches row i, if there is one, of planes of rows x width samples that will be read next: rows
// of many planes are too many streams for the processor to predict.
void depthwise_prefetch(const struct partita_plan *plan, const struct depthwise_lanes *lanes,
                        const char *x, size_t i, size_t rows, size_t width);

// Copies a tap of output j of each input channel into the lanes at `to`.
void depthwise_copy_tap(const struct shape *shape, const struct depthwise_group *group, size_t j,
                        size_t tap, const void *taps, char *to);

// Seconds of so many products and samples that are moved into lanes or out of them, of all planes;
// memory's if that is more.
double depthwise_seconds(const struct request *request, double products, double moved);

// Taps of a pass by their offsets in the packed box, adjacent ones in spans.
struct depthwise_taps {
    size_t n, spans;
    size_t *order; // term of the pass at each index
    struct tap_span *span;
};
void depthwise_make_taps(const struct conv_pass *pass, struct depthwise_taps *taps,
                         struct arena *arena);

// Packs a box of the planes that the lanes say, side by side.
void depthwise_pack(const struct partita_plan *plan, const struct conv_pass *pass,
                    const struct conv_index *index, const struct depthwise_lanes *lanes,
                    char *packed, const char *x);

// Bytes of a packed box; the row of it that outputs (d, h) begin to read.
static inline size_t depthwise_packed_bytes(const struct conv_pass *pass)
{
    return size_mul(pass->box.channel, CONV_BLOCK_BYTES);
}

static inline const char *depthwise_packed_row(const struct conv_pass *pass, const char *packed,
                                               size_t d, size_t h)
{
    const size_t row = d * pass->box.extent[1] + h;
    return packed + row * pass->box.extent[2] * CONV_BLOCK_BYTES;
}

// Forward and backward data tap by tap.
void depthwise_direct_estimate(const struct request *request, struct estimate *ret);
enum partita_status depthwise_direct_plan_create(struct partita_plan *plan,
                                                 const struct request *request);
enum partita_status depthwise_direct_filter_create(struct partita_filter *filter, const void *taps);
void depthwise_direct_run(const struct partita_plan *plan, const struct partita_filter *filter,
                          const struct operands *operands, void *workspace);

// Any direction by transforms.
void depthwise_fft_estimate(const struct request *request, struct estimate *ret);
enum partita_status depthwise_fft_plan_create(struct partita_plan *plan,
                                              const struct request *request);
enum partita_status depthwise_fft_filter_create(struct partita_filter *filter, const void *taps);
void depthwise_fft_run(const struct partita_plan *plan, const struct partita_filter *filter,
                       const struct operands *operands, void *workspace);
void depthwise_fft_explain(const struct partita_plan *plan, struct text *text);

// Backward weight tap by tap.
void depthwise_weight_estimate(const struct request *request, struct estimate *ret);
enum partita_status depthwise_weight_plan_create(struct partita_plan *plan,
                                                 const struct request *request);
void depthwise_weight_run(const struct partita_plan *plan, const struct operands *operands,
                          void *workspace);

// Splits of the sums of backward weight, of which each takes so many bytes for a lane group, within
// the request's limit beside a worker's memory.
size_t depthwise_k_splits(const struct request *request, size_t worker, size_t max_splits,
                          size_t bytes);

// Reduces sums of backward weight, [group][split][output][tap][lane], into gw: splits in a tree,
// then a channel's lanes in order. tap_of: the caller's tap of each of the sums'.
struct depthwise_sums {
    char *sums;
    size_t splits, bytes;
    size_t (*tap_of)(const void *state, size_t i);
};
void depthwise_reduce(const struct partita_plan *plan, const struct depthwise_sums *sums, void *gw);

#endif
