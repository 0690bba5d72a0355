// SPDX-License-Identifier: MIT
// Shared by the files of cpu/winograd: its limits and costs, the layout of a direction, the
// transforms along both axes, and the memory of a worker.
#ifndef PARTITA_WINOGRAD_H
#define PARTITA_WINOGRAD_H

#include "base/sizes.h"
#include "base/winograd_matrix.h"
#include "core/plan.h"
#include "geometry/winograd_search.h"
#include "kernels/kernels.h"
#include "product/split_k.h"

// "Derived": from an L1 cache of 32 KiB and an L2 cache of 1 MiB; "measured": on AVX-512 with the
// layers of decision 14; "chosen": by hand.
static const struct {
    size_t max_tiles, single_tiles, weight_tiles, min_tiles, min_tasks, min_channels;
    size_t few_channels, weight_channels, max_maps, strip_vectors, near_outputs;
    size_t taps_together, few_taps, max_map;
    double batch_gain, map_lanes_gain, transposed_gain;
} WINOGRAD = {
    .max_tiles = 200, // of a batch; more leave the caches; measured
    // Of a batch of backward weight that has all tiles; measured. Of one of several; derived.
    .single_tiles = 256,
    .weight_tiles = 128,
    .min_tiles = 112, // minimum of a batch; measured
    // With fewer rounds threads share each, and output channels are split; or backward weight
    // splits the batches. Minimum channels of such a split, half as many where there would be one
    // task. Chosen.
    .min_tasks = 4,
    .min_channels = 16 * CONV_CHANNELS,
    .few_channels = 128, // fewer have too little work in a batch to synchronise threads; measured
    .weight_channels = 256, // of x and of gy that a task of backward weight multiplies; derived
    .max_maps = 1 << 20,    // images of a dilated layer in one item; chosen
    .strip_vectors = 4,     // of channels that are adjacent in panels, for kernels->conv
    // Output channels of a product of backward weight whose sums stay in the L2 cache until they
    // are taps; derived.
    .near_outputs = 4 * CONV_CHANNELS,
    .taps_together = 512, // paths whose taps are transformed together; derived
    .few_taps = 1 << 12,  // paths that one thread packs before a second one starts; measured
    .max_map = 1 << 10,   // samples of a map in a lane, whose copies fit the L2 cache; derived
    // Maps in lanes are chosen up to this many times the vectors of other transforms; measured.
    .map_lanes_gain = 2,
    // A batch has this many times the tiles for which reading the taps moves as much as the tiles
    // do; measured.
    .batch_gain = 3.2,
    // Sums of transposed products are transposed back: these products are chosen if their cost is
    // below this share of the others'.
    .transposed_gain = 0.93,
};

// Tiles that are transformed together: rows x cols tiles of each of `maps` maps. A map is one tile
// of planes of one image of one item.
struct winograd_batch {
    size_t maps, rows, cols;
};

// The layout of one direction. Sizes are in scalars unless their comments say bytes.
struct winograd {
    struct tile_grid grid;
    bool weight;                      // backward weight
    struct sample_strides strides[2]; // of the arrays of the grid's inputs and outputs
    size_t in, out;              // channels of a group, including branches that count as channels
    size_t frequencies;          // products of a tile and pair of channels
    struct winograd_batch batch; // size of a batch that is not at an edge
    size_t maps, batches[3];     // maps of the whole problem; batches along maps, rows, columns
    size_t positions;            // tiles of a batch, with capacity for the vectors of each map
    // A round (layer/rounds.h) has oc_split output channels of a group, and sums over input
    // channels of a batch, `chunk` of them in a step; in backward weight it has `chunk` input
    // channels, whole vectors, and sums over the batches of one of k_splits splits, a batch in a
    // step. A product has `strip` input channels, which are adjacent in the packed operand of
    // backward weight, and oc_step output channels.
    size_t chunk, oc_split, steps, k_splits, strip, oc_step;
    size_t rounds[3]; // of a batch or split: groups, chunks in backward weight, splits of outputs
    // Forward and backward data: input channels whose taps are adjacent, so that products read them
    // one after the other.
    size_t segment;
    // Forward and backward data multiply transformed taps by transformed tiles. Tiles lie along the
    // vectors or, in transposed products, where there are few, output channels. Taps are stored in
    // blocks of oc_block output channels.
    bool transposed;
    size_t oc_block;
    bool map_lanes; // transforms have a map in each lane (maps.c), not a tile of one map
    bool shared;    // threads share the rounds
    bool half;      // samples of 16 bits, whose rows are copied
    size_t in_plane, out_plane, sums_plane;    // scalars from one frequency to the next
    size_t filter_plane;                       // the same for a filter
    size_t tiles_plane;                        // and for channels that are packed
    size_t samples, windows, stage, rows_sums; // of a worker: see struct winograd_scratch
    size_t worker, common;                     // bytes of a worker, and of a round that is shared
    // In vectors of products of one frequency and pair of channels.
    double price, row_price; // of all batches; of a row of tiles besides its tiles
};

