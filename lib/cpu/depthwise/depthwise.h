// SPDX-License-Identifier: MIT
// Shared by the files of cpu/depthwise: limits and costs, which planes are in which lanes of a
// vector, and the variants: sums tap by tap over packed boxes (direct.c, weight.c), along rows
// (rows.c, weight_rows.c) or of adjacent channels (channels.c), and transforms (fft.c).
#ifndef PARTITA_DEPTHWISE_H
#define PARTITA_DEPTHWISE_H

#include "core/plan.h"
#include "cpu/conv/passes.h"

enum { DEPTHWISE_LANES = CONV_BLOCK_BYTES / 4 }; // maximum, for f32; f64 has half as many

enum depthwise_variant {
    DEPTHWISE_DIRECT,
    DEPTHWISE_FFT,
    DEPTHWISE_ROWS,
    DEPTHWISE_CHANNELS,
};

// "Measured": on AVX-512 and AVX2 with maps of 7 x 7 to 56 x 56; "chosen": by hand (decision 16).
static const struct {
    size_t max_taps, weight_taps, max_passes, max_spans, min_tasks, ahead, near_bytes, far_bytes;
    size_t rows_far_bytes, max_row, near_row, prefetched_taps, weight_taps_avx2;
    double moved, product, row, weight_product, weight_row, operation, weight_operation;
    double far_operation, filter_copies, straddling, strided, strided_direct, column, plane;
    double load_shared, load_each, output, weight_vector, weight_strided, weight_tap, weight_plane;
    double weight_direct;
} DEPTHWISE = {
    .max_taps = 1 << 16,    // of direct sums; chosen
    .weight_taps = 1 << 14, // the same in backward weight; chosen
    .max_passes = 1 << 12,  // of backward data; chosen
    .filter_copies = 6,     // preparing a scalar of a filter, in copies; measured
    .max_spans = 64, // of taps summed in registers before a sum is rounded: 512 taps; derived
    .min_tasks = 32, // with fewer, boxes are smaller or sums of the gradient are split; chosen
    .ahead = 2,      // rows between the prefetch of a row and its use; measured
    // Bytes of x and y of a call up to which prefetching inputs (near_bytes) or outputs (far_bytes)
    // does not pay; measured.
    .near_bytes = 1 << 20,
    .far_bytes = 4 << 20,
    // Taps from which on prefetching rows of gy pays in backward weight; measured.
    .prefetched_taps = 40,
    .rows_far_bytes = 8 << 20, // the same of outputs of sums along rows; measured
    .max_row = 256,            // samples of a row up to which sums along rows were measured
    // Sums along rows, in products: the cost of a product, since vectors of x straddle lines of the
    // cache, and with a stride, where loads are the bound; the start of a column of taps on 7 rows
    // of a vector; the start of a plane. Direct sums with a stride take up to strided_direct times
    // their estimate. Measured.
    .straddling = 1.05,
    .strided = 3,
    .column = 50,
    .plane = 300,
    .strided_direct = 3,
    // Backward weight along rows, in products of vectors: a row of x takes one for each tap and
    // weight_vector beside them, all of it weight_strided times as long with a stride; in addition
    // the start of a tap and of a plane. Measured.
    .weight_vector = 6,
    .weight_strided = 2.2,
    .weight_tap = 13,
    .weight_plane = 156,
    // With AVX2 it does not pay for more taps along the rows, since registers are left for one
    // column of them alone. Derived.
    .weight_taps_avx2 = 3,
    // Backward weight of packed boxes takes up to this many times its estimate; measured.
    .weight_direct = 1.4,
    // Sums of adjacent channels, in products: the cost of a product, where a sample is loaded once
    // for all taps of a row and where it is loaded for each, and the cost of an output beside them.
    // Measured.
    .load_shared = 1.05,
    .load_each = 4,
    .output = 11,
    .moved = 9, // transposing a sample takes as long as that many products; measured
    // Cost of a product of direct sums, and overhead of a row of taps on a row of outputs, in
    // products; the same for the gradient. Measured.
    .product = 1.05,
    .row = 8,
    .weight_product = 1.1,
    .weight_row = 12,
    // Cost of a vector operation of a transform relative to a multiply-add of the direct sums,
    // because of loads, stores and the L2 cache; the same for the gradient, whose three spectra fit
    // the cache less well. Measured.
    .operation = 1.1,
    .weight_operation = 1.4,
    // A row of more samples and its transform leave the L1 cache between passes: an operation takes
    // so many times as long (rows of 288 to 4096: 1.7 to 2.3 times; along one axis those of 80 and
    // 128 too: 1.7 and 2.1 times). Measured.
    .near_row = 128,
    .far_operation = 1.9,
};

