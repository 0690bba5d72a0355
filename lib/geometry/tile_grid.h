// SPDX-License-Identifier: MIT
// A layer as a grid of tiles, for engines that transform tiles. Along an axis, stride and dilation
// are removed by grouping: outputs belong to *images* by their residue (dilation), taps to
// *branches* by theirs (stride), so that within an image and a branch tap k < taps of output
// position q reads input position q + k. Branches count as input channels in forward and backward
// weight, and as output channels in backward data. A tile is `tile` adjacent outputs; it reads
// `extent` = tile + taps - 1 inputs. Source: polyphase decomposition, Crochiere & Rabiner,
// Multirate Digital Signal Processing (1983), 3.3.
#ifndef PARTITA_TILE_GRID_H
#define PARTITA_TILE_GRID_H

#include <partita/plan.h>

#include "base/mem.h"
#include "core/problem.h"

// The samples of one array: image i, branch j, position q is sample base + image*i + branch*j +
// step*q. Indices outside [0, size) are padding (inputs) or do not exist (outputs).
struct tile_side {
    size_t size;
    ptrdiff_t base;
    size_t image, branch, step;
};

struct tile_axis {
    struct tile_side in, out;
    size_t images, branches;
    size_t kernel, period, taps; // tap k of branch j is tap j + period*k of the kernel, if any
    bool reversed;               // taps-1-k takes the place of k: backward data
    ptrdiff_t first, lead;       // position of output 0 of tile 0, and from there to its input 0
    size_t count;                // maximum outputs of an image and branch, from `first` on
    size_t tile, extent, tiles;  // by tile_grid_split
    size_t whole;                // samples of a transform of the whole axis, by tile_search; 0: not
                                 // known
};

struct tile_grid {
    struct tile_axis axis[3]; // 0 is the slowest; unused axes have one sample and one tap
    size_t batch, groups;     // as the shape's
    size_t in, out;           // channels of a group, without branches
    bool branches_out;        // whether branches are output channels
    bool flip;                // taps are read backwards
    bool sevens;              // sizes of tiles by tile_tables_next_size; false by tile_grid_make
    bool covers;              // backward data: every sample of gx belongs to an image and a branch
    size_t scalar_bytes;
    size_t images, branches; // of all axes
    size_t tiles;            // of one image of one item of the batch, by tile_grid_split
};

// Makes the grid of a direction, of rank 3 at most; backward weight has the grid of forward. False
// if steps are beyond the range of indices.
bool tile_grid_make(const struct shape *shape, enum partita_direction direction,
                    struct tile_grid *ret);

// Splits each axis into tiles of that many outputs.
void tile_grid_split(struct tile_grid *grid, const size_t tile[3]);

// Coordinates along all axes of an image, a branch or a tile by its index.
void tile_grid_image(const struct tile_grid *grid, size_t image, size_t ret[3]);
void tile_grid_branch(const struct tile_grid *grid, size_t branch, size_t ret[3]);
void tile_grid_tile(const struct tile_grid *grid, size_t tile, size_t ret[3]);

// Index, in the caller's taps of one path, of tap k of a branch; SIZE_MAX: there is none, it counts
// as 0.
size_t tile_grid_tap(const struct tile_grid *grid, const size_t branch[3], const size_t k[3]);

// Index of the caller's path in w for input channel c and output channel k of a group.
size_t tile_grid_path(const struct tile_grid *grid, size_t group, size_t k, size_t c);

// Index of the sample at position q of an image and branch; may be outside [0, size).
static inline ptrdiff_t tile_sample(const struct tile_side *side, size_t image, size_t branch,
                                    ptrdiff_t q)
{
    return side->base + (ptrdiff_t)(side->image * image + side->branch * branch) +
           (ptrdiff_t)side->step * q;
}

// Position of the first output of a tile.
static inline ptrdiff_t tile_output(const struct tile_axis *axis, size_t tile)
{
    return axis->first + (ptrdiff_t)(axis->tile * tile);
}

// The same in the array of outputs or of inputs, and that array.
static inline ptrdiff_t tile_position(const struct tile_axis *axis, bool outputs, size_t tile)
{
    return tile_output(axis, tile) + (outputs ? 0 : axis->lead);
}

static inline const struct tile_side *tile_side(const struct tile_axis *axis, bool outputs)
{
    return outputs ? &axis->out : &axis->in;
}

// The range begin <= i < end for which the sample of position q + i exists, i < n.
struct tile_range {
    size_t begin, end;
};
struct tile_range tile_within(const struct tile_side *side, size_t image, size_t branch,
                              ptrdiff_t q, size_t n);

#endif