// A transform along all axes of n adjacent tiles: down, along, and through the planes
// (WINOGRAD_DEPTH). Element (i, j) of a tile's plane is at x_row[i] + j*x_column, element (i, j) of
// its result at i*y_row + j*y_plane, and planes follow each other. An axis of extent 1 is not
// transformed.
enum { WINOGRAD_DEPTH = WINOGRAD_AXES, WINOGRAD_ALL_AXES };
struct winograd_transform {
    winograd_fn *kernel;
    size_t extent[WINOGRAD_ALL_AXES], count[WINOGRAD_ALL_AXES];
    size_t from[WINOGRAD_ALL_AXES], to[WINOGRAD_ALL_AXES];             // elements
    size_t n, x_row[WINOGRAD_EXTENT], x_column, y_row, y_plane, bytes; // of a scalar
};

// The operands of a transform: samples of x, taps or gy into frequencies, or sums to outputs or to
// taps.
enum winograd_operand {
    WINOGRAD_INPUT,
    WINOGRAD_TAPS,
    WINOGRAD_GRADIENT,
    WINOGRAD_OUTPUT,
    WINOGRAD_TAP_SUMS,
};

// The transform of n tiles of an operand whose elements are x_column apart, and y_plane those of
// the result, row by row. kernels NULL: sets only sizes.
struct winograd_transform winograd_transform_of(const struct winograd *p,
                                                const struct kernels *kernels,
                                                enum winograd_operand operand);
void winograd_transform_strides(struct winograd_transform *transform, size_t n, size_t x_column,
                                size_t y_plane);
void winograd_transform_tiles(const struct winograd_transform *transform, char *y, const char *x,
                              char *stage);
// The pass through planes, which are x_plane scalars apart in x; `rows` has the other strides.
void winograd_transform_depth(const struct winograd_transform *transform, char *y, const char *x,
                              size_t x_plane, struct winograd_rows rows);

static inline const struct tile_axis *winograd_axis(const struct winograd *p, int axis)
{
    return &p->grid.axis[(1 + axis) % WINOGRAD_ALL_AXES];
}

static inline size_t winograd_lanes(const struct winograd *p)
{
    return p->grid.scalar_bytes == sizeof(double) ? CONV_BLOCK_BYTES / sizeof(double)
                                                  : CONV_BLOCK_BYTES / sizeof(float);
}

// n scalars rounded up to whole vectors.
static inline size_t winograd_vectors(const struct winograd *p, size_t n)
{
    return size_round_up(n, winograd_lanes(p));
}

// Scalars of a frequency before the taps of input channel `in` and the block of n output channels
// from k on: [segment][block of output channels][in][channels of the block].
static inline size_t winograd_taps_at(const struct winograd *p, size_t in, size_t k, size_t n)
{
    const size_t first = in / p->segment * p->segment;
    return first * p->out + k * size_min(p->segment, p->in - first) + (in - first) * n;
}

static inline size_t winograd_batches(const struct winograd *p)
{
    return size_mul(p->batches[0] * p->batches[1], p->batches[2]);
}

// Rounds of a batch or, in backward weight, of a split of the batches.
static inline size_t winograd_batch_rounds(const struct winograd *p)
{
    return size_mul(size_mul(p->rounds[0], p->rounds[1]), p->rounds[2]);
}

// Transposed: scalars of the sums of a tile.
static inline size_t winograd_rows_pitch(const struct winograd *p)
{
    return size_round_up(p->oc_step, p->oc_block);
}

// One batch: its first map and tile, its size, and its number of tiles.
struct winograd_index {
    size_t map, at[WINOGRAD_AXES];
    struct winograd_batch batch;
    size_t tiles;
};

