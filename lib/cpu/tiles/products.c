// SPDX-License-Identifier: MIT
// Products of spectra: one matrix product for every bin, by kernels->conv. A complex product is a
// real one over twice the terms: with rows [-im | re | im] of x side by side, the real factor meets
// [re | im] and the imaginary one [-im | re]. Gauss's has three real products over rows [re + im |
// re | im]. Transposed, for few positions, output channels lie along the vectors, so that no lane
// is idle (decision 15): a row of sums is a position, of backward weight an input channel. Real and
// imaginary parts of these sums are rows of one call of kernels->conv, so that each factor is read
// once for both: the real part of a factor meets [re | im] of the other operand, its imaginary part
// [-im | re], or [im | -re] where the factor is conjugated. Operands small enough to be read again
// and again are the scalars: x. Factors come in panels, in the order in which they are read.
// Sources: Knuth, The Art of Computer Programming 2, 4.6.4, on Gauss's product; Vasilache et al.,
// Fast convolutional nets with fbfft (2015), on products by frequency.
#include <assert.h>
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

// Adds n packed channels times w, their taps' spectra for `rows` output channels, to y; the taps'
// three factors are `plane` bytes apart.
static void multiply_gauss(const struct tiles_call *call, char *y,
                           const struct tiles_worker *worker, const char *w, size_t n, size_t rows)
{
    const struct tiles *p = call->p;
    const struct kernels *kernels = call->kernels;
    const size_t batch = p->batch, row = batch * p->grid.scalar_bytes;
    const size_t plane = p->in * p->out * p->grid.scalar_bytes;
    const char *packed = worker->packed;
    char *sums = worker->sums;
    memset(sums, 0, rows * row);
    kernels->conv(sums, batch, packed, p->offset, n, w, rows, batch, 0);
    kernels->conv(y, 2 * batch, packed + 2 * row, p->offset, n, w + plane, rows, batch, 0);
    kernels->conv(y + row, 2 * batch, packed + row, p->offset, n, w + 2 * plane, rows, batch, 0);
    for (size_t k = 0; k < rows; k++) {
        kernels->add(y + 2 * k * row, sums + k * row, batch);
        kernels->add(y + (2 * k + 1) * row, sums + k * row, batch);
    }
}

static void multiply_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes, row = p->batch * bytes, paths = p->in * p->out;
    const bool gauss = p->product == TILES_GAUSS;
    const char *x = call->spectra.x + bin * p->x_bin * bytes;
    const char *w = (const char *)call->filter->state +
                    (call->group * p->bins + bin) * paths * (gauss ? 3 : 2) * bytes;
    char *y = call->spectra.y + bin * p->y_bin * bytes;
    struct arena arena = tiles_worker_arena(call, worker);
    const struct tiles_worker own = tiles_layout_product_worker(p, &arena);
    memset(y, 0, call->oc_n * 2 * row);
    for (size_t c = 0; c < p->in; c += p->chunk) {
        const size_t n = size_min(p->chunk, p->in - c);
        pack_channels(call, own.packed, x + c * 2 * row, n);
        for (size_t i = 0; i < call->oc_n; i += CONV_CHANNELS) {
            const size_t k = call->oc_first + i, rows = size_min(CONV_CHANNELS, p->out - k);
            const size_t first = k * p->in + c * rows;
            char *to = y + i * 2 * row;
            if (gauss) multiply_gauss(call, to, &own, w + first * bytes, n, rows);
            else
                call->kernels->conv(to, 2 * p->batch, own.packed, p->offset, 2 * n,
                                    w + 2 * first * bytes, rows, 2 * p->batch, 0);
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
    if (call->first == 0) memset(y, 0, p->in * 2 * out * bytes);
    for (size_t i = 0; i < p->batch; i += p->chunk) {
        const size_t n = size_min(p->chunk, p->batch - i);
        pack_positions(call, own.packed, gy + i * bytes, n, own.zeros);
        for (size_t c = 0; c < p->in; c += CONV_CHANNELS) {
            const size_t rows = size_min(CONV_CHANNELS, p->in - c);
            for (size_t r = 0; r < 2 * rows; r++)
                samples_copy(own.weights + (r % 2 * rows + r / 2) * bytes, 2 * rows,
                             x + (2 * c + r) * row + i * bytes, 1, n, bytes);
            call->kernels->conv(y + c * 2 * out * bytes, 2 * out, own.packed, p->offset, 2 * n,
                                own.weights, rows, 2 * out, 0);
        }
    }
}

// A transposed product of one bin: sums of `rows` rows over `terms` terms.
struct transposed {
    const struct tiles_call *call;
    char *sums, *factors;
    size_t rows, terms;
};

// Adds n terms from `first` on to rows row .. row+own-1 of the sums of a chunk.
static void multiply_rows(const struct transposed *product, size_t row, size_t own, size_t first,
                          size_t n, const void *packed)
{
    const struct tiles_call *call = product->call;
    const struct tiles *p = call->p;
    assert(row + own <= product->rows && first + n <= product->terms);
    for (size_t k = 0; k < call->oc_n; k += p->panel) {
        const struct tile_spectrum to = tiles_sums(p, product->sums, product->rows, row, k);
        const struct tile_spectrum factors =
            tiles_factors(p, product->factors, 0, product->terms, first, call->oc_first + k);
        call->kernels->conv(to.re, p->panel, factors.re, p->offset, 2 * n, packed, 2 * own,
                            p->panel, row ? 0 : CONV_AHEAD_BYTES);
    }
}

// Scalars of x of one bin: channel c of the group of positions that begins at i and has n of them.
static const char *interleaved_inputs(const struct tiles_call *call, size_t bin, size_t i, size_t c,
                                      size_t n)
{
    const struct tiles *p = call->p;
    return call->spectra.x + (bin * p->x_bin + i * p->in + c * n) * p->grid.scalar_bytes;
}

static void multiply_transposed_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes, positions = p->positions;
    const size_t factors = tiles_filter_scalars(p, 1) / p->grid.groups;
    const struct transposed product = {.call = call,
                                       .sums = call->spectra.y + bin * p->y_bin * bytes,
                                       .factors = (char *)call->filter->state +
                                                  (call->group * p->bins + bin) * factors * bytes,
                                       .rows = positions,
                                       .terms = p->in};
    struct arena arena = tiles_worker_arena(call, worker);
    char *packed = tiles_layout_product_worker(p, &arena).packed;
    memset(product.sums, 0, 2 * positions * tiles_whole_panels(p, call->oc_n) * bytes);
    for (size_t i = 0; i < positions; i += TILES_ROWS)
        for (size_t c = 0; c < p->in; c += p->chunk) {
            const size_t rows = size_min(TILES_ROWS, positions - i);
            const size_t n = size_min(p->chunk, p->in - c);
            const struct tile_scalars from = {.re = interleaved_inputs(call, bin, i, c, rows),
                                              .im = p->x_scalars,
                                              .row = 1,
                                              .term = rows};
            call->kernels->tile.scalars(packed, &from, rows, n, false);
            multiply_rows(&product, i, rows, c, n, packed);
        }
}

