// SPDX-License-Identifier: MIT
// Products of spectra: one matrix product for every bin, by kernels->conv. A complex product is a
// real one over twice the terms: with rows [-im | re | im] of x side by side, the real factor meets
// [re | im] and the imaginary one [-im | re]. Gauss's has three real products over rows [re + im |
// re | im]. Transposed, for few positions, output channels lie along the vectors, so that no lane
// is idle (decision 15): a row of sums is a position. Real and imaginary parts of these sums are
// rows of one call of kernels->conv, so that each factor is read once for both: the real part of a
// factor meets [re | im] of x, its imaginary part [-im | re]. Factors come in panels, in the order
// in which they are read. Transposed products of backward weight are in gradient.c.
// Sources: Knuth, The Art of Computer Programming 2, 4.6.4, on Gauss's product; Vasilache et al.,
// Fast convolutional nets with fbfft (2015), on products by frequency.
#include <string.h>

#include "geometry/samples.h"
#include "tiles.h"

// n channels of x side by side for the product.
static void pack_channels(const struct tiles_call *call, char *packed, const char *x, size_t n)
{
    const struct tiles *p = call->p;
    const size_t row = p->batch * p->grid.scalar_bytes;
    for (size_t c = 0; c < n; c++, packed += 3 * row, x += 2 * row) {
        memcpy(packed + row, x, 2 * row);
        if (p->product == TILES_COMPLEX) {
            call->kernels->scale(packed, x + row, -1, p->batch);
        } else {
            memcpy(packed, x, row);
            call->kernels->add(packed, x + row, p->batch);
        }
    }
}

// Sums, and a line of the walk with each term as long as there are lines left.
static void multiply_ahead(const struct kernels *kernels, const struct conv_operands *operands,
                           struct conv_walk *walk)
{
    walk->count = size_min(operands->terms, walk->left);
    kernels->conv(operands, walk);
}

// Gauss's product, with `operands` of its real parts: the taps' three factors are `plane` bytes
// apart, and y has rows of real and imaginary parts in turn. sums: a row for each channel.
static void multiply_gauss(const struct tiles_call *call, const struct conv_operands *operands,
                           void *sums, struct conv_walk *walk)
{
    const struct tiles *p = call->p;
    const struct kernels *kernels = call->kernels;
    const size_t batch = p->batch, row = batch * p->grid.scalar_bytes;
    const size_t plane = p->in * call->oc_n * p->grid.scalar_bytes;
    char *y = operands->y;
    const char *packed = operands->x, *w = operands->w;
    struct conv_operands of = *operands;
    of.y = sums;
    of.y_stride = batch;
    of.fresh = true;
    multiply_ahead(kernels, &of, walk);
    of = *operands;
    of.x = packed + 2 * row;
    of.w = w + plane;
    multiply_ahead(kernels, &of, walk);
    of.y = y + row;
    of.x = packed + row;
    of.w = w + 2 * plane;
    multiply_ahead(kernels, &of, walk);
    for (size_t k = 0; k < of.channels; k++) {
        kernels->add(y + 2 * k * row, (char *)sums + k * row, batch);
        kernels->add(y + (2 * k + 1) * row, (char *)sums + k * row, batch);
    }
}

// The lines that are packed after the channels before `end` of a bin's x: those of the next chunk,
// or of the next bin, mostly the next task.
static struct conv_walk walk_ahead(const struct tiles *p, const char *x, size_t end)
{
    const size_t channel = 2 * p->batch * p->grid.scalar_bytes;
    const bool last = end == p->in;
    const char *next = x + (last ? p->x_bin * p->grid.scalar_bytes : end * channel);
    const size_t channels = size_min(p->chunk, p->in - (last ? 0 : end));
    return (struct conv_walk){.at = (uintptr_t)next, .left = channels * channel / TILE_LINE_BYTES};
}

static void multiply_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes, row = p->batch * bytes;
    const bool gauss = p->product == TILES_GAUSS;
    const char *x = call->spectra.x + bin * p->x_bin * bytes;
    const char *w = (const char *)call->filter->state +
                    tiles_chunk_scalars(p, call->group, bin, call->oc_first) * bytes;
    char *y = call->spectra.y + bin * p->y_bin * bytes;
    struct arena arena = tiles_worker_arena(call, worker);
    const struct tiles_worker own = tiles_layout_product_worker(p, &arena);
    for (size_t c = 0; c < p->in; c += p->chunk) {
        const size_t n = size_min(p->chunk, p->in - c);
        pack_channels(call, own.packed, x + c * 2 * row, n);
        struct conv_walk walk = walk_ahead(p, x, c + n);
        for (size_t i = 0; i < call->oc_n; i += CONV_CHANNELS) {
            const size_t rows = size_min(CONV_CHANNELS, call->oc_n - i);
            // Gauss's product has a term for a channel, others have two, of twice the positions.
            const size_t parts = gauss ? 1 : 2;
            const struct conv_operands of = {.y = y + i * 2 * row,
                                             .x = own.packed,
                                             .w = w +
                                                  tiles_factor_index(p, c, i, call->oc_n) * bytes,
                                             .offset = p->offset,
                                             .y_stride = 2 * p->batch,
                                             .w_term = rows,
                                             .w_channel = 1,
                                             .terms = parts * n,
                                             .channels = rows,
                                             .n = parts * p->batch,
                                             .fresh = c == 0};
            if (gauss) multiply_gauss(call, &of, own.sums, &walk);
            else multiply_ahead(call->kernels, &of, &walk);
        }
    }
}

