// SPDX-License-Identifier: MIT
// What the files of cpu/tiles share: its limits and costs, the layout of a direction, its arrays,
// one call. The first index of arrays of spectra is the bin, so that all channels and positions of
// a bin, which are the operands of one matrix product, are adjacent:
//   x  [bin][in][re, im][batch]    y [bin][oc_chunk][re, im][batch]
//   gy [bin][position][re, im][out, whole lines]       gw [bin][in][re, im][out, whole lines]
//   gx [bin][position][re, im][in, whole lines]
// The positions of a tile batch are tiles of all images and items, rounded up to whole lines. In
// transposed products the lanes are output channels, in panels of a few lines, and there is one
// batch:
//   x  [bin][re, im][four positions][in][position]
//   y  [bin][panel][four positions][re, im][position][output channel]
//   gy [line of output channels][bin][position][re, im][output channel]
// and the taps are [chunk of output channels][bin][panel][in][re, im][output channel].
#ifndef PARTITA_TILES_H
#define PARTITA_TILES_H

#include "base/sizes.h"
#include "base/thread.h"
#include "core/plan.h"
#include "geometry/tile_grid.h"
#include "geometry/tile_tables.h"
#include "kernels/kernels.h"

// How spectra are multiplied: with four real products; with three real products and additions
// (Gauss); or with four real products and output channels instead of positions along the vectors.
enum tiles_product { TILES_COMPLEX, TILES_GAUSS, TILES_TRANSPOSED };

static_assert((int)TILE_ROWS == CONV_CHANNELS / 2, "real and imaginary rows of one call");

// "Derived": from an L1 cache of 32 KiB and an L2 cache of 1 MiB; "measured": on AVX-512 with the
// layers of decision 15; "chosen": by hand.
static const struct {
    size_t max_terms, max_elements, transposed_positions, staged_bytes, min_staged, panel_bytes;
    size_t near_bytes, far_bytes, min_tasks, window_terms;
} TILES = {
    .max_terms = 512,           // of a product, summed in registers before a sum is rounded
    .max_elements = 1 << 17,    // of a tile; chosen
    .transposed_positions = 32, // up to which transposed products are tried; measured
    .staged_bytes = 1 << 20,    // of the staged rows of a worker, of more than min_staged; derived
    .min_staged = 4,         // channels, since each pass over samples reads whole lines; measured
    .near_bytes = 512 << 10, // of what a task of backward weight reads again and again; derived
    .far_bytes = 16 << 20,   // of an array that the last cache does not keep; chosen
    .min_tasks = 64,         // of transposed backward weight, else of fewer channels each; chosen
    .panel_bytes = 7 << 10,  // of factors that one call reads again and again; measured with AVX2
    .window_terms = 64,      // output channels whose factors are packed for windows of gx; chosen
};

// An estimate's decision: tiles of `transform` samples along each axis, or of the whole axis if it
// is shorter; maximum number of positions and of output channels at once, SIZE_MAX for all; how to
// multiply. Equal decisions are equal bytes: there is no padding.
struct tiles_params {
    size_t transform, batch, oc_chunk;
    enum tiles_product product;
    unsigned windows; // 1: backward data as the transpose of forward with these parameters
};

// Memory of a worker for transposed backward weight. A pair of lines along the last axis keeps the
// elements that are taps.
enum { TILES_PAIRS = TILE_ROWS / 2, TILES_MAX_PAIRS = 4 * TILES_PAIRS };
struct tiles_kept {
    size_t step[2]; // from one plane and row to the next: odd, so that columns do not fall into one
                    // set of the cache
    size_t elements; // of a pair
    size_t row;      // elements of a row of frequencies and, where it has another one, its opposite
    // Pairs of input channels of a task. More of them read gy less often; their kept elements stay
    // in the cache, and there are enough tasks for all threads.
    size_t pairs;
    size_t bytes;
};

