// SPDX-License-Identifier: MIT
// Products of spectra: one matrix product for every bin, by kernels->conv. A complex product is a
// real one over twice the terms: with rows [-im | re | im] of x side by side, the real factor meets
// [re | im] and the imaginary one [-im | re]. Gauss's has three real products over rows [re + im |
// re | im]. Transposed, for few positions, output channels lie along the vectors, so that no lane
// is idle (decision 15): a row of sums is a position. Real and imaginary parts of these sums are
// rows of one call of kernels->conv, so that each factor is read once for both: the real part of a
// factor meets [re | im] of x, its imaginary part [-im | re]. Factors come in panels, in the order
// in which they are read. Transposed products of backward weight are in gradient.c. Windows of gx
// sum over output channels: rows are positions of gy, and the factors of forward are transposed.
// Sources: Knuth, The Art of Computer Programming 2, 4.6.4, on Gauss's product; Vasilache et al.,
// Fast convolutional nets with fbfft (2015), on products by frequency.
#include <assert.h>
#include <string.h>

#include "lines.h"
#include "product/product.h"

// n rows of complex numbers for the product, `scalars` of them in each: channels of x, or positions
// of gy as rows [im | re | -im], which are conjugated.
static void pack_rows(const struct tiles_call *call, char *packed, const char *from, size_t n,
                      size_t scalars)
{
    const struct tiles *p = call->p;
    const size_t row = scalars * p->grid.scalar_bytes;
    for (size_t i = 0; i < n; i++, packed += 3 * row, from += 2 * row) {
        memcpy(packed + row, from, 2 * row);
        if (p->weight) {
            memcpy(packed, from + row, row);
            call->kernels->scale(packed + 2 * row, from + row, -1, scalars);
        } else if (p->product == TILES_COMPLEX) {
            call->kernels->scale(packed, from + row, -1, scalars);
        } else {
            memcpy(packed, from, row);
            call->kernels->add(packed, from + row, scalars);
        }
    }
}

// The channels that are packed after those before `end` of a bin's x: the next chunk, or of the
// next bin, mostly the next task.
static struct product_prefetch prefetch_channels(const struct tiles *p, const char *x, size_t end)
{
    const size_t channel = 2 * p->batch * p->grid.scalar_bytes;
    const bool last = end == p->in;
    const char *next = x + (last ? p->x_bin * p->grid.scalar_bytes : end * channel);
    struct product_prefetch ret = {.n = 0};
    product_prefetch_rows(&ret, next, size_min(p->chunk, p->in - (last ? 0 : end)) * channel, 1, 0);
    return ret;
}

// Gauss's product, three products with these rows: the factors of the taps are `plane` bytes apart,
// and C has rows of real and imaginary parts in turn. sums: a row for each channel.
static void multiply_gauss(const struct tiles_call *call, struct product *product, char *sums)
{
    const struct tiles *p = call->p;
    const size_t batch = p->batch, row = batch * p->grid.scalar_bytes;
    const size_t plane = p->in * call->oc_n * p->grid.scalar_bytes;
    const bool add = product->add;
    const char *x = product->b.at;
    char *y = product->c;
    product->c = sums;
    product->c_step = batch;
    product->add = false;
    product_run(product);
    product->c_step = 2 * batch;
    product->add = add;
    product->prefetch = NULL;
    for (size_t part = 0; part < 2; part++) {
        product->c = y + part * row;
        product->a.at += plane;
        product->b.at = x + (2 - part) * row;
        product_run(product);
        for (size_t k = 0; k < product->rows; k++)
            call->kernels->add(product->c + 2 * k * row, sums + k * row, batch);
    }
}

