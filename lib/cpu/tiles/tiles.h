// SPDX-License-Identifier: MIT
// What the files of cpu/tiles share: a plan, its arrays, one call. Arrays of spectra begin with the
// bin, so that all of a bin's channels and positions, the operands of one matrix product, lie
// together:
//   x [bin][in][re, im][block]    y [bin][part][re, im][block]    gw [bin][in][re, im][out, whole
//   lines]
// block counts positions: tiles of all images and items of the batch, a whole number of lines of
// them at once. Turned, lanes are output channels, in panels of a few lines, and there is one block
// (tiles_turned.c):
//   x [bin][re, im][four positions][in][position]
//   y [bin][part's panel][four positions][re, im][position][output channel], gw the same with input
//   channels for positions d [bin][panel][position][re, im][output channel], as a filter's factors
//   are with input channels for positions
#ifndef PARTITA_TILES_H
#define PARTITA_TILES_H

#include <limits.h>

#include "base/sizes.h"
#include "core/plan.h"
#include "geometry/tile_grid.h"
#include "transform.h"

// How spectra are multiplied: by four real products, or by three and two additions (Gauss); by four
// with output channels along the vectors instead of positions.
enum tiles_product { TILES_COMPLEX, TILES_GAUSS, TILES_TURNED };

enum {
    TILES_ROWS = CONV_CHANNELS / 2
}; // rows of a turned product's sums, complex ones, that a kernel has at once

struct tiles {
    struct tile_grid grid;
    struct tile_tables transform;
    enum partita_direction direction;
    enum tiles_product product;
    size_t in, out;      // transformed channels of a group, phases included
    size_t lanes;        // of a line
    size_t positions;    // all of them
    size_t block;        // of one block
    size_t part;         // output channels multiplied and transformed back at once
    size_t chunk;        // input channels (backward weight: positions) packed for one product
    size_t *offset;      // of a chunk's terms
    size_t x_bin, y_bin; // from one bin to the next, in scalars; y: of gw for backward weight
    size_t d_bin;        // of gy for backward weight
    size_t cells;        // turned: of x, input channels times positions, whole lines
    size_t panel;        // turned: output channels side by side in a product, whole lines
    size_t
        in_part; // turned backward weight: input channels multiplied and transformed back at once
    size_t packed_bin; // turned backward weight: of those of x as products read them
};

// What positions of a block are.
struct tiles_place {
    size_t item, image[3], tile[3];
};

struct tiles_call {
    const struct partita_plan *plan;
    const struct tiles *tiles;
    const struct partita_filter *filter; // NULL: backward weight
    const char *from, *from_gy;          // x, or gy; gy of backward weight
    char *to;
    size_t group;
    size_t first;              // position of the block
    size_t part_first, part_n; // output channels
    size_t in_first, in_n;     // input channels of turned sums of backward weight
    struct tiles_place *place;
    char *x, *y, *d; // spectra
    char *packed;    // of x as turned products of backward weight read them
    char *saved; // x of all blocks and groups: made by forward, read by backward weight; NULL: not
                 // kept
    char *scratch; // of all workers
};

// What is to be decided: tiles of `transform` samples along each axis, or of all there are; how to
// multiply; positions and output channels at once, at most.
struct tiles_way {
    size_t transform, block, part;
    enum tiles_product product;
};

// The shape cut that way; false if it has no such tiles. Leaves transform and offset open.
bool tiles_cut(const struct request *request, const struct tiles_way *way, struct tiles *ret,
               size_t ret_n[3]);

// An estimate's variant holds what its transform and hop do not say. Only backward weight has parts
// that it has no room for, where a part is all output channels and nobody asks.
static inline int tiles_variant(const struct tiles *tiles)
{
    return (int)(size_min(tiles->part, INT_MAX >> 2) << 2) | (int)tiles->product;
}

static inline struct tiles_way tiles_way_of(const struct estimate *choice)
{
    return (struct tiles_way){choice->transform, choice->hop, (size_t)choice->variant >> 2,
                              (enum tiles_product)(choice->variant & 3)};
}

// Lines of positions of a block.
static inline size_t tiles_lines(const struct tiles *tiles)
{
    return tiles->block / tiles->lanes;
}

