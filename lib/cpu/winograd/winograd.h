// SPDX-License-Identifier: MIT
// What the files of cpu/winograd share: the choice of tiles and blocks, and the transforms along
// both axes.
#ifndef PARTITA_WINOGRAD_H
#define PARTITA_WINOGRAD_H

#include "base/winograd_matrix.h"
#include "core/plan.h"
#include "geometry/tile_grid.h"
#include "geometry/winograd_error.h"
#include "kernels/kernels.h"

// The axes that are transformed: of three, the last two.
enum { AXES = 2, FIRST_AXIS = 1 };

// Backward weight.
enum {
    WINOGRAD_WEIGHT_CHANNELS = 256, // of x and of gy that meet in one task at most
    WINOGRAD_HELD = 4,              // blocks of output channels whose taps are made at once
};

// A block of tiles: `maps` maps (an image of an item of the batch each) of rows x cols tiles.
struct winograd_block {
    size_t maps, rows, cols;
};

// Everything decided about one direction. Sizes in scalars unless they say bytes.
struct winograd {
    struct tile_grid grid;
    size_t in, out;             // channels of a group with the phases that are channels
    size_t frequencies;         // products of a tile and pair of channels: both extents multiplied
    struct winograd_block most; // a block that is not at an edge
    size_t maps, blocks[3];     // of the whole problem; blocks along maps, rows, columns
    size_t positions;           // tiles of a block in whole vectors
    // Input channels transformed at once, output channels of a task; whole vectors and blocks in
    // backward weight.
    size_t chunk, part, parts;
    // Forward and backward data multiply transformed taps by tiles, tiles being positions; turned,
    // for few tiles, output channels are positions. A filter's blocks have so many of these.
    bool turned;
    size_t width;
    // Forward and backward data in parts of the output channels: all parts share the transformed
    // inputs.
    bool shares;
    size_t sums, in_panel, out_panel; // backward weight and turned, see struct winograd_scratch
    size_t in_plane, out_plane;       // from one frequency to the next
    size_t dealt, joined,
        between; // scratch of a transform: samples dealt out, rows end to end, between the axes
    // Backward weight. together: threads share the panels of a block, and its sums; once: that
    // block has all tiles, so sums are held by a thread, and only for a strip. Input channels side
    // by side in a panel; blocks of output channels whose sums are held; runs of blocks with sums
    // of their own.
    bool together, once;
    size_t strip, held, at_once; // at_once: groups that threads are at together
    size_t runs, run_bytes;
    size_t filter_plane; // of a filter
    size_t worker;       // bytes
    size_t *offset;      // of a chunk's channels, for kernels->conv; of tiles, for backward weight
};

// A transform along both axes of n tiles side by side. Element (i, j) of a tile is at x_row[i] +
// j*x_column, of its result at (i * to[1] + j) * y_plane. An axis of extent 1 is left alone.
struct winograd_both {
    size_t extent[AXES], count[AXES], from[AXES], to[AXES];
    size_t n, x_row[WINOGRAD_EXTENT], x_column, y_plane;
};

struct winograd_both winograd_of_input(const struct winograd *winograd);
struct winograd_both winograd_of_output(const struct winograd *winograd);
struct winograd_both winograd_of_taps(const struct winograd *winograd);
struct winograd_both winograd_of_gradient(const struct winograd *winograd); // of y
struct winograd_both winograd_of_tap_sums(const struct winograd *winograd);
void winograd_transform(winograd_fn *kernel, const struct winograd_both *both, char *y,
                        const char *x, char *between);

static inline const struct tile_axis *winograd_axis(const struct winograd *winograd, int axis)
{
    return &winograd->grid.axis[FIRST_AXIS + axis];
}

// Tiles in whole vectors.
static inline size_t winograd_positions(const struct winograd *winograd, size_t tiles)
{
    const size_t lanes = CONV_BLOCK_BYTES / winograd->grid.scalar_bytes;
    return (tiles + lanes - 1) / lanes * lanes;
}

static inline size_t winograd_blocks(const struct winograd *winograd)
{
    return size_mul(winograd->blocks[0] * winograd->blocks[1], winograd->blocks[2]);
}

// Lines of `cols` samples that are dealt out to one residue.
static inline size_t winograd_residue(const struct winograd *winograd, size_t lines, size_t cols)
{
    return lines * cols + CONV_BLOCK_BYTES / winograd->grid.scalar_bytes;
}

// Where a block lies: its first map and tiles, and how many there are.
struct winograd_place {
    size_t map, at[AXES];
    struct winograd_block block;
};

struct winograd_place winograd_place(const struct winograd *winograd, size_t block);

// One map of a block: the item of the batch and the image.
struct winograd_map {
    size_t item, image[3];
};