struct tiles {
    struct tile_grid grid;
    size_t n[3]; // samples of a transform along each axis
    size_t bins;
    struct tile_tables tables; // empty in a layout
    bool weight;               // backward weight
    bool windows;              // backward data on the grid of forward: adds windows of gx
    enum tiles_product product;
    size_t in, out;          // transformed channels of a group, branches included
    size_t lanes;            // of a line
    size_t positions, batch; // number of positions; of one batch
    size_t staged;   // channels last: lines of a task whose samples are staged; 0: they are not
    size_t oc_chunk; // output channels multiplied and transformed back at once
    size_t chunk;    // input channels, or positions of backward weight, of a product
    size_t *offset;  // of a chunk's terms
    size_t x_bin, y_bin, gy_bin; // scalars from one bin to the next; y_bin may be that of gw
    size_t x_scalars;            // transposed: real parts of a bin of x, rounded up to whole lines
    size_t panel;                // transposed: output channels of a product, in whole lines
    struct tiles_kept kept;
    double load, store, taps; // operations of a pair of transforms: of samples, results, taps
};

// The layout of a request with these parameters, without tables and offset; false if there is none.
bool tiles_layout(const struct request *request, const struct tiles_params *params,
                  struct tiles *ret);

// Makes the parameters of forward those of a gradient that shares its tiles and batches.
static inline void tiles_params_share(struct tiles_params *params, enum partita_direction direction)
{
    params->windows = direction == PARTITA_BACKWARD_DATA;
    if (params->windows) return;
    params->oc_chunk = SIZE_MAX;
    if (params->product == TILES_GAUSS) params->product = TILES_COMPLEX;
}

// The steps of a layout. tiles_layout_size: the shape in tiles of `transform` samples, `whole` is
// the request's grid. tiles_layout_batches: batches of one size, whole lines each, and chunks.
bool tiles_layout_size(const struct request *request, const struct tile_grid *whole,
                       size_t transform, struct tiles *ret);
void tiles_layout_batches(const struct tiles_params *params, struct tiles *p);

void tiles_estimate(const struct request *request, struct estimate *ret);

// One position of a batch.
struct tiles_position {
    size_t item, image[3], tile[3];
};

// Spectra and positions of a call, in the part of the workspace that its threads share. `cached`: x
// is in a saved slot, always.
struct tiles_shared {
    struct tiles_position *position;
    char *x, *y, *gy;
};
struct tiles_shared tiles_layout_shared(const struct tiles *p, bool cached, struct arena *arena);
size_t tiles_shared_bytes(const struct tiles *p, bool cached);

// A worker's memory, for transforms or for products.
struct tiles_worker {
    char *rows, *z;      // a row of zeros and one for each lane; the elements of a pair of lines
    char *sum;           // a row of gx before a window is added to it
    char *taps;          // gradient of a line: [tap][lane]
    char *staged;        // rows of the lanes of tiles_staged lines
    char *packed, *sums; // the packed factors of a chunk; Gauss's third product
};
struct tiles_worker tiles_layout_worker(const struct tiles *p, struct arena *arena);
size_t tiles_worker_bytes(const struct tiles *p);

// Bytes of all spectra of an array with `bin` scalars from bin to bin.
size_t tiles_spectra_bytes(const struct tiles *p, size_t bin);

// The spectra of a filter lie in the order in which products read them, first the group, then the
// chunk of output channels, then the bin. tiles_factor_scalars: of n output channels of a group and
// a bin. tiles_filter_scalars: of all groups and of `bins` bins.
// tiles_chunk_scalars: those before a bin of the chunk that begins with output channel `first`.
size_t tiles_factor_scalars(const struct tiles *p, size_t n);
size_t tiles_filter_scalars(const struct tiles *p, size_t bins);
size_t tiles_chunk_scalars(const struct tiles *p, size_t group, size_t bin, size_t first);

struct tiles_call {
    const struct partita_plan *plan;
    const struct tiles *p;
    const struct kernels *kernels;
    const struct partita_filter *filter; // NULL: backward weight
    const char *x, *gy; // the arrays that are transformed: gy only with the grid of forward; taps
    char *to;
    int threads;
    size_t group;
    size_t first;                                // the batch's first position
    size_t oc_first, oc_n;                       // output channels
    const struct saved_slot *saved[SAVED_SLOTS]; // spectra of all batches and groups; NULL: none
    _Atomic uint64_t *peak; // raised by what is read of from[0]; of backward weight, of gy
    struct tiles_shared spectra;
    char *workers;
    size_t worker_bytes;
};

