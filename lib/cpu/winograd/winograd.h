// SPDX-License-Identifier: MIT
// What the files of cpu/winograd share: its limits and costs, the layout of a direction, the
// transforms along both axes, and the memory of a worker.
#ifndef PARTITA_WINOGRAD_H
#define PARTITA_WINOGRAD_H

#include "base/sizes.h"
#include "base/winograd_matrix.h"
#include "core/plan.h"
#include "geometry/winograd_error.h"
#include "geometry/winograd_search.h"
#include "kernels/kernels.h"

// "Derived": from an L1 cache of 32 KiB and an L2 cache of 1 MiB; "measured": on AVX-512 with the
// layers of decision 14; "typed": chosen.
struct winograd_limits {
    size_t max_tiles;       // of a batch; derived
    size_t weight_tiles;    // the same in backward weight where there are several; derived
    size_t min_tiles;       // of a batch, which share a pass over the transformed taps; measured
    size_t batch_bytes;     // of a batch's transformed inputs and outputs; derived
    size_t group_bytes;     // of the groups that threads compute together; typed
    size_t min_tasks;       // fewer tasks transform the same inputs again for ..
    size_t min_channels;    // .. splits of so many output channels; typed
    size_t few_channels;    // too little work a batch for threads to synchronise on; measured
    size_t weight_channels; // of x and of gy that one task of backward weight multiplies; derived
    size_t weight_tasks;    // backward weight: fewer tasks split the batches; typed
    size_t max_maps;        // images of a dilated layer in one item; typed
    size_t strip_vectors;   // vectors of channels side by side in panels, for kernels->conv
    size_t sum_blocks;      // blocks of output channels whose taps are made at once; derived
    size_t input_channels;  // transformed by one task where all splits share them; typed
    // Price of one and two vectors left over by rectangles of three, in vectors; measured.
    double rest_price[3];
    // Price of transposed products from which on moving tiles into panels and back is worth it.
    double transposed_gain;
    // A product in fused multiply-adds: product * (1 + map / tiles of a map); measured.
    double product, map;
    // A transform of more than 36 vectors, which do not stay in registers, against one that fits.
    double spill;
};
static const struct winograd_limits WINOGRAD = {
    .max_tiles = 256,
    .weight_tiles = 128,
    .min_tiles = 96,
    .batch_bytes = 2 << 20,
    .group_bytes = 16 << 20,
    .min_tasks = 4,
    .min_channels = 16 * CONV_CHANNELS,
    .few_channels = 128,
    .weight_channels = 256,
    .weight_tasks = 4,
    .max_maps = 1 << 20,
    .strip_vectors = 4,
    .sum_blocks = 4,
    .input_channels = 16,
    .rest_price = {0, 1.4, 2.3},
    .transposed_gain = 0.85,
    .product = 1.1,
    .map = 5,
    .spill = 2,
};

// Tiles that are transformed together: of `maps` maps (an image of an item each), rows x cols.
struct winograd_batch {
    size_t maps, rows, cols;
};

// Everything that is decided about one direction. Sizes are in scalars unless they say bytes.
struct winograd {
    struct tile_grid grid;
    bool weight;                 // backward weight
    size_t in, out;              // channels of a group, with phases that count as channels
    size_t frequencies;          // products of a tile and pair of channels
    struct winograd_batch batch; // one that is not at an edge
    size_t maps, batches[3];     // of the whole problem; batches along maps, rows, columns
    size_t positions;            // tiles of a batch in whole vectors
    // Input channels transformed at once, and output channels of a task; in backward weight whole
    // vectors and blocks.
    size_t chunk, oc_split, oc_splits;
    // Forward and backward data multiply transformed taps by tiles, tiles being positions;
    // transposed, for few tiles, output channels are positions. Taps lie in blocks of oc_block
    // output channels.
    bool transposed;
    size_t oc_block;
    bool shared_inputs; // splits of the output channels share the transformed inputs
    // Backward weight. shared_panels: threads share the panels of a batch, and its sums.
    // single_batch: that batch has all tiles, so sums are a worker's, and only for a strip. A strip
    // is the input channels that are side by side in a panel; sum_blocks the blocks of output
    // channels that have sums; group_chunk the groups that threads compute together.
    bool shared_panels, single_batch;
    size_t strip, sum_blocks, group_chunk;
    size_t k_splits;                  // of the batches
    size_t sums, in_panel, out_panel; // see struct winograd_scratch
    size_t in_plane, out_plane;       // from one frequency to the next
    size_t filter_plane;              // the same of a filter
    size_t samples, rows, stage;      // of a transform: see struct winograd_scratch
    size_t worker;                    // bytes
    size_t *offset; // of a chunk's channels for kernels->conv; in backward weight of tiles
};

// A transform along both axes of n tiles side by side. Element (i, j) of a tile is at x_row[i] +
// j*x_column, of its result at (i * to[1] + j) * y_plane. An axis of extent 1 is left alone.
struct winograd_transform {
    winograd_fn *kernel;
    size_t extent[WINOGRAD_AXES], count[WINOGRAD_AXES];
    size_t from[WINOGRAD_AXES], to[WINOGRAD_AXES]; // elements
    size_t n, x_row[WINOGRAD_EXTENT], x_column, y_plane;
};