static void multiply_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes, row = p->batch * bytes;
    const bool gauss = p->product == TILES_GAUSS;
    const size_t parts = gauss ? 1 : 2; // terms of a channel, of that many times the positions
    const char *x = call->spectra.x + bin * p->x_bin * bytes;
    const char *w = (const char *)call->filter->state +
                    tiles_chunk_scalars(p, call->group, bin, call->oc_first) * bytes;
    struct arena arena = tiles_worker_arena(call, worker);
    const struct tiles_worker scratch = tiles_layout_worker(p, &arena);
    for (size_t c = 0; c < p->in; c += p->chunk) {
        const size_t n = size_min(p->chunk, p->in - c);
        const struct product_prefetch prefetch = prefetch_channels(p, x, c + n);
        struct product product = {
            .plan = call->plan,
            .rows = call->oc_n,
            .columns = parts * p->batch,
            .terms = parts * n,
            .a = {.at = w + tiles_factor_index(p, c, 0, call->oc_n) * bytes,
                  .block = CONV_CHANNELS,
                  .pitch = CONV_CHANNELS * parts * n},
            .b = {.at = scratch.packed, .term = 3 * p->batch, .offset = gauss ? NULL : p->offset},
            .c = call->spectra.y + bin * p->y_bin * bytes,
            .c_step = 2 * p->batch,
            .add = c > 0,
            .segment = TILES.max_terms,
            .prefetch = &prefetch};
        pack_rows(call, scratch.packed, x + c * 2 * row, n, p->batch);
        if (gauss) multiply_gauss(call, &product, scratch.sums);
        else product_run(&product);
    }
}

// A complex product from rows [-im | re | im], or conjugated [im | re | -im]: of the real parts of
// A and then the imaginary ones, which are `im` scalars after these.
static void multiply_parts(const struct tiles_call *call, size_t bin, struct product *product,
                           size_t im)
{
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes, row = product->b.term / 3;
    const char *packed = product->b.at;
    product->plan = call->plan;
    product->columns = product->c_step = 2 * row;
    product->c = call->spectra.y + bin * p->y_bin * bytes;
    product->segment = TILES.max_terms;
    product->b.at = packed + row * bytes;
    product_run(product);
    product->a.at += im * bytes;
    product->b.at = packed;
    product->add = true;
    product_run(product);
}

// The product of a bin's conjugated gy and x over all positions of the batch: the terms are first
// the real parts of x, then the imaginary ones.
static void multiply_weight_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes, out = size_round_up(p->out, p->lanes);
    const char *x = call->spectra.x + bin * p->x_bin * bytes;
    const char *gy = call->spectra.gy + bin * p->gy_bin * bytes;
    struct arena arena = tiles_worker_arena(call, worker);
    const struct tiles_worker scratch = tiles_layout_worker(p, &arena);
    const size_t positions = size_min(p->batch, p->positions - call->first);
    for (size_t i = 0; i < positions; i += p->chunk) {
        const size_t n = size_min(p->chunk, positions - i);
        pack_rows(call, scratch.packed, gy + i * 2 * out * bytes, n, out);
        struct product product = {.rows = p->in,
                                  .terms = n,
                                  .a = {.at = x + i * bytes, .step = 2 * p->batch, .term = 1},
                                  .b = {.at = scratch.packed, .term = 3 * out},
                                  .add = call->first + i > 0};
        multiply_parts(call, bin, &product, p->batch);
    }
}

// A transposed product of one bin. A block of rows has the real and the imaginary parts of four
// positions.
static void multiply_transposed_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes, positions = p->positions;
    const char *factors = (const char *)call->filter->state +
                          tiles_chunk_scalars(p, call->group, bin, call->oc_first) * bytes;
    char *sums = call->spectra.y + bin * p->y_bin * bytes;
    const char *x = call->spectra.x + bin * p->x_bin * bytes;
    struct arena arena = tiles_worker_arena(call, worker);
    char *packed = tiles_layout_worker(p, &arena).packed;
    // The registers of AVX2 hold a quarter of the sums of a panel, so that factors are read again
    // and should be in the L1 cache.
    const size_t near = TILES.panel_bytes / (p->panel * bytes);
    for (size_t c = 0; c < p->in; c += p->chunk) {
        const size_t n = size_min(p->chunk, p->in - c);
        for (size_t i = 0; i < positions; i += TILE_ROWS) {
            const size_t rows = size_min(TILE_ROWS, positions - i);
            call->kernels->tile_scalars(packed + i * 4 * n * bytes,
                                        x + (i * p->in + c * rows) * bytes, p->x_scalars, rows, n);
        }
        product_run(&(struct product){
            .plan = call->plan,
            .rows = 2 * positions,
            .columns = tiles_whole_panels(p, call->oc_n),
            .terms = 2 * n,
            .a = {.at = packed, .block = CONV_CHANNELS, .pitch = CONV_CHANNELS * 2 * n},
            .b = {.at = factors + tiles_factor_index(p, c, 0, call->oc_n) * bytes,
                  .block = p->panel,
                  .pitch = 2 * p->in * p->panel},
            .c = tiles_sums(p, sums, 0, 0).re,
            .c_step = p->panel,
            .c_pitch = 2 * positions * p->panel,
            .add = c > 0,
            .segment = call->plan->isa == CPU_AVX2 ? near : TILES.max_terms,
            .next_b = factors + tiles_factor_index(p, c + n, 0, call->oc_n) * bytes});
    }
}