// A lane group holds some input channels of one image. The last group, if it has fewer channels
// than lanes, also holds the same channels of further images. Lane l holds channel first + l %
// channels.
struct depthwise_group {
    size_t first, channels, images;
};
size_t depthwise_groups(const struct shape *shape);
struct depthwise_group depthwise_group(const struct shape *shape, size_t i);

// Number of sets of images that a group is computed for.
size_t depthwise_sets(const struct shape *shape, const struct depthwise_group *group);

// The lanes of one group and set in an array of inputs, or of outputs. first[l] is the index of the
// first sample of the lane's first plane; lanes from `used` on hold zeros. The other planes of a
// lane, which outputs of several an input channel have, are strides.channel apart.
struct depthwise_lanes {
    size_t used, first[DEPTHWISE_LANES];
    struct sample_strides strides; // of the array
};
struct depthwise_lanes depthwise_lanes(const struct shape *shape,
                                       const struct depthwise_group *group, size_t set,
                                       bool outputs);

// A task of forward or backward data: a group and a set, in the order of groups.
struct depthwise_task {
    size_t group, set;
};
size_t depthwise_tasks(const struct shape *shape);
struct depthwise_task depthwise_task(const struct shape *shape, size_t i);

// The lanes of a task; no lanes if i is depthwise_tasks.
struct depthwise_lanes depthwise_task_lanes(const struct shape *shape, size_t i, bool outputs);

static inline size_t depthwise_width(const struct shape *shape)
{
    return CONV_BLOCK_BYTES / shape->scalar_bytes;
}

// Number of output channels of each input channel.
static inline size_t depthwise_multiplier(const struct shape *shape)
{
    return shape->group_out;
}

// Bytes that a call reads and writes, which decide whether prefetching pays.
static inline size_t depthwise_array_bytes(const struct shape *shape)
{
    const size_t in = shape->in_channels * shape_inputs(shape);
    const size_t out = shape->out_channels * shape_outputs(shape);
    return shape->batch * (in + out) * shape->scalar_bytes;
}

// Whether neighbouring samples of a plane are far apart and beyond the cache. The hardware does not
// prefetch them, and they share so few cache sets that only a few rows may be prefetched.
static inline bool depthwise_apart(const struct shape *shape)
{
    return shape->channels_last && depthwise_array_bytes(shape) > DEPTHWISE.far_bytes;
}

// Reads a row of n samples from plane number `plane` of each lane into the lanes at `to`. The
// samples are every step-th from sample `row + first` of the plane on, and zero where first +
// i*step is outside [0, size).
struct depthwise_row {
    size_t plane, row, size, step, n;
    ptrdiff_t first;
};
void depthwise_read(const struct partita_plan *plan, const struct depthwise_lanes *lanes, char *to,
                    const char *x, const struct depthwise_row *row);

// The reverse of depthwise_read, for rows that lie inside their planes. The bias is one real for
// each lane.
void depthwise_write(const struct partita_plan *plan, const struct depthwise_lanes *lanes, char *y,
                     const char *from, const struct depthwise_row *row,
                     const struct conv_finish *finish);

// The finish of forward for output j of each input channel; the biases of the lanes are stored in
// `bias`.
struct conv_finish depthwise_finish(const struct partita_filter *filter, size_t group, size_t j,
                                    char bias[CONV_BLOCK_BYTES]);

// Prefetches positions begin .. end-1, of samples of so many bytes, of the lanes' first planes,
// which are read or written next: the processor cannot predict accesses to that many planes at
// once.
void depthwise_prefetch(const struct depthwise_lanes *lanes, const char *planes, size_t bytes,
                        size_t begin, size_t end, bool write);

// Copies a tap of output j of each input channel into the lanes at `to`.
void depthwise_copy_tap(const struct shape *shape, const struct depthwise_group *group, size_t j,
                        size_t tap, const void *taps, char *to);

// Seconds of that many products, and of moving that many samples into lanes or out of them, for all
// planes; or the time of memory transfers if that is longer.
double depthwise_seconds(const struct request *request, double products, double moved);

// The taps of a pass in the order of their offsets in the packed box; adjacent taps form spans.
struct depthwise_taps {
    size_t n, spans;
    size_t *order; // term of the pass at each index
    struct tap_span *span;
};
void depthwise_make_taps(const struct conv_pass *pass, struct depthwise_taps *taps,
                         struct arena *arena);

