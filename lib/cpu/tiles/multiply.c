// SPDX-License-Identifier: MIT
// Products of spectra: one matrix product for every bin, by kernels->conv. A complex product is a
// real one over twice the terms: with rows [-im | re | im] of x side by side, the real factor meets
// [re | im] and the imaginary one [-im | re]. Gauss's has three real products over rows [re + im |
// re | im]. Source: Knuth, The Art of Computer Programming 2, 4.6.4, on Gauss's product; Vasilache
// et al., Fast convolutional nets with fbfft (2015), on products by frequency.
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "geometry/samples.h"
#include "tiles.h"

// n channels of x side by side for the product.
static void pack_rows(const struct tiles_call *call, char *packed, const char *x, size_t n)
{
    const struct tiles *tiles = call->tiles;
    const struct kernels *kernels = call->plan->kernels;
    const size_t bytes = tiles->grid.scalar_bytes, row = tiles->block * bytes;
    for (size_t c = 0; c < n; c++, packed += 3 * row, x += 2 * row) {
        memcpy(packed + row, x, 2 * row);
        if (tiles->product == TILES_COMPLEX) {
            kernels->scale(packed, x + row, -1, tiles->block);
        } else {
            memcpy(packed, x, row);
            kernels->add(packed, x + row, tiles->block);
        }
    }
}

// Output channels k .. k+rows-1 of one bin from n packed channels; w are the taps' spectra of these
// channels.
static void multiply_complex(const struct tiles_call *call, char *y, const char *packed,
                             const char *w, size_t n, size_t rows)
{
    const struct tiles *tiles = call->tiles;
    call->plan->kernels->conv(y, 2 * tiles->block, packed, tiles->offset, 2 * n, w, rows,
                              2 * tiles->block, 0);
}

static void multiply_gauss(const struct tiles_call *call, char *y, const char *packed,
                           const char *w, size_t plane, size_t n, size_t rows, char *sums)
{
    const struct tiles *tiles = call->tiles;
    const struct kernels *kernels = call->plan->kernels;
    const size_t block = tiles->block, row = block * tiles->grid.scalar_bytes;
    memset(sums, 0, rows * row);
    kernels->conv(sums, block, packed, tiles->offset, n, w, rows, block, 0);
    kernels->conv(y, 2 * block, packed + 2 * row, tiles->offset, n, w + plane, rows, block, 0);
    kernels->conv(y + row, 2 * block, packed + row, tiles->offset, n, w + 2 * plane, rows, block,
                  0);
    for (size_t k = 0; k < rows; k++) {
        kernels->add(y + 2 * k * row, sums + k * row, block);
        kernels->add(y + (2 * k + 1) * row, sums + k * row, block);
    }
}

static void multiply_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *tiles = call->tiles;
    const size_t bytes = tiles->grid.scalar_bytes, row = tiles->block * bytes,
                 cells = tiles->in * tiles->out;
    const char *x = call->x + bin * tiles->x_bin * bytes;
    const bool gauss = tiles->product == TILES_GAUSS;
    const char *w = (const char *)call->filter->state +
                    (call->group * tiles->transform.bins + bin) * cells * (gauss ? 3 : 2) * bytes;
    char *y = call->y + bin * tiles->y_bin * bytes;
    char *packed = tiles_scratch(call, worker), *sums = packed + tiles->chunk * 3 * row;
    memset(y, 0, call->part_n * 2 * row);
    for (size_t c = 0; c < tiles->in; c += tiles->chunk) {
        const size_t n = size_min(tiles->chunk, tiles->in - c);
        pack_rows(call, packed, x + c * 2 * row, n);
        for (size_t i = 0; i < call->part_n; i += CONV_CHANNELS) {
            const size_t k = call->part_first + i;
            const size_t rows = size_min(CONV_CHANNELS, tiles->out - k),
                         first = k * tiles->in + c * rows;
            if (gauss)
                multiply_gauss(call, y + i * 2 * row, packed, w + first * bytes, cells * bytes, n,
                               rows, sums);
            else multiply_complex(call, y + i * 2 * row, packed, w + 2 * first * bytes, n, rows);
        }
    }
}

void tiles_multiply(const struct tiles_call *call)
{
    thread_loop(call->plan->threads, call->tiles->transform.bins, multiply_bin, (void *)call);
}

// n positions of gy of one bin, position by position: rows [im | re | -im] of output channels.
static void pack_positions(const struct tiles_call *call, char *packed, const char *d, size_t n,
                           const char *zeros)
{
    const struct tiles *tiles = call->tiles;
    const struct kernels *kernels = call->plan->kernels;
    const size_t bytes = tiles->grid.scalar_bytes, lanes = tiles->lanes, row = tiles->block * bytes;
    const size_t line = (tiles->out + lanes - 1) / lanes * lanes * bytes; // one of the three
    for (size_t k = 0; k < tiles->out; k += lanes) {
        const void *im[TILE_MAX_LANES], *re[TILE_MAX_LANES];
        for (size_t l = 0; l < lanes; l++) {
            re[l] = k + l < tiles->out ? d + (k + l) * 2 * row : zeros;
            im[l] = k + l < tiles->out ? d + ((k + l) * 2 + 1) * row : zeros;
        }
        kernels->tile.gather(packed + k * bytes, 3 * line / TILE_LINE_BYTES, im, n);
        kernels->tile.gather(packed + line + k * bytes, 3 * line / TILE_LINE_BYTES, re, n);
    }
    for (size_t p = 0; p < n; p++)
        kernels->scale(packed + (3 * p + 2) * line, packed + 3 * p * line, -1, line / bytes);
}

// The product of a bin's conjugated gy and x over all positions of the block.
static void multiply_weight_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *tiles = call->tiles;
    const size_t bytes = tiles->grid.scalar_bytes, row = tiles->block * bytes, lanes = tiles->lanes;
    const size_t out = (tiles->out + lanes - 1) / lanes * lanes;
    const char *x = call->x + bin * tiles->x_bin * bytes, *d = call->d + bin * tiles->d_bin * bytes;
    char *y = call->y + bin * tiles->y_bin * bytes;
    char *zeros = tiles_scratch(call, worker), *weights = zeros + mem_round(tiles->chunk * bytes);
    char *packed = weights + mem_round(tiles->chunk * 2 * CONV_CHANNELS * bytes);
    memset(zeros, 0, tiles->chunk * bytes);
    if (call->first == 0) memset(y, 0, tiles->in * 2 * out * bytes);
    for (size_t p = 0; p < tiles->block; p += tiles->chunk) {
        const size_t n = size_min(tiles->chunk, tiles->block - p);
        pack_positions(call, packed, d + p * bytes, n, zeros);
        for (size_t c = 0; c < tiles->in; c += CONV_CHANNELS) {
            const size_t rows = size_min(CONV_CHANNELS, tiles->in - c);
            for (size_t i = 0; i < 2 * rows; i++)
                samples_copy(weights + (i % 2 * rows + i / 2) * bytes, 2 * rows,
                             x + (2 * c + i) * row + p * bytes, 1, n, bytes);
            call->plan->kernels->conv(y + c * 2 * out * bytes, 2 * out, packed, tiles->offset,
                                      2 * n, weights, rows, 2 * out, 0);
        }
    }
}

void tiles_multiply_weight(const struct tiles_call *call)
{
    thread_loop(call->plan->threads, call->tiles->transform.bins, multiply_weight_bin,
                (void *)call);
}