void tiles_estimate(const struct request *request, struct estimate *ret);

// Bytes of all spectra of an array, bins `bin` scalars apart.
size_t tiles_spectra_bytes(const struct tiles *tiles, const size_t n[3], size_t bin);

// Bytes of the parts of the workspace: what all threads share, and each thread's.
size_t tiles_shared_bytes(const struct tiles *tiles, const size_t n[3]);
size_t tiles_worker_bytes(const struct tiles *tiles, const size_t n[3]);

// Scalars of all spectra of a filter.
size_t tiles_filter_scalars(const struct tiles *tiles, size_t bins);

static inline char *tiles_scratch(const struct tiles_call *call, int worker)
{
    return call->scratch + (size_t)worker * call->plan->choice.worker;
}

enum partita_status tiles_filter_create(struct partita_filter *filter, const void *taps);

// What lies side by side in a line: positions of one channel; cells, a few positions of each
// channel after the other; channels at one position.
enum tiles_order { TILES_POSITIONS, TILES_CELLS, TILES_CHANNELS };

// One array in tiles: what is transformed, or written after the inverse transform.
struct tiles_array {
    const char *data;
    bool outputs;    // of the grid's outputs, else of its inputs
    size_t channels; // of a group, phases included
    size_t first, n; // those of them that are meant
    enum tiles_order order;
};

// Transforms all channels and positions of a block; bins are `bin` scalars apart.
void tiles_load(const struct tiles_call *call, const struct tiles_array *array, char *spectra,
                size_t bin);

// The other way, into the outputs of a block and part.
void tiles_store(const struct tiles_call *call);

// y from x and the filter; gw from x and d, added to what it holds unless the block is the first.
void tiles_multiply(const struct tiles_call *call);
void tiles_multiply_weight(const struct tiles_call *call);

// The same turned: of the part's output channels, and of the part's input channels, once these are
// packed.
void tiles_pack_turned(const struct tiles_call *call);
void tiles_multiply_turned(const struct tiles_call *call);
void tiles_multiply_weight_turned(const struct tiles_call *call);

// gw from its spectra.
void tiles_store_weight(const struct tiles_call *call);

// All lanes' rows of zeros and of copied samples, which every worker's scratch begins with.
static inline size_t tiles_rows_bytes(const struct tiles *tiles, const size_t n[3])
{
    return mem_round(size_mul((tiles->lanes + 1) * tiles->grid.scalar_bytes, n[2]));
}

// Output channels in whole panels.
static inline size_t tiles_wide(const struct tiles *tiles, size_t n)
{
    return (n + tiles->panel - 1) / tiles->panel * tiles->panel;
}

// Turned sums: row `row` of `rows`, output channels from k of the part on. Input cells of a group
// of rows lie likewise.
static inline struct tile_spectrum tiles_sums(const struct tiles *tiles, char *sums, size_t rows,
                                              size_t row, size_t k)
{
    const size_t group = row / TILES_ROWS * TILES_ROWS,
                 own = rows - group < TILES_ROWS ? rows - group : TILES_ROWS;
    const size_t panel = tiles->panel,
                 at = k / panel * rows * 2 * panel + (group + row) * panel + k % panel;
    return (struct tile_spectrum){sums + at * tiles->grid.scalar_bytes, tiles->y_bin, own * panel};
}

// Turned factors, of a filter or of gy: term `term` of `terms`, output channels from k on.
static inline struct tile_spectrum tiles_factors(const struct tiles *tiles, char *factors,
                                                 size_t bin, size_t terms, size_t term, size_t k)
{
    const size_t panel = tiles->panel, at = (k / panel * terms + term) * 2 * panel + k % panel;
    return (struct tile_spectrum){factors + at * tiles->grid.scalar_bytes, bin, panel};
}

// A spectrum of whole lines of one channel.
static inline struct tile_spectrum tiles_spectrum(const struct tiles *tiles, char *spectra,
                                                  size_t bin, size_t row, size_t channel,
                                                  size_t line)
{
    return (struct tile_spectrum){
        spectra + (channel * 2 * row + line * tiles->lanes) * tiles->grid.scalar_bytes, bin, row};
}

#endif