// Memory of a worker and, if rounds are shared, of all threads.
struct winograd_scratch {
    // The operands of a round, transformed channels of x and, in backward weight, of gy:
    // [frequency] [channel][position]; backward weight: see packed_operand (run.c).
    char *in, *out;
    // [frequency][output channel][position]; backward weight: [frequency][output channel][input
    // channel of the strip], of each product if there are several steps.
    char *sums;
    char *rows_sums; // transposed, of one frequency: [tile][output channel]
    char *tiles;     // transformed channels that are packed; taps on their way from sums
    char *samples;   // of a channel: tiles transformed along their rows; maps with padding
    char *windows;   // of each map, of channels that are moved together: see winograd_window
    char *stage;     // the result of a transform along one axis
};
struct winograd_scratch winograd_scratch(const struct winograd *p, struct arena *worker,
                                         struct arena *common);

struct winograd_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const char *x;          // of backward data: gy
    char *y;                // outputs, which are written, or gy of backward weight, which is read
    _Atomic uint64_t *peak; // raised by the samples read of x; NULL: not wanted
    char *shared, *workers;
    struct split_k split_k; // the gradient of the taps
};

// A step of a round, or one product of it: channels of a group, counted with branches, of a batch.
struct winograd_task {
    const struct winograd_call *call;
    const struct winograd *p;
    const struct kernels *kernels;
    size_t group, in, n_in, out, n_out, split;
    bool first, last; // of the round's steps
    struct winograd_index index;
    struct winograd_scratch scratch;
};

// The samples that a batch's tiles of one map read of a channel, or write, as rows of samples;
// those beyond the array are zero. `channel`: scalars from one channel to the next.
struct winograd_window {
    size_t rows, width, channel;
};
struct winograd_window winograd_window(const struct winograd *p, const struct winograd_batch *batch,
                                       bool outputs);

// The samples of one channel of a group and one map.
char *winograd_samples(const struct winograd_task *task, bool outputs, size_t map, size_t channel);

// Channels from `channel` on that are moved together, since they are adjacent in the array.
size_t winograd_together(const struct winograd_task *task, bool outputs, size_t channel,
                         size_t end);

// How results of output channel k are finished.
struct conv_finish winograd_finish(const struct winograd_task *task, size_t k);

// Raises the peak of the call by n scalars of x, unless another task does.
void winograd_raise_peak(const struct winograd_task *task, const char *samples, size_t n);

// Transforms n channels of x, or of gy (`outputs`), from `first` on into to[frequency][channel]
// [position], frequencies being `plane` scalars apart: load_planes (planes.c) or, with a map in
// each lane, load_maps (maps.c). Vectors of a channel may reach into the next one's maps.
void winograd_load_planes(const struct winograd_task *task, bool outputs, size_t first, size_t n,
                          char *to, size_t plane);
void winograd_load_maps(const struct winograd_task *task, bool outputs, size_t first, size_t n,
                        char *to, size_t plane);

// Transforms the sums of a task's output channels, and stores the results.
void winograd_store_planes(const struct winograd_task *task);
void winograd_store_maps(const struct winograd_task *task);

// Small maps. winograd_map_samples: of the larger plane, of inputs or of outputs.
// winograd_map_extent: samples that the tiles of a map read along an axis, with padding.
// winograd_map_pitch: scalars from the transposed planes of one channel to those of the next, an
// odd number of vectors.
static inline size_t winograd_map_samples(const struct winograd *p)
{
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    return size_max(size_mul(down->in.size, along->in.size),
                    size_mul(down->out.size, along->out.size));
}

static inline size_t winograd_map_extent(const struct tile_axis *axis, size_t samples)
{
    return (axis->tiles - 1) * axis->tile + samples;
}

static inline size_t winograd_map_pitch(const struct winograd *p)
{
    return (winograd_map_samples(p) | 1) * winograd_lanes(p);
}

// The layout of a split into tiles (layout.c).
void winograd_layout(const struct request *request, const struct winograd_split *split,
                     struct winograd *ret);

// Filters, and the taps of a task's sums in backward weight (taps.c); a call (run.c).
struct filter_bytes winograd_filter_bytes(const struct partita_plan *plan);
enum partita_status winograd_filter_pack(struct partita_filter *filter, const void *taps,
                                         const struct region *scratch);
void winograd_store_taps(const struct winograd_task *task);
enum partita_status winograd_run(const struct partita_plan *plan,
                                 const struct partita_filter *filter,
                                 const struct operands *operands, void *workspace);

#endif
