// SPDX-License-Identifier: MIT
// What the files of cpu/tiles share: its limits and costs, the layout of a direction, its arrays,
// one call. Arrays of spectra begin with the bin, so that all of a bin's channels and positions,
// the operands of one matrix product, are adjacent:
//   x  [bin][in][re, im][batch]    y [bin][oc_chunk][re, im][batch]
//   gw [bin][in][re, im][out, whole lines]
// A tile batch counts positions: tiles of all images and items, a whole number of lines of them.
// Transposed, lanes are output channels, in panels of a few lines, and there is one batch:
//   x  [bin][re, im][four positions][in][position]
//   y  [bin][panel][four positions][re, im][position][output channel]
//   gw as y with input channels in place of positions
//   gy [bin][panel][position][re, im][output channel], and the taps with input channels in place of
//      positions
#ifndef PARTITA_TILES_H
#define PARTITA_TILES_H

#include "base/sizes.h"
#include "base/thread.h"
#include "core/plan.h"
#include "geometry/tile_grid.h"
#include "transform.h"

// How spectra are multiplied: by four real products, or by three and two additions (Gauss); by four
// with output channels along the vectors instead of positions.
enum tiles_product { TILES_COMPLEX, TILES_GAUSS, TILES_TRANSPOSED };

enum { TILES_ROWS = CONV_CHANNELS / 2 }; // complex rows of a transposed product of one kernel call

// "Derived": from an L1 cache of 32 KiB and an L2 cache of 1 MiB; "measured": on AVX-512 with the
// layers of decision 15; "typed": chosen.
struct tiles_limits {
    size_t max_terms;            // of a product, summed in registers before a sum is rounded
    size_t max_elements;         // of a tile; typed
    size_t transposed_positions; // up to which transposed products are tried; measured
    size_t weight_in;            // input channels of transposed sums of gw, for one reading of gy
    size_t weight_out;           // output channels of them where forward says how tiles are split
    // Costs, in fused multiply-adds: an operation of a transform with its loads and stores; a
    // product's multiply-add, and what it takes more over the number of lines of positions, with
    // Gauss's product over its square, and transposed. Measured.
    double transform, product, narrow, narrow_gauss, transposed;
    double edge;         // copies of a sample that each sample of a tile takes on its way; measured
    double sums;         // copies of a scalar that clearing, loading and storing a sum takes
    double task_seconds; // of a task of transforms; measured
};
static const struct tiles_limits TILES = {
    .max_terms = 512,
    .max_elements = 1 << 17,
    .transposed_positions = 32,
    .weight_in = 32,
    .weight_out = 64,
    .transform = 0.8,
    .product = 1.12,
    .narrow = 0.4,
    .narrow_gauss = 0.6,
    .transposed = 0.3,
    .edge = 4,
    .sums = 3,
    .task_seconds = 1e-6,
};

// An estimate's decision: tiles of `transform` samples along each axis, or of all there are; how
// many positions and output channels at once, at most; how to multiply.
struct tiles_params {
    size_t transform, batch, oc_chunk;
    enum tiles_product product;
};

struct tiles {
    struct tile_grid grid;
    size_t n[3]; // samples of a transform along each axis
    size_t bins;
    struct tile_tables tables; // empty in a layout
    bool weight;               // backward weight
    enum tiles_product product;
    size_t in, out;              // transformed channels of a group, phases included
    size_t lanes;                // of a line
    size_t positions, batch;     // all of them; of one batch
    size_t oc_chunk;             // output channels multiplied and transformed back at once
    size_t chunk;                // input channels (weight: positions) packed for one product
    size_t *offset;              // of a chunk's terms
    size_t x_bin, y_bin, gy_bin; // from one bin to the next, in scalars; y: of gw
    size_t x_scalars;            // transposed: real parts of a bin of x, in whole lines
    size_t panel;                // transposed: output channels of a product, whole lines
    size_t ic_chunk;             // transposed weight: input channels at once
    size_t packed_bin;           // transposed weight: x as products read it
};

// The layout that parameters make of a request, without tables and offset; false if there is none.
bool tiles_layout(const struct request *request, const struct tiles_params *params,
                  struct tiles *ret);

void tiles_estimate(const struct request *request, struct estimate *ret);

// One position of a batch.
struct tiles_position {
    size_t item, image[3], tile[3];
};

