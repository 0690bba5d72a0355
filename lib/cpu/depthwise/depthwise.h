// SPDX-License-Identifier: MIT
// Shared by the files of cpu/depthwise: limits, planes in the lanes of vectors (lanes.c),
// which are summed tap by tap (boxes.c) or by transforms (fft.c), and sums of samples where they
// lie: along rows (planes.c) or of adjacent channels (channels.c).
#ifndef PARTITA_DEPTHWISE_H
#define PARTITA_DEPTHWISE_H

#include "core/plan.h"
#include "cpu/conv/passes.h"
#include "product/split_k.h"

enum { DEPTHWISE_LANES = CONV_BLOCK_BYTES / 4 }; // maximum, for f32; f64 has half as many

enum depthwise_variant {
    DEPTHWISE_DIRECT,
    DEPTHWISE_FFT,
    DEPTHWISE_ROWS,
    DEPTHWISE_CHANNELS,
};

// "Measured": on AVX-512 and AVX2 with maps of 7 x 7 to 56 x 56; "chosen": by hand (decision 16).
static const struct {
    size_t max_spans, min_tasks, ahead, far_bytes;
    size_t max_row, near_row, weight_taps_avx2;
} DEPTHWISE = {
    .max_spans = 64,      // of taps summed in registers before a sum is rounded: 512 taps; derived
    .min_tasks = 32,      // with fewer, boxes are smaller or sums of the gradient are split; chosen
    .ahead = 2,           // rows between the prefetch of a row and its use; measured
    .far_bytes = 4 << 20, // of x and y of a call up to which prefetching does not pay; measured
    .max_row = 256,       // samples of a row up to which sums along rows were measured
    // With AVX2 backward weight along rows does not pay for more taps along the rows, since
    // registers are left for one column of them alone. Derived.
    .weight_taps_avx2 = 3,
    .near_row = 128, // samples up to which a row and its transform stay in the L1 cache; measured
};

// Planes in lanes: a group is up to a vector of adjacent channels, and a task computes a box of
// outputs of the planes of a group in one image, or in several if the group has few channels.
static inline size_t depthwise_width(const struct shape *shape)
{
    return CONV_BLOCK_BYTES / shape->scalar_bytes;
}

static inline size_t depthwise_groups(const struct shape *shape)
{
    return ceil_div(shape->in_channels, depthwise_width(shape));
}

// Number of output channels of each input channel.
static inline size_t depthwise_multiplier(const struct shape *shape)
{
    return shape->group_out;
}

// Whether the arrays of a call are beyond the caches, so that prefetching pays.
static inline bool depthwise_far(const struct shape *shape)
{
    const size_t in = shape->in_channels * shape_inputs(shape);
    const size_t out = shape->out_channels * shape_outputs(shape);
    return shape->batch * (in + out) * shape->sample_bytes > DEPTHWISE.far_bytes;
}

// Copies a scalar of each channel of a group into the lanes at `to`; those of the layer's channels
// are `apart` scalars apart from `from` on.
void depthwise_copy_lanes(const struct shape *shape, size_t group, char *to, const char *from,
                          size_t apart);

// Sets of images of the last group: fewer than images if it has few channels.
size_t depthwise_last_sets(const struct shape *shape);

// Lanes of all planes, those that stay empty included.
static inline double depthwise_all_lanes(const struct shape *shape)
{
    const size_t full = (depthwise_groups(shape) - 1) * shape->batch;
    return (double)((full + depthwise_last_sets(shape)) * depthwise_width(shape));
}

// The lanes of a group and some images in an array. Outputs of several an input channel have
// several planes a lane, strides.channel apart.
struct depthwise_lanes {
    size_t used, samples;          // the other lanes hold zeros; of a plane
    size_t first[DEPTHWISE_LANES]; // sample of each lane
    size_t adjacent;               // lanes whose samples share a cache line: channels last
    struct sample_strides strides;
};

// One call.
struct depthwise_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter; // NULL: backward weight
    const struct operands *operands;
    const char *from, *gy; // of the operands
    char *to;
    char *shared, *workers; // parts of the workspace
    bool far;
    // Of planes in lanes: how they are summed, and the pass with its boxes.
    const struct depthwise_sums *sums;
    const struct conv_layout *layout;
    struct split_k split_k; // backward weight
};