// Spectra of the taps of up to a block of output channels from k of a chunk on as rows [-im | re |
// im] of input channels, from the conjugated factors of forward; not by Gauss.
static size_t transpose_factors(const struct tiles_call *call, char *packed, const char *chunk,
                                size_t k)
{
    const struct tiles *p = call->p;
    const bool transposed = p->product == TILES_TRANSPOSED;
    const size_t bytes = p->grid.scalar_bytes, row = size_round_up(p->in, p->lanes);
    const size_t rows = size_min(transposed ? p->lanes : CONV_CHANNELS, call->oc_n - k);
    const size_t im = transposed ? p->panel : rows;
    assert(p->product != TILES_GAUSS);
    // Lanes without a channel: the line of the next ones is the imaginary part of the transform.
    if (row > p->in) memset(packed, 0, rows * 3 * row * bytes);
    for (size_t c = 0; c < p->in; c += p->chunk)
        for (size_t part = 0; part < 2; part++)
            call->kernels->transpose(packed + (c + (part ? 0 : row)) * bytes, 3 * row,
                                     chunk + (tiles_factor_index(p, c, k, call->oc_n) + part * im) *
                                                 bytes,
                                     2 * im, size_min(p->chunk, p->in - c), rows);
    for (size_t i = 0; i < rows; i++, packed += 3 * row * bytes)
        call->kernels->scale(packed + 2 * row * bytes, packed, -1, row);
    return rows;
}

// Windows of gx of one bin: sums over output channels.
static void multiply_window_bin(void *context, size_t bin, int worker)
{
    struct tiles_call call = *(const struct tiles_call *)context;
    const struct tiles *p = call.p;
    const struct tiles_array gy = tiles_array_of(&call, TILES_GY);
    const size_t bytes = p->grid.scalar_bytes, row = 3 * size_round_up(p->in, p->lanes);
    const size_t max = p->product == TILES_TRANSPOSED ? p->lanes : TILES.window_terms;
    struct arena arena = tiles_worker_arena(&call, worker);
    char *packed = tiles_layout_worker(p, &arena).packed;
    for (size_t first = 0, terms; first < p->out; first += terms) {
        call.oc_first = first / p->oc_chunk * p->oc_chunk;
        call.oc_n = size_min(p->oc_chunk, p->out - call.oc_first);
        const size_t k = first - call.oc_first, left = size_min(max, call.oc_n - k);
        const char *factors = (const char *)call.filter->state +
                              tiles_chunk_scalars(p, call.group, bin, call.oc_first) * bytes;
        for (terms = 0; terms < left;)
            terms += transpose_factors(&call, packed + terms * row * bytes, factors, k + terms);
        struct product product = {
            .rows = gy.positions,
            .terms = terms,
            .a = {.at = gy.spectra + (bin * gy.bin + first * gy.channel) * bytes,
                  .step = gy.position,
                  .term = 1},
            .b = {.at = packed, .term = row},
            .add = first > 0};
        multiply_parts(&call, bin, &product, gy.im);
    }
}

void tiles_multiply(const struct tiles_call *call)
{
    task_fn *task = call->p->weight ? multiply_weight_bin : multiply_bin;
    if (call->p->product == TILES_TRANSPOSED) task = multiply_transposed_bin;
    if (call->p->windows) task = multiply_window_bin;
    thread_loop(call->threads, call->p->bins, task, (void *)call);
}