static inline struct arena tiles_worker_arena(const struct tiles_call *call, int worker)
{
    return (struct arena){.base = call->workers + (size_t)worker * call->worker_bytes};
}

// The arrays of a call. Of batches: samples that are loaded, of inputs and of gy, and y, of which a
// chunk of output channels is stored. Of groups: taps, which are packed, and their gradient.
enum tiles_kind { TILES_X, TILES_GY, TILES_Y, TILES_GX, TILES_TAPS, TILES_GW };

// Transforms all channels and positions of x, gy or taps, or transforms back into y or gw, or adds
// windows to gx.
void tiles_move(const struct tiles_call *call, enum tiles_kind kind);

// Computes y from x and the filter, for a chunk of output channels; or windows of gx from gy and
// the filter; or gw from x and gy, added to its contents unless the batch is the first.
void tiles_multiply(const struct tiles_call *call);

// Transposed backward weight: gw from the spectra of x and gy, without their sums in memory.
void tiles_gradient(const struct tiles_call *call);

// Transforms of pairs of lines of tiles along all axes. Forward: row after row along the last axis,
// then all columns at once; inverse: all columns, then the rows that are needed.
size_t tiles_transform_bytes(const size_t n[3]); // of the elements of a pair
void tiles_transform_row(const struct tile_tables *tables, tile_dft_fn *kernel, char *row);
void tiles_transform_columns(const struct tile_tables *tables, tile_dft_fn *kernel, char *z,
                             bool inverse);

// The factor of an inverse transform.
static inline double tiles_scale(const struct tiles *p)
{
    return 0.25 / (double)(p->n[0] * p->n[1] * p->n[2]);
}

// Lines whose samples are staged together, at least as many as passes over them read whole lines.
static inline size_t tiles_staged(const struct tiles *p)
{
    return p->product == TILES_TRANSPOSED ? size_min(p->staged, TILES.min_staged) : p->staged;
}

// Scalars rounded up to an odd number of lines, so that multiples do not fall into one set of the
// cache.
static inline size_t tiles_odd_lines(const struct tiles *p, size_t scalars)
{
    return (ceil_div(scalars, p->lanes) | 1) * p->lanes;
}

// From the staged rows of one lane to those of the next.
static inline size_t tiles_lane_pitch(const struct tiles *p)
{
    return tiles_odd_lines(p, p->n[0] * p->n[1] * p->n[2]);
}

// The address of row (d, h) of the elements of a pair of lines.
static inline char *tiles_row(const struct tiles *p, char *z, size_t d, size_t h)
{
    return z + (d * p->tables.step[0] + h * p->tables.step[1]) * 2 * TILE_LINE_BYTES;
}

// A number of output channels rounded up to whole panels.
static inline size_t tiles_whole_panels(const struct tiles *p, size_t n)
{
    return size_round_up(n, p->panel);
}

// Transposed sums: a position, output channels from k of the chunk on. The positions of x are
// grouped in the same way.
static inline struct tile_spectrum tiles_sums(const struct tiles *p, char *sums, size_t row,
                                              size_t k)
{
    const size_t panel = p->panel, rows = p->positions, group = row / TILE_ROWS * TILE_ROWS;
    const size_t count = size_min(rows - group, TILE_ROWS);
    const size_t at = k / panel * rows * 2 * panel + (group + row) * panel + k % panel;
    return (struct tile_spectrum){sums + at * p->grid.scalar_bytes, p->y_bin, count * panel};
}

// Scalars of a bin's factors for a chunk of `out` output channels before those of input channel
// `in` and the output channels of the chunk from k on: CONV_CHANNELS or, transposed, a line.
static inline size_t tiles_factor_index(const struct tiles *p, size_t in, size_t k, size_t out)
{
    if (p->product == TILES_TRANSPOSED)
        return (k / p->panel * p->in + in) * 2 * p->panel + k % p->panel;
    const size_t first = in / p->chunk * p->chunk, n = size_min(p->chunk, p->in - first);
    const size_t rows = size_min(CONV_CHANNELS, out - k);
    return (p->product == TILES_GAUSS ? 1 : 2) * (first * out + k * n + (in - first) * rows);
}

#endif