struct winograd_map winograd_map(const struct winograd *winograd, size_t map);

// Of one channel's plane and phase, the samples of a map's tiles as winograd_transform takes them:
// `count` elements along each axis of inputs (or of outputs) on `side`. Returns where rows begin in
// both->x_row.
void winograd_deal(const struct winograd *winograd, const struct kernels *kernels, bool outputs,
                   const struct winograd_place *place, const struct winograd_map *map,
                   const size_t phase[3], const char *plane, char *dealt, char *joined,
                   struct winograd_both *both);

// Asks for the rows that a block reads of a channel's plane, or writes to it.
void winograd_fetch(const struct winograd *winograd, bool outputs,
                    const struct winograd_place *place, const struct winograd_map *map,
                    size_t phase, const char *plane, bool write);

// Memory of one thread.
struct winograd_scratch {
    char *in, *out;                 // transformed: [frequency][channel][positions]
    char *dealt, *joined, *between; // of one channel
    // The transforms of tiles as kernels->conv takes them. Backward weight: panels
    // [strip][frequency][tile][input channel of the strip] and [block of output
    // channels][frequency][tile][channel of the block], and the sums. Turned, of one frequency:
    // panels [block of tiles][input channel][tile of the block] and, its result, [tile][output
    // channel].
    char *sums, *in_panel, *out_panel;
};

// Bytes of transformed outputs; backward weight has those of gy in the place of those of x, one
// after the other.
static inline size_t winograd_outputs_bytes(const struct winograd *winograd)
{
    if (winograd->strip) return 0;
    return mem_round(
        size_mul(winograd->frequencies * winograd->grid.scalar_bytes, winograd->out_plane));
}

static inline struct winograd_scratch winograd_scratch(const struct winograd *winograd,
                                                       char *worker)
{
    const size_t bytes = winograd->grid.scalar_bytes;
    struct winograd_scratch at = {.in = worker};
    at.out = at.in +
             (winograd->shares ? 0 : mem_round(winograd->frequencies * winograd->in_plane * bytes));
    at.dealt = at.out + winograd_outputs_bytes(winograd);
    at.joined = at.dealt + mem_round(winograd->dealt * bytes);
    at.between = at.joined + mem_round(winograd->joined * bytes);
    at.sums = at.between + mem_round(winograd->between * bytes);
    at.in_panel = at.sums + mem_round(winograd->sums * bytes);
    at.out_panel = at.in_panel + (winograd->shares ? 0 : mem_round(winograd->in_panel * bytes));
    return at;
}

// Backward weight, one group: bytes of panels; and of what threads share, panels and then sums.
static inline size_t winograd_panels_bytes(const struct winograd *winograd)
{
    const size_t bytes = winograd->grid.scalar_bytes;
    return size_add(mem_round(size_mul(winograd->in_panel, bytes)),
                    mem_round(size_mul(winograd->out_panel, bytes)));
}

static inline size_t winograd_together_bytes(const struct winograd *winograd)
{
    const size_t sums =
        winograd->once ? 0 : mem_round(size_mul(winograd->sums, winograd->grid.scalar_bytes));
    return size_add(winograd_panels_bytes(winograd), sums);
}

// One block and group: bytes of its transformed inputs; of those and their panels, turned, one for
// each frequency.
static inline size_t winograd_inputs_bytes(const struct winograd *winograd)
{
    return mem_round(
        size_mul(winograd->frequencies * winograd->grid.scalar_bytes, winograd->in_plane));
}

static inline size_t winograd_shared_bytes(const struct winograd *winograd)
{
    const size_t panel = mem_round(size_mul(winograd->in_panel, winograd->grid.scalar_bytes));
    return size_add(winograd_inputs_bytes(winograd), size_mul(winograd->frequencies, panel));
}

// Transforms n input channels of a block and group from `first` on into
// in[frequency][channel][positions]; of outputs, the gradient's channels. Tiles of the maps lie
// behind each other; what follows the last one in its vector is left as it comes.
struct winograd_inputs {
    const struct winograd *winograd;
    const struct kernels *kernels;
    bool outputs;
    size_t group;
    struct winograd_place place;
    const char *from; // the array
    char *to;
    const struct winograd_scratch *at;
};
void winograd_transform_inputs(const struct winograd_inputs *inputs, size_t first, size_t n);

// Backward weight (winograd_weight.c).
void winograd_backward_weight(const struct partita_plan *plan, void *gw, const void *x,
                              const void *gy, void *workspace);

// Forward and backward data (winograd_run.c).
void winograd_forward(const struct partita_plan *plan, const struct partita_filter *filter, void *y,
                      const void *x, void *workspace);
enum partita_status winograd_filter_create(struct partita_filter *filter, const void *taps);

#endif