// Spectra and positions of a call in the workspace that its threads share. `cached`: x is in the
// caller's cached spectra.
struct tiles_shared {
    struct tiles_position *position;
    char *x, *y, *gy;
    char *packed; // x as transposed products of backward weight read it
};
struct tiles_shared tiles_layout_shared(const struct tiles *p, bool cached, struct arena *arena);
size_t tiles_shared_bytes(const struct tiles *p, bool cached);

// A worker's memory: of transforms, a row of zeros and one for each lane, and the elements; or of
// products.
struct tiles_worker {
    char *rows, *z;
};
struct tiles_product_worker {
    char *packed, *sums;   // of a chunk; Gauss's third product
    char *zeros, *weights; // backward weight
};
struct tiles_worker tiles_layout_worker(const struct tiles *p, struct arena *arena);
struct tiles_product_worker tiles_layout_product_worker(const struct tiles *p, struct arena *arena);
size_t tiles_worker_bytes(const struct tiles *p);

// Bytes of all spectra of an array, bins `bin` scalars apart; scalars of those of a filter.
size_t tiles_spectra_bytes(const struct tiles *p, size_t bin);
size_t tiles_filter_scalars(const struct tiles *p, size_t bins);

struct tiles_call {
    const struct partita_plan *plan;
    const struct tiles *p;
    const struct kernels *kernels;
    const struct partita_filter *filter; // NULL: backward weight
    const char *x, *gy;                  // what is transformed; gy of backward weight alone
    char *to;
    size_t group;
    size_t first;          // position of the batch
    size_t oc_first, oc_n; // output channels
    size_t ic_first, ic_n; // input channels of gw
    char *cached;          // spectra of x of all batches and groups; NULL: none
    struct tiles_shared spectra;
    char *workers;
};

static inline struct arena tiles_worker_arena(const struct tiles_call *call, int worker)
{
    return (struct arena){.base = call->workers + (size_t)worker * call->plan->choice.worker};
}

// Lanes of a line: positions of one channel; a few positions of each channel after the other;
// channels at one position.
enum tiles_order { TILES_POSITIONS, TILES_INTERLEAVED, TILES_CHANNELS };

// One array in tiles: what is transformed, or written after the inverse transform.
struct tiles_array {
    const char *data;
    bool outputs;    // of the grid's outputs, else of its inputs
    size_t channels; // of a group, phases included
    size_t first, n; // those of them that are meant
    enum tiles_order order;
};

// Transforms all channels and positions of a batch; bins are `bin` scalars apart. The other way,
// into the outputs of a batch and chunk of output channels.
void tiles_load(const struct tiles_call *call, const struct tiles_array *array, char *spectra,
                size_t bin);
void tiles_store(const struct tiles_call *call);

// y from x and the filter, of a chunk of output channels; gw from x and gy, added to what it holds
// unless the batch is the first. Transposed products of backward weight take a chunk of input
// channels, which are packed first.
void tiles_multiply(const struct tiles_call *call);
void tiles_pack_inputs(const struct tiles_call *call);

// Taps into spectra; gw from its spectra.
enum partita_status tiles_filter_create(struct partita_filter *filter, const void *taps);
void tiles_store_weight(const struct tiles_call *call);

// Row (d, h) of the elements of a pair of lines.
static inline char *tiles_row(const struct tiles *p, char *z, size_t d, size_t h)
{
    return z + (d * p->tables.step[0] + h * p->tables.step[1]) * 2 * TILE_LINE_BYTES;
}

// Output channels in whole panels.
static inline size_t tiles_whole_panels(const struct tiles *p, size_t n)
{
    return size_round_up(n, p->panel);
}

// Transposed sums: row `row` of `rows`, output channels from k of the chunk on. The positions of x
// are grouped likewise.
static inline struct tile_spectrum tiles_sums(const struct tiles *p, char *sums, size_t rows,
                                              size_t row, size_t k)
{
    const size_t panel = p->panel, group = row / TILES_ROWS * TILES_ROWS;
    const size_t own = size_min(rows - group, TILES_ROWS);
    const size_t at = k / panel * rows * 2 * panel + (group + row) * panel + k % panel;
    return (struct tile_spectrum){sums + at * p->grid.scalar_bytes, p->y_bin, own * panel};
}

// Transposed factors, of a filter or of gy: term `term` of `terms`, output channels from k on.
static inline struct tile_spectrum tiles_factors(const struct tiles *p, char *factors, size_t bin,
                                                 size_t terms, size_t term, size_t k)
{
    const size_t panel = p->panel, at = (k / panel * terms + term) * 2 * panel + k % panel;
    return (struct tile_spectrum){factors + at * p->grid.scalar_bytes, bin, panel};
}

#endif
