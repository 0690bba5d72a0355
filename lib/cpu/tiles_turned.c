// SPDX-License-Identifier: MIT
// Products of spectra turned over, for few positions: output channels lie along the vectors, so that none of their
// lanes is idle (decision 15). A row of sums is a position, of backward weight an input channel. Real and imaginary
// parts of the sums are rows of one call of kernels->conv, so that each factor is read once for both: the real part of
// a factor meets [re | im] of the other operand, its imaginary part [-im | re], or [im | -re] where the factor is to be
// conjugated. Operands small enough to be read again and again are the scalars: x. Factors come in panels, in the order
// in which they are read.
#include <string.h>

#include "../sizes.h"
#include "../thread.h"
#include "tiles.h"

// Where the scalars of rows and terms are: real parts first, imaginary ones `im` behind them.
struct scalars {
    const char *re;
    size_t im;        // scalars
    size_t row, term; // from one to the next
    size_t rows, terms;
    bool conjugate; // the factors
};

// Their four parts as the product reads them: [term][re, im of the factor][re, im of the sum][row].
static void pack_f32(float *packed, const struct scalars *from)
{
    const float *re = (const float *)from->re, *im = re + from->im, sign = from->conjugate ? -1 : 1;
    for (size_t t = 0; t < from->terms; t++, packed += 4 * from->rows)
        for (size_t r = 0; r < from->rows; r++) {
            const float a = re[r * from->row + t * from->term], b = im[r * from->row + t * from->term];
            packed[r] = a;
            packed[from->rows + r] = b;
            packed[2 * from->rows + r] = -sign * b;
            packed[3 * from->rows + r] = sign * a;
        }
}

static void pack_f64(double *packed, const struct scalars *from)
{
    const double *re = (const double *)from->re, *im = re + from->im, sign = from->conjugate ? -1 : 1;
    for (size_t t = 0; t < from->terms; t++, packed += 4 * from->rows)
        for (size_t r = 0; r < from->rows; r++) {
            const double a = re[r * from->row + t * from->term], b = im[r * from->row + t * from->term];
            packed[r] = a;
            packed[from->rows + r] = b;
            packed[2 * from->rows + r] = -sign * b;
            packed[3 * from->rows + r] = sign * a;
        }
}

static void pack(void *packed, const struct scalars *from, bool f64)
{
    if (f64) pack_f64(packed, from);
    else pack_f32(packed, from);
}

// Adds the share of some terms, `first` the first of `terms`, to rows row .. row+own-1 of the sums of a part.
struct turned {
    const struct tiles_call *call;
    char *sums, *factors; // of the bin
    size_t rows, terms;   // all of them
};

static void multiply_rows(const struct turned *turned, size_t row, size_t own, size_t first, size_t n,
                          const void *packed)
{
    const struct tiles_call *call = turned->call;
    const struct tiles *tiles = call->tiles;
    for (size_t k = 0; k < call->part_n; k += tiles->panel) {
        const struct tile_spectrum to = tiles_sums(tiles, turned->sums, turned->rows, row, k);
        const struct tile_spectrum factors =
            tiles_factors(tiles, turned->factors, 0, turned->terms, first, call->part_first + k);
        call->plan->kernels->conv(to.re, tiles->panel, factors.re, tiles->offset, 2 * n, packed, 2 * own, tiles->panel);
    }
}

static void multiply_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *tiles = call->tiles;
    const size_t bytes = tiles->grid.scalar_bytes, positions = tiles->positions;
    const size_t factors = tiles_filter_scalars(tiles, 1) / tiles->grid.groups;
    const char *x = call->x + bin * tiles->x_bin * bytes;
    const struct turned turned = {call, call->y + bin * tiles->y_bin * bytes,
                                  (char *)call->filter->state +
                                      (call->group * tiles->transform.bins + bin) * factors * bytes,
                                  positions, tiles->in};
    char *packed = tiles_scratch(call, worker);
    memset(turned.sums, 0, 2 * positions * tiles_wide(tiles, call->part_n) * bytes);
    for (size_t p = 0; p < positions; p += TILES_ROWS)
        for (size_t c = 0; c < tiles->in; c += tiles->chunk) {
            const size_t rows = lesser(TILES_ROWS, positions - p), n = lesser(tiles->chunk, tiles->in - c);
            const struct scalars from = {.re = x + (p * tiles->in + c * rows) * bytes,
                                         .im = tiles->cells,
                                         .row = 1,
                                         .term = rows,
                                         .rows = rows,
                                         .terms = n};
            pack(packed, &from, call->plan->shape.f64);
            multiply_rows(&turned, p, rows, c, n, packed);
        }
}

void tiles_multiply_turned(const struct tiles_call *call)
{
    thread_loop(call->plan->threads, call->tiles->transform.bins, multiply_bin, (void *)call);
}

// Rows are input channels: row c's own scalars, one group of rows after the other.
static char *packed_rows(const struct tiles_call *call, size_t bin, size_t c)
{
    const struct tiles *tiles = call->tiles;
    return call->packed + (bin * tiles->packed_bin + 4 * c * tiles->positions) * tiles->grid.scalar_bytes;
}

static void pack_weight_bin(void *context, size_t bin, int worker)
{
    (void)worker;
    const struct tiles_call *call = context;
    const struct tiles *tiles = call->tiles;
    const size_t bytes = tiles->grid.scalar_bytes, positions = tiles->positions;
    const char *x = call->x + bin * tiles->x_bin * bytes;
    for (size_t c = 0; c < call->in_n; c += TILES_ROWS) {
        const size_t rows = lesser(TILES_ROWS, call->in_n - c);
        // Terms are positions, of which four at most lie together.
        for (size_t p = 0; p < positions; p += TILES_ROWS) {
            const size_t n = lesser(TILES_ROWS, positions - p);
            const struct scalars from = {.re = x + (p * tiles->in + (call->in_first + c) * n) * bytes,
                                         .im = tiles->cells,
                                         .row = n,
                                         .term = 1,
                                         .rows = rows,
                                         .terms = n,
                                         .conjugate = true};
            pack(packed_rows(call, bin, c) + p * 4 * rows * bytes, &from, call->plan->shape.f64);
        }
    }
}

void tiles_pack_turned(const struct tiles_call *call)
{
    thread_loop(call->plan->threads, call->tiles->transform.bins, pack_weight_bin, (void *)call);
}

static void multiply_weight_bin(void *context, size_t bin, int worker)
{
    (void)worker;
    const struct tiles_call *call = context;
    const struct tiles *tiles = call->tiles;
    const size_t bytes = tiles->grid.scalar_bytes;
    const struct turned turned = {call, call->y + bin * tiles->y_bin * bytes, call->d + bin * tiles->d_bin * bytes,
                                  call->in_n, tiles->positions};
    memset(turned.sums, 0, 2 * call->in_n * tiles_wide(tiles, call->part_n) * bytes);
    for (size_t c = 0; c < call->in_n; c += TILES_ROWS)
        multiply_rows(&turned, c, lesser(TILES_ROWS, call->in_n - c), 0, tiles->positions, packed_rows(call, bin, c));
}

void tiles_multiply_weight_turned(const struct tiles_call *call)
{
    thread_loop(call->plan->threads, call->tiles->transform.bins, multiply_weight_bin, (void *)call);
}