// Transposed backward weight: scalars of rows from input channel c of the chunk on.
static char *packed_rows(const struct tiles_call *call, size_t bin, size_t c)
{
    const struct tiles *p = call->p;
    const size_t at = bin * p->packed_bin + 4 * c * p->positions;
    return call->spectra.packed + at * p->grid.scalar_bytes;
}

static void pack_inputs_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    (void)worker;
    for (size_t c = 0; c < call->ic_n; c += TILES_ROWS) {
        const size_t rows = size_min(TILES_ROWS, call->ic_n - c);
        // Terms are positions, of which four at most are adjacent.
        for (size_t i = 0; i < p->positions; i += TILES_ROWS) {
            const size_t n = size_min(TILES_ROWS, p->positions - i);
            const struct tile_scalars from = {
                .re = interleaved_inputs(call, bin, i, call->ic_first + c, n),
                .im = p->x_scalars,
                .row = n,
                .term = 1};
            char *to = packed_rows(call, bin, c) + i * 4 * rows * p->grid.scalar_bytes;
            call->kernels->tile.scalars(to, &from, rows, n, true);
        }
    }
}

static void multiply_weight_transposed_bin(void *context, size_t bin, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes;
    const struct transposed product = {.call = call,
                                       .sums = call->spectra.y + bin * p->y_bin * bytes,
                                       .factors = call->spectra.gy + bin * p->gy_bin * bytes,
                                       .rows = call->ic_n,
                                       .terms = p->positions};
    (void)worker;
    memset(product.sums, 0, 2 * call->ic_n * tiles_whole_panels(p, call->oc_n) * bytes);
    for (size_t c = 0; c < call->ic_n; c += TILES_ROWS)
        multiply_rows(&product, c, size_min(TILES_ROWS, call->ic_n - c), 0, p->positions,
                      packed_rows(call, bin, c));
}

void tiles_pack_inputs(const struct tiles_call *call)
{
    thread_loop(call->plan->threads, call->p->bins, pack_inputs_bin, (void *)call);
}

void tiles_multiply(const struct tiles_call *call)
{
    const bool transposed = call->p->product == TILES_TRANSPOSED;
    task_fn *task = transposed ? multiply_transposed_bin : multiply_bin;
    if (call->p->weight) task = transposed ? multiply_weight_transposed_bin : multiply_weight_bin;
    thread_loop(call->plan->threads, call->p->bins, task, (void *)call);
}