// A box of plane number `plane` of each lane. depthwise_pack: packs its inputs.
// depthwise_prefetch_row: prefetches row i of its outputs in an array, if there is one.
struct depthwise_box {
    const struct conv_pass *pass;
    struct conv_index index;
    size_t plane;
};
void depthwise_pack(const struct partita_plan *plan, const struct depthwise_box *box,
                    const struct depthwise_lanes *lanes, char *packed, const char *x);
void depthwise_prefetch_row(const struct depthwise_box *box, const struct depthwise_lanes *lanes,
                            const char *array, size_t i, bool write);

// depthwise_packed_bytes: bytes of a packed box. depthwise_packed_row: the first row that the
// outputs (d, h) read.
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

// One call.
struct depthwise_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter; // NULL: backward weight
    const struct operands *operands;
    const char *from, *gy; // of the operands
    char *to;
    char *shared, *workers;            // parts of the workspace
    const struct depthwise_sums *sums; // in the shared part, while they are reduced
};

// A variant: the state of a plan in an arena, its filter (none for backward weight), and a call.
struct depthwise_method {
    build_fn *build;
    struct filter_bytes (*filter_bytes)(const struct partita_plan *plan);
    void (*filter_pack)(struct partita_filter *filter, const void *taps, void *scratch);
    void (*run)(struct depthwise_call *call);
};
extern const struct depthwise_method depthwise_direct, depthwise_weight, depthwise_fft,
    depthwise_rows, depthwise_weight_rows, depthwise_channels;

// Estimates of the variants. Those that return a bool refine `direct`, the estimate of sums over
// packed boxes: false if their kernel does not serve the layer, or if `direct` is faster (with
// strides and in backward weight as DEPTHWISE corrects it).
void depthwise_direct_estimate(const struct request *request, struct estimate *ret);
bool depthwise_rows_estimate(const struct request *request, const struct estimate *direct,
                             struct estimate *ret);
bool depthwise_channels_estimate(const struct request *request, const struct estimate *direct,
                                 struct estimate *ret);
void depthwise_fft_estimate(const struct request *request, struct estimate *ret);
void depthwise_fft_explain(const struct partita_plan *plan, struct text *text);
void depthwise_weight_estimate(const struct request *request, struct estimate *ret);
bool depthwise_weight_rows_estimate(const struct request *request, const struct estimate *direct,
                                    struct estimate *ret);

// plane.c: a pass along two axes without gaps between taps, false if there is none; an axis of it.
bool depthwise_plane_pass(const struct request *request, struct conv_pass *pass);
struct plane_axis depthwise_plane_axis(const struct conv_axis *axis);

// The pass of a layer that kernels along rows serve; false: there is none.
bool depthwise_rows_pass(const struct request *request, struct conv_pass *pass);

// Such a pass in the state of a plan, and its filter. `next`: from one of the packed taps to the
// next, from {0, 0} on.
struct depthwise_plane {
    struct plane_axis axis[2];
    size_t pitch;       // scalars from a packed tap of all channels to the next; 0: the taps of
                        // a channel are adjacent
    size_t taps, tap[]; // the caller's tap of each of the packed ones
};
typedef bool plane_pass_fn(const struct request *request, struct conv_pass *pass);
typedef void next_tap_fn(const struct plane_axis axis[2], size_t tap[2]);
struct depthwise_plane *depthwise_plane_build(const struct request *request, plane_pass_fn *find,
                                              next_tap_fn *next, struct arena *arena);
void depthwise_next_tap(const struct plane_axis axis[2], size_t tap[2]); // row after row
struct filter_bytes depthwise_plane_filter_bytes(const struct partita_plan *plan);
void depthwise_plane_filter_pack(struct partita_filter *filter, const void *taps, void *scratch);

// Number of splits of the sums of backward weight, each of which takes `bytes` bytes for a lane
// group, within the request's workspace limit less a worker's memory.
size_t depthwise_k_splits(const struct request *request, size_t worker, size_t max_splits,
                          size_t bytes);

// Reduces the call's sums of backward weight, [group][split][output][tap][lane] in the call's
// shared memory, into gw: splits in a tree, then a channel's lanes in order. tap_of: the caller's
// tap of each tap of the sums; NULL: the same.
struct depthwise_sums {
    size_t splits, bytes;
    size_t (*tap_of)(const void *state, size_t i);
};
void depthwise_reduce(struct depthwise_call *call);

#endif