// What is transformed: samples of x, taps or gy into frequencies, or sums to outputs or to taps.
enum winograd_operand {
    WINOGRAD_INPUT,
    WINOGRAD_TAPS,
    WINOGRAD_GRADIENT,
    WINOGRAD_OUTPUT,
    WINOGRAD_TAP_SUMS,
};

// The transform of an operand, without n, x_row, x_column and y_plane. Of NULL kernels: sizes only.
struct winograd_transform winograd_transform_of(const struct winograd *p,
                                                const struct kernels *kernels,
                                                enum winograd_operand operand);
void winograd_transform_tiles(const struct winograd_transform *transform, char *y, const char *x,
                              char *stage);

static inline const struct tile_axis *winograd_axis(const struct winograd *p, int axis)
{
    return &p->grid.axis[1 + axis];
}

static inline size_t winograd_lanes(const struct winograd *p)
{
    return CONV_BLOCK_BYTES / p->grid.scalar_bytes;
}

// Scalars in whole vectors.
static inline size_t winograd_vectors(const struct winograd *p, size_t n)
{
    return size_round_up(n, winograd_lanes(p));
}

static inline size_t winograd_batches(const struct winograd *p)
{
    return size_mul(p->batches[0] * p->batches[1], p->batches[2]);
}

// Rows of `cols` samples that belong to one residue, and room for the last one's last vector.
static inline size_t winograd_residue(const struct winograd *p, size_t rows, size_t cols)
{
    return rows * cols + winograd_lanes(p);
}

// One batch: its first map and tiles, and how many there are.
struct winograd_index {
    size_t map, at[WINOGRAD_AXES];
    struct winograd_batch batch;
    size_t tiles;
};
struct winograd_index winograd_index(const struct winograd *p, size_t batch);

// One channel of one map and phase: `samples` is its plane in x or gy.
struct winograd_plane {
    size_t item, image[3], phase[3];
    const char *samples;
};

// Prefetches the rows of a plane that a batch reads, or of outputs that it writes.
void winograd_prefetch(const struct winograd *p, const struct winograd_index *index,
                       const struct winograd_plane *plane, bool outputs, bool write);

// Item and image of a map.
void winograd_map(const struct winograd *p, size_t map, struct winograd_plane *ret);

// Memory of one worker. With shared inputs or panels the call's own replace `in` and the panels.
struct winograd_scratch {
    char *in, *out;               // transformed: [frequency][channel][positions]
    char *samples, *rows, *stage; // of one channel: tiles side by side, rows end to end, one axis
    // The transforms of tiles as kernels->conv takes them. Backward weight: panels
    // [strip][frequency][tile][input channel of the strip] and [block of output
    // channels][frequency][tile][channel of the block], and the sums. Transposed, of one frequency:
    // panels [block of tiles][input channel][tile of the block] and, its result, [tile][output
    // channel].
    char *sums, *in_panel, *out_panel;
};
struct winograd_scratch winograd_layout_worker(const struct winograd *p, struct arena *arena);

// Memory that the threads of a call share: with shared inputs, of one batch and group, the
// transformed inputs and, transposed, the panel of each frequency; with shared panels, of one
// group, the panels and sums.
struct winograd_shared {
    char *in;
    char *in_panel, *out_panel, *sums;
};
struct winograd_shared winograd_layout_shared(const struct winograd *p, struct arena *arena);
size_t winograd_shared_bytes(const struct winograd *p); // of all

// The i-th of them.
static inline struct winograd_shared winograd_shared(const struct winograd *p, char *workspace,
                                                     size_t i)
{
    struct arena arena = {0};
    winograd_layout_shared(p, &arena);
    arena = (struct arena){.base = workspace + i * arena.used};
    return winograd_layout_shared(p, &arena);
}

// Transforms n input channels of a batch and group from `first` on into
// to[frequency][channel][positions]; of outputs, the gradient's channels. Tiles of the maps are
// adjacent; the rest of the last vector is undefined.
struct winograd_inputs {
    const struct winograd *p;
    const struct kernels *kernels;
    bool outputs;
    size_t group;
    struct winograd_index index;
    const char *from; // the array
    char *to;
    const struct winograd_scratch *scratch;
};
void winograd_transform_inputs(const struct winograd_inputs *inputs, size_t first, size_t n);

// The layout of a split into tiles (layout.c), without offset, and the price of all batches in
// vectors of products of one frequency and pair of channels.
void winograd_layout(const struct request *request, const struct winograd_split *split,
                     struct winograd *ret, double *ret_price);

// Forward and backward data (forward.c), backward weight (weight.c).
void winograd_forward(const struct partita_plan *plan, const struct partita_filter *filter, void *y,
                      const void *x, void *workspace);
enum partita_status winograd_filter_create(struct partita_filter *filter, const void *taps);
void winograd_backward_weight(const struct partita_plan *plan, void *gw, const void *x,
                              const void *gy, void *workspace);

#endif