struct depthwise_task {
    const struct depthwise_call *call;
    struct conv_index index;
    size_t group;
    struct depthwise_lanes in, out; // of the pass: backward data reads gy and writes gx
    char *memory;                   // of the worker
};

// Sums of planes in lanes: tap by tap (boxes.c) or by transforms (fft.c).
struct depthwise_sums {
    // Forward and backward data: reads the inputs for plane j of the outputs. Then `row` returns
    // row i of the box.
    void (*load)(const struct depthwise_task *task, size_t j);
    char *(*row)(const struct depthwise_task *task, size_t j, size_t i);
    // Backward weight: adds the products of x and plane j of gy to the worker's sums, which the
    // first task clears. Then `finish` stores them as blocks in the order of the caller's taps.
    void (*add)(const struct depthwise_task *task, size_t j, bool first);
    void (*finish)(const struct depthwise_task *task, char *gradient);
};

// Computes task i of forward or backward data. depthwise_sum: computes all tasks of a plan whose
// state begins with the layout of its only pass.
void depthwise_run_task(void *call, size_t i, int worker);
void depthwise_sum(struct depthwise_call *call, const struct depthwise_sums *sums);

// A row of plane number `plane` of each lane: its samples follow `row`, and `pitch` samples further
// is the next row that will be read or written.
struct depthwise_row {
    size_t plane, row, pitch;
    size_t size, step, n; // samples; from one of the n that are moved to the next
    ptrdiff_t first;      // of these; samples outside [0, size) are zeros
};

// Reads a row of inputs, or row i of plane j of gy, into the lanes at `to`.
void depthwise_read(const struct depthwise_task *task, char *to, const struct depthwise_row *row);
void depthwise_read_gy(const struct depthwise_task *task, size_t j, size_t i, char *to);

// Backward weight by `tasks` tasks for each split of the images, or of boxes in them.
// depthwise_split_memory: fills the memory of an estimate, with as many splits as min_tasks asks
// for; a worker has `worker` bytes and a block for each tap. depthwise_run_splits: runs the tasks,
// each of which sums into the split of its number modulo the splits, and adds the splits up.
void depthwise_split_memory(const struct request *request, size_t worker, size_t tasks,
                            size_t max_splits, struct estimate *ret);
void depthwise_run_splits(struct depthwise_call *call, size_t tasks, task_fn *run);

// Bytes of a block for each tap of a path.
static inline size_t depthwise_tap_blocks(const struct shape *shape)
{
    return size_mul(shape_taps(shape), CONV_BLOCK_BYTES);
}

// A variant: its estimate, not applicable if it does not serve the layer; the state of a plan in an
// arena, its filter (backward weight has none), and a call.
struct depthwise_method {
    void (*estimate)(const struct request *request, struct estimate *ret);
    build_fn *build;
    struct filter_bytes (*filter_bytes)(const struct partita_plan *plan);
    void (*filter_pack)(struct partita_filter *filter, const void *taps, void *scratch);
    void (*run)(struct depthwise_call *call);
};
extern const struct depthwise_method depthwise_boxes, depthwise_fft, depthwise_rows,
    depthwise_channels;

void depthwise_fft_explain(const struct partita_plan *plan, struct text *text);

// Passes along two axes without gaps between taps, whose samples are summed where they lie: along
// the rows of planes (planes.c) or in vectors of adjacent channels (channels.c). False: the request
// has no such pass.
bool depthwise_plane_pass(const struct request *request, struct conv_pass *pass);
struct plane_axis depthwise_plane_axis(const struct conv_axis *axis);

// Such a pass in the state of a plan, and its filter. Packed taps are in the order of
// plane_next_tap (by_columns) or row after row.
struct depthwise_plane {
    struct plane_axis axis[2];
    size_t pitch;       // scalars from a packed tap of all channels to the next; 0: the taps of
                        // a channel are adjacent
    size_t taps, tap[]; // the caller's tap of each of the packed ones
};
struct depthwise_plane *depthwise_plane_build(const struct request *request, bool by_columns,
                                              struct arena *arena);
struct filter_bytes depthwise_plane_filter_bytes(const struct partita_plan *plan);
void depthwise_plane_filter_pack(struct partita_filter *filter, const void *taps, void *scratch);

#endif