// n positions of gy of one bin, position by position: rows [im | re | -im] of output channels.
static void pack_positions(const struct tiles_call *call, char *packed, const char *gy, size_t n,
                           const char *zeros)
{
    const struct tiles *p = call->p;
    const struct kernels *kernels = call->kernels;
    const size_t bytes = p->grid.scalar_bytes, lanes = p->lanes, row = p->batch * bytes;
    const size_t line = size_round_up(p->out, lanes) * bytes; // one of the three
    const size_t step = 3 * line / TILE_LINE_BYTES;
    for (size_t k = 0; k < p->out; k += lanes) {
        const void *im[TILE_MAX_LANES], *re[TILE_MAX_LANES];
        for (size_t l = 0; l < lanes; l++) {
            re[l] = k + l < p->out ? gy + (k + l) * 2 * row : zeros;
            im[l] = k + l < p->out ? gy + ((k + l) * 2 + 1) * row : zeros;
        }
        kernels->tile.gather(packed + k * bytes, step, im, n);
        kernels->tile.gather(packed + line + k * bytes, step, re, n);
    }
    for (size_t i = 0; i < n; i++)
        kernels->scale(packed + (3 * i + 2) * line, packed + 3 * i * line, -1, line / bytes);
}

// The product of a bin's conjugated gy and x over all positions of the batch.
static void multiply_weight_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes, row = p->batch * bytes;
    const size_t out = size_round_up(p->out, p->lanes);
    const char *x = call->spectra.x + bin * p->x_bin * bytes;
    const char *gy = call->spectra.gy + bin * p->gy_bin * bytes;
    char *y = call->spectra.y + bin * p->y_bin * bytes;
    struct arena arena = tiles_worker_arena(call, worker);
    const struct tiles_worker own = tiles_layout_product_worker(p, &arena);
    memset(own.zeros, 0, p->chunk * bytes);
    for (size_t i = 0; i < p->batch; i += p->chunk) {
        const size_t n = size_min(p->chunk, p->batch - i);
        pack_positions(call, own.packed, gy + i * bytes, n, own.zeros);
        for (size_t c = 0; c < p->in; c += CONV_CHANNELS) {
            const size_t rows = size_min(CONV_CHANNELS, p->in - c);
            for (size_t r = 0; r < 2 * rows; r++)
                samples_copy(own.weights + (r % 2 * rows + r / 2) * bytes, 2 * rows,
                             x + (2 * c + r) * row + i * bytes, 1, n, bytes);
            const struct conv_operands of = {.y = y + c * 2 * out * bytes,
                                             .x = own.packed,
                                             .w = own.weights,
                                             .offset = p->offset,
                                             .y_stride = 2 * out,
                                             .w_term = rows,
                                             .w_channel = 1,
                                             .terms = 2 * n,
                                             .channels = rows,
                                             .n = 2 * out,
                                             .fresh = call->first == 0 && i == 0};
            call->kernels->conv(&of, NULL);
        }
    }
}

// Input channels of one call of kernels->conv in a transposed product. The registers of AVX2 hold a
// quarter of the sums of a panel, so that factors are read again and should be in the nearest
// cache.
static size_t panel_channels(const struct tiles_call *call)
{
    const struct tiles *p = call->p;
    if (call->plan->isa != CPU_AVX2) return p->chunk;
    return TILES.panel_bytes / (2 * p->panel * p->grid.scalar_bytes);
}

// A transposed product of one bin.
static void multiply_transposed_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes, positions = p->positions;
    const size_t channels = panel_channels(call);
    char *factors = (char *)call->filter->state +
                    tiles_chunk_scalars(p, call->group, bin, call->oc_first) * bytes;
    char *sums = call->spectra.y + bin * p->y_bin * bytes;
    struct arena arena = tiles_worker_arena(call, worker);
    char *packed = tiles_layout_product_worker(p, &arena).packed;
    for (size_t i = 0; i < positions; i += TILE_ROWS)
        for (size_t c = 0; c < p->in; c += p->chunk) {
            const size_t rows = size_min(TILE_ROWS, positions - i);
            const size_t n = size_min(p->chunk, p->in - c);
            const char *from = call->spectra.x + (bin * p->x_bin + i * p->in + c * rows) * bytes;
            call->kernels->tile.scalars(packed, from, p->x_scalars, rows, n);
            for (size_t k = 0; k < call->oc_n; k += p->panel)
                for (size_t t = 0; t < n; t += channels) {
                    const struct conv_operands of = {.y = tiles_sums(p, sums, i, k).re,
                                                     .x = tiles_factors(p, factors, c + t, k).re,
                                                     .w = packed + t * 4 * rows * bytes,
                                                     .offset = p->offset,
                                                     .y_stride = p->panel,
                                                     .w_term = 2 * rows,
                                                     .w_channel = 1,
                                                     .terms = 2 * size_min(channels, n - t),
                                                     .channels = 2 * rows,
                                                     .n = p->panel,
                                                     .ahead = i ? 0 : CONV_AHEAD_BYTES,
                                                     .fresh = c + t == 0};
                    call->kernels->conv(&of, NULL);
                }
        }
}

void tiles_multiply(const struct tiles_call *call)
{
    task_fn *task = call->p->weight ? multiply_weight_bin : multiply_bin;
    if (call->p->product == TILES_TRANSPOSED) task = multiply_transposed_bin;
    thread_loop(call->plan->threads, call->p->bins, task, (void *)call);
}
