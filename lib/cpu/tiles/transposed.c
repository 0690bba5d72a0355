// SPDX-License-Identifier: MIT
// Products of spectra turned over, for few positions: output channels lie along the vectors, so
// that none of their lanes is idle (decision 15). A row of sums is a position, of backward weight
// an input channel. Real and imaginary parts of the sums are rows of one call of kernels->conv, so
// that each factor is read once for both: the real part of a factor meets [re | im] of the other
// operand, its imaginary part [-im | re], or [im | -re] where the factor is to be conjugated.
// Operands small enough to be read again and again are the scalars: x. Factors come in panels, in
// the order in which they are read.
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "tiles.h"

// Adds the share of some terms, `first` the first of `terms`, to rows row .. row+own-1 of the sums
// of a part.
struct turned {
    const struct tiles_call *call;
    char *sums, *factors; // of the bin
    size_t rows, terms;   // all of them
};

static void multiply_rows(const struct turned *turned, size_t row, size_t own, size_t first,
                          size_t n, const void *packed)
{
    const struct tiles_call *call = turned->call;
    const struct tiles *tiles = call->tiles;
    for (size_t k = 0; k < call->part_n; k += tiles->panel) {
        const struct tile_spectrum to = tiles_sums(tiles, turned->sums, turned->rows, row, k);
        const struct tile_spectrum factors =
            tiles_factors(tiles, turned->factors, 0, turned->terms, first, call->part_first + k);
        call->plan->kernels->conv(to.re, tiles->panel, factors.re, tiles->offset, 2 * n, packed,
                                  2 * own, tiles->panel, row ? 0 : CONV_AHEAD_BYTES);
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
            const size_t rows = size_min(TILES_ROWS, positions - p),
                         n = size_min(tiles->chunk, tiles->in - c);
            const struct tile_scalars from = {.re = x + (p * tiles->in + c * rows) * bytes,
                                              .im = tiles->cells,
                                              .row = 1,
                                              .term = rows};
            call->plan->kernels->tile.scalars(packed, &from, rows, n, false);
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
    return call->packed +
           (bin * tiles->packed_bin + 4 * c * tiles->positions) * tiles->grid.scalar_bytes;
}

static void pack_weight_bin(void *context, size_t bin, int worker)
{
    (void)worker;
    const struct tiles_call *call = context;
    const struct tiles *tiles = call->tiles;
    const size_t bytes = tiles->grid.scalar_bytes, positions = tiles->positions;
    const char *x = call->x + bin * tiles->x_bin * bytes;
    for (size_t c = 0; c < call->in_n; c += TILES_ROWS) {
        const size_t rows = size_min(TILES_ROWS, call->in_n - c);
        // Terms are positions, of which four at most lie together.
        for (size_t p = 0; p < positions; p += TILES_ROWS) {
            const size_t n = size_min(TILES_ROWS, positions - p);
            const struct tile_scalars from = {.re = x + (p * tiles->in + (call->in_first + c) * n) *
                                                            bytes,
                                              .im = tiles->cells,
                                              .row = n,
                                              .term = 1};
            call->plan->kernels->tile.scalars(packed_rows(call, bin, c) + p * 4 * rows * bytes,
                                              &from, rows, n, true);
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
    const struct turned turned = {call, call->y + bin * tiles->y_bin * bytes,
                                  call->d + bin * tiles->d_bin * bytes, call->in_n,
                                  tiles->positions};
    memset(turned.sums, 0, 2 * call->in_n * tiles_wide(tiles, call->part_n) * bytes);
    for (size_t c = 0; c < call->in_n; c += TILES_ROWS)
        multiply_rows(&turned, c, size_min(TILES_ROWS, call->in_n - c), 0, tiles->positions,
                      packed_rows(call, bin, c));
}

void tiles_multiply_weight_turned(const struct tiles_call *call)
{
    thread_loop(call->plan->threads, call->tiles->transform.bins, multiply_weight_bin,
                (void *)call);
}
