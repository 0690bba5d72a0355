// SPDX-License-Identifier: MIT
// The reference of every kernel: the contract of kernels.h in plain loops, written to be read and
// stepped through. The tests of kernels run it as they run each instruction set.
#include <string.h>

#include "base/winograd_matrix.h"
#include "kernels/names.h"

// One output of a segment of real taps.
static void reference_fir_real(REAL *y, const REAL *x, const REAL *h, size_t taps, size_t step)
{
    REAL sum = 0;
    for (size_t j = 0; j < taps; j++) sum += h[j] * *(x - step * j);
    *y += sum;
}

// One output of a complex segment. The products are spelled out: C's complex multiplication would
// turn some NaNs into infinities, at a price.
static void reference_fir_complex(REAL *y, const REAL *x, const REAL *h, size_t taps)
{
    REAL re = 0, im = 0;
    for (size_t j = 0; j < taps; j++) {
        const REAL *in = x - 2 * j, *tap = h + 2 * j;
        re += tap[0] * in[0] - tap[1] * in[1];
        im += tap[0] * in[1] + tap[1] * in[0];
    }
    y[0] += re;
    y[1] += im;
}

void KERNEL(fir)(void *y_, const void *x_, const void *h_, size_t n, size_t taps,
                 enum fir_type type)
{
    REAL *y = y_;
    const REAL *x = x_, *h = h_;
    const size_t step = type == FIR_REAL ? 1 : 2;
    for (size_t first = 0; first < taps; first += FIR_SEGMENT) {
        const size_t length = taps - first < FIR_SEGMENT ? taps - first : FIR_SEGMENT;
        for (size_t i = 0; i < step * n; i++) {
            const REAL *from = x + i - step * first;
            if (type != FIR_COMPLEX) reference_fir_real(y + i, from, h + first, length, step);
            else if (i % 2 == 0) reference_fir_complex(y + i, from, h + 2 * first, length);
        }
    }
}

// The sum of x[0], x[step] .. times h[0], h[step] .., in partial sums of FIR_SEGMENT products.
static REAL reference_dot(const REAL *x, const REAL *h, size_t taps, size_t step)
{
    REAL sum = 0;
    for (size_t first = 0; first < taps; first += FIR_SEGMENT) {
        const size_t last = taps - first < FIR_SEGMENT ? taps : first + FIR_SEGMENT;
        REAL part = 0;
        for (size_t j = first; j < last; j++) part += x[step * j] * h[step * j];
        sum += part;
    }
    return sum;
}

void KERNEL(resample)(void *y_, const void *x_, const void *h,
                      const struct resample_position *first, size_t n, enum fir_type type)
{
    const size_t step = type == FIR_REAL ? 1 : 2;
    struct resample_position at = *first;
    REAL *y = y_;
    const REAL *x = (const REAL *)x_ - step * (first->taps - 1);
    for (size_t i = 0; i < n; i++, y += step) {
        const REAL *row = (const REAL *)h + at.branch * at.pitch, *im = row + at.pitch / 2;
        REAL sum[2];
        for (size_t k = 0; k < step; k++) sum[k] = reference_dot(x + k, row, at.taps, step);
        if (type == FIR_COMPLEX) {
            sum[0] -= reference_dot(x + 1, im, at.taps, step);
            sum[1] += reference_dot(x, im, at.taps, step);
        }
        for (size_t k = 0; k < step; k++) y[k] += sum[k];
        resample_advance(&at);
        x += step * at.sample;
    }
}

enum { LINE_REALS = 2 * SPECTRUM_LANES };

// Adds a term to one line.
static void reference_multiply_line(REAL *y, const REAL *x, const REAL *h)
{
    for (size_t k = 0; k < SPECTRUM_LANES; k++) {
        const REAL xr = x[k], xi = x[SPECTRUM_LANES + k], hr = h[k], hi = h[SPECTRUM_LANES + k];
        y[k] += xr * hr - xi * hi;
        y[SPECTRUM_LANES + k] += xr * hi + xi * hr;
    }
}

void KERNEL(cmac)(void *y_, const void *x_, size_t x_stride, const void *h_, size_t h_stride,
                  size_t terms, size_t n_lines)
{
    REAL *y = y_;
    const REAL *x = x_, *h = h_;
    for (size_t b = 0; b < n_lines; b++) {
        REAL sum[LINE_REALS] = {0};
        for (size_t t = 0; t < terms; t++)
            reference_multiply_line(sum, x + (t * x_stride + b) * LINE_REALS,
                                    h + (t * h_stride + b) * LINE_REALS);
        memcpy(y + b * LINE_REALS, sum, sizeof sum);
    }
}

// The line of h for partition p of a path. A line in 16 bits is widened to `wide`.
static const REAL *reference_filter_line(REAL *wide, const struct cmac_path *path, size_t line,
                                         size_t p, bool i16)
{
    const size_t at = line * path->h_pitch + p - path->first;
    if (!i16) return (const REAL *)path->h + at * LINE_REALS;
    const uint32_t *words = (const uint32_t *)path->h + at * SPECTRUM_LANES;
    const REAL scale = path->scale[at];
    for (size_t k = 0; k < SPECTRUM_LANES; k++) {
        wide[k] = (REAL)(int32_t)(words[k] << 16) * scale;
        wide[SPECTRUM_LANES + k] = (REAL)(int32_t)(words[k] & 0xffff0000) * scale;
    }
    return wide;
}

// A path's products to one line of sum k.
static void reference_add_path(REAL *sum, const struct cmac_terms *terms,
                               const struct cmac_path *path, size_t line, size_t k)
{
    REAL wide[LINE_REALS];
    for (size_t p = path->first; p < path->first + path->count; p++) {
        const size_t slot = (terms->newest + terms->slots - terms->multiple * p) % terms->slots;
        const REAL *x = (const REAL *)path->x + (line * path->x_pitch + slot + k) * LINE_REALS;
        reference_multiply_line(sum, x, reference_filter_line(wide, path, line, p, terms->i16));
    }
}

// A line of all sums.
static void reference_sum_line(void *const *y, const struct cmac_terms *terms,
                               const struct cmac_path *paths, size_t n_paths, size_t line)
{
    for (size_t k = 0; k < terms->sums; k++) {
        REAL *sum = (REAL *)y[k] + line * LINE_REALS;
        if (terms->overwrite[k]) memset(sum, 0, SPECTRUM_LINE_BYTES);
        for (size_t i = 0; i < n_paths; i++) reference_add_path(sum, terms, &paths[i], line, k);
        const struct cmac_more *more = terms->more;
        for (; more < terms->more + terms->n_more; more++)
            for (size_t i = 0; i < more->n_paths && k < more->sums; i++)
                reference_add_path(sum, terms, &more->paths[i], line, k);
    }
}

void KERNEL(cmac_partitions)(void *const *y, const struct cmac_terms *terms,
                             const struct cmac_path *paths, size_t n_paths, size_t first,
                             size_t end)
{
    for (size_t line = first; line < end; line++)
        reference_sum_line(y, terms, paths, n_paths, line);
}

void KERNEL(conv)(const struct conv_operands *operands, struct conv_prefetch *prefetch)
{
    REAL *y = operands->y;
    const REAL *x = operands->x, *w = operands->w;
    enum { STRIP = 8 * CONV_LANES, CACHE_LINE = 64 };
    for (size_t first = 0; first < operands->n;
         first += STRIP) // short enough for the nearest cache
        for (size_t k = 0; k < operands->channels; k++) {
            const size_t length = operands->n - first < STRIP ? operands->n - first : STRIP;
            REAL sum[STRIP] = {0};
            for (size_t t = 0; t < operands->terms; t++)
                for (size_t i = 0; i < length; i++)
                    sum[i] += w[t * operands->w_term + k * operands->w_channel] *
                              x[operands->offset[t] + first + i];
            for (size_t i = 0; i < length; i++) {
                REAL *out = y + k * operands->y_stride + first + i;
                *out = operands->overwrite ? sum[i] : *out + sum[i];
            }
        }
    for (size_t i = 0; prefetch && i < prefetch->count; i++) {
        prefetch->at += CACHE_LINE;
        if (--prefetch->left) continue;
        prefetch->at += prefetch->skip;
        prefetch->left = prefetch->lines;
    }
}

void KERNEL(conv_weight)(const struct conv_weight_operands *operands)
{
    for (size_t k = 0; k < operands->channels; k++)
        for (size_t t = 0; t < operands->terms; t++) {
            const REAL *y = (const REAL *)operands->y + k * operands->y_stride;
            const REAL *x = (const REAL *)operands->x + operands->offset[t];
            REAL sum[CONV_LANES] = {0};
            for (size_t i = 0; i < operands->n; i++) sum[i % CONV_LANES] += y[i] * x[i];
            for (size_t half = CONV_LANES / 2; half; half /= 2)
                for (size_t lane = 0; lane < half; lane++) sum[lane] += sum[half + lane];
            ((REAL *)operands->w)[k * operands->w_stride + t] += sum[0];
        }
}

enum matrix { INPUT, OUTPUT, TAPS };

// The matrix of a transform; returns its columns.
static size_t reference_matrix(enum matrix kind, size_t extent, size_t count,
                               REAL ret[WINOGRAD_EXTENT][WINOGRAD_EXTENT])
{
    const size_t to = kind == OUTPUT ? count : extent, from = kind == TAPS ? count : extent;
    for (size_t i = 0; i < to; i++) {
        double row[WINOGRAD_EXTENT] = {1}; // extent 1
        if (kind == INPUT && extent > 1) winograd_input_row(extent, i, row);
        for (size_t k = 0; k < from; k++) {
            if (kind == OUTPUT) row[k] = winograd_output_entry(extent, count, i, k);
            if (kind == TAPS && extent > 1) row[k] = winograd_taps_entry(extent, count, k, i);
            ret[i][k] = (REAL)row[k];
        }
    }
    return from;
}

// y[to][n] = matrix[to][from] x, for each row.
static void reference_winograd(enum matrix kind, REAL *y, const REAL *x, size_t extent,
                               size_t count, const struct winograd_rows *rows)
{
    REAL matrix[WINOGRAD_EXTENT][WINOGRAD_EXTENT];
    const size_t from = reference_matrix(kind, extent, count, matrix);
    const size_t to = kind == OUTPUT ? count : extent;
    for (size_t r = 0; r < rows->rows; r++, x += rows->x_row_stride, y += rows->y_row_stride)
        for (size_t i = 0; i < to; i++)
            for (size_t p = 0; p < rows->n; p++) {
                REAL sum = 0;
                for (size_t k = 0; k < from; k++) sum += matrix[i][k] * x[rows->offset[k] + p];
                y[i * rows->y_stride + p] = sum;
            }
}

static void reference_lines(enum matrix kind, REAL *y, const REAL *x, size_t extent, size_t count,
                            const struct winograd_lines *lines)
{
    REAL matrix[WINOGRAD_EXTENT][WINOGRAD_EXTENT];
    const size_t from = reference_matrix(kind, extent, count, matrix);
    for (size_t r = 0; r < lines->rows; r++) {
        REAL *to = y + r % lines->residues * lines->y_residue + r / lines->residues * lines->tiles;
        const bool row_exists = lines->first_row <= r && r < lines->last_row;
        const REAL *row = x + (row_exists ? r - lines->first_row : 0) * lines->pitch;
        for (size_t i = 0; i < extent; i++)
            for (size_t t = 0; t < lines->tiles; t++) {
                REAL sum = 0;
                for (size_t k = 0; k < from; k++) {
                    const size_t at = t * count + k;
                    const bool exists = row_exists && lines->first <= at && at < lines->last;
                    sum += matrix[i][k] * (exists ? row[at - lines->first] : 0);
                }
                to[i * lines->y_stride + t] = sum;
            }
    }
}

#define REFERENCE_WINOGRAD(name, function, kind, layout)                                           \
    void KERNEL(name)(void *y, const void *x, size_t extent, size_t count,                         \
                      const struct layout *lines)                                                  \
    {                                                                                              \
        function(kind, y, x, extent, count, lines);                                                \
    }
REFERENCE_WINOGRAD(winograd_input, reference_winograd, INPUT, winograd_rows)
REFERENCE_WINOGRAD(winograd_output, reference_winograd, OUTPUT, winograd_rows)
REFERENCE_WINOGRAD(winograd_taps, reference_winograd, TAPS, winograd_rows)
REFERENCE_WINOGRAD(winograd_input_lines, reference_lines, INPUT, winograd_lines)
REFERENCE_WINOGRAD(winograd_taps_lines, reference_lines, TAPS, winograd_lines)

void KERNEL(winograd_store)(void *y_, const void *x_, size_t extent, size_t count,
                            const struct winograd_stores *stores)
{
    REAL matrix[WINOGRAD_EXTENT][WINOGRAD_EXTENT], *y = y_;
    const REAL *x = x_;
    const size_t from = reference_matrix(extent > 1 ? OUTPUT : INPUT, extent, count, matrix);
    for (size_t at = 0; at < stores->rows * stores->tiles * count; at++) {
        const size_t k = at % count, t = at / count % stores->tiles;
        const size_t i = at / count / stores->tiles;
        const size_t row = t / stores->cols * stores->rows + i;
        const size_t sample = t % stores->cols * count + k;
        REAL sum = 0;
        for (size_t j = 0; j < from; j++)
            sum += matrix[k][j] * x[i * stores->x_row + j * stores->x_stride + t];
        if (row < stores->first_row || row >= stores->last_row) continue;
        if (sample < stores->first || sample >= stores->last) continue;
        KERNEL(conv_store)
        (y + (row - stores->first_row) * stores->pitch + sample - stores->first, 1, &sum, 1,
         stores->finish);
    }
}

void KERNEL(transpose)(void *y_, size_t y_stride, const void *x_, size_t x_stride, size_t rows,
                       size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    for (size_t k = 0; k < rows; k++)
        for (size_t i = 0; i < n; i++) y[i * y_stride + k] = x[(ptrdiff_t)(k * x_stride + i)];
}

void KERNEL(lanes_read)(void *y_, size_t y_stride, const void *const *x, size_t step, size_t n)
{
    REAL *y = y_;
    for (size_t i = 0; i < n; i++)
        for (size_t lane = 0; lane < CONV_LANES; lane++)
            y[i * y_stride * CONV_LANES + lane] = x[lane] ? ((const REAL *)x[lane])[i * step] : 0;
}

void KERNEL(lanes_write)(void *const *y, size_t step, const void *x_, size_t n, const void *bias,
                         bool relu)
{
    const REAL *x = x_;
    for (size_t lane = 0; lane < CONV_LANES; lane++)
        for (size_t i = 0; y[lane] && i < n; i++) {
            const REAL v = x[i * CONV_LANES + lane] + (bias ? ((const REAL *)bias)[lane] : 0);
            ((REAL *)y[lane])[i * step] = relu && v < 0 ? 0 : v;
        }
}

void KERNEL(lanes_conv)(void *y_, const void *x_, const void *w_, const struct tap_span *span,
                        size_t n_spans, size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    for (size_t i = 0; i < n; i++, x += CONV_LANES, y += CONV_LANES) {
        REAL sum[CONV_LANES] = {0};
        const REAL *w = w_;
        for (size_t r = 0; r < n_spans; r++)
            for (size_t t = 0; t < span[r].taps; t++, w += CONV_LANES)
                for (size_t lane = 0; lane < CONV_LANES; lane++)
                    sum[lane] += w[lane] * x[(span[r].offset + t) * CONV_LANES + lane];
        for (size_t lane = 0; lane < CONV_LANES; lane++) y[lane] += sum[lane];
    }
}

void KERNEL(plane_conv)(const struct plane_conv *call, const void *bias, bool relu)
{
    const struct plane_axis *axis = call->axis;
    const size_t taps = axis[0].taps * axis[1].taps;
    for (size_t i = 0; i < axis[0].count * axis[1].count; i++) {
        REAL sum = 0;
        size_t tap[2] = {0, 0};
        for (size_t k = 0; k < taps; k++, plane_next_tap(axis, tap)) {
            const ptrdiff_t row = (ptrdiff_t)(i / axis[1].count * axis[0].step + tap[0]);
            const ptrdiff_t col = (ptrdiff_t)(i % axis[1].count * axis[1].step + tap[1]);
            const size_t r = (size_t)(row + axis[0].first), c = (size_t)(col + axis[1].first);
            if (r < axis[0].size && c < axis[1].size) // neither is negative
                sum += ((const REAL *)call->w)[k] * ((const REAL *)call->x)[r * axis[1].size + c];
        }
        if (bias) sum += *(const REAL *)bias;
        ((REAL *)call->y)[i] = relu && sum < 0 ? 0 : sum;
    }
}

void KERNEL(plane_weight)(const struct plane_weight *call)
{
    const struct plane_axis *axis = call->axis;
    for (size_t k = 0; k < axis[0].taps * axis[1].taps; k++)
        for (size_t i = 0; i < axis[0].count * axis[1].count; i++) {
            const ptrdiff_t row = (ptrdiff_t)(i / axis[1].count * axis[0].step + k / axis[1].taps);
            const ptrdiff_t col = (ptrdiff_t)(i % axis[1].count * axis[1].step + k % axis[1].taps);
            const size_t r = (size_t)(row + axis[0].first), c = (size_t)(col + axis[1].first);
            if (r < axis[0].size && c < axis[1].size) // neither is negative
                ((REAL *)call->w)[k * CONV_LANES + i % CONV_LANES] +=
                    ((const REAL *)call->gy)[i] * ((const REAL *)call->x)[r * axis[1].size + c];
        }
}

void KERNEL(channels_conv)(const struct channels_conv *call)
{
    const struct plane_axis *axis = &call->axis;
    const size_t channels = call->channels;
    for (size_t i = 0; i < axis->count * channels; i++) {
        const size_t c = i % channels, begin = i / channels * axis->step + (size_t)axis->first;
        const REAL *bias = call->bias, *w = (const REAL *)call->w + c;
        REAL sum = 0;
        for (size_t r = 0; r < call->rows; r++)
            for (size_t t = 0; t < axis->taps; t++, w += call->w_pitch)
                if (begin + t < axis->size) // else outside, as are negative positions
                    sum += *w * ((const REAL *)call->x[r])[(begin + t) * channels + c];
        if (bias) sum += bias[c];
        ((REAL *)call->y)[i] = call->relu && sum < 0 ? 0 : sum;
    }
}

void KERNEL(lanes_weight)(void *w_, const void *y_, const void *x_, const struct tap_span *span,
                          size_t n_spans, size_t n)
{
    REAL *w = w_;
    const REAL *y = y_, *x = x_;
    for (size_t r = 0; r < n_spans; r++)
        for (size_t t = 0; t < span[r].taps; t++, w += CONV_LANES) {
            REAL sum[CONV_LANES] = {0};
            for (size_t i = 0; i < n; i++)
                for (size_t lane = 0; lane < CONV_LANES; lane++)
                    sum[lane] +=
                        y[i * CONV_LANES + lane] * x[(span[r].offset + t + i) * CONV_LANES + lane];
            for (size_t lane = 0; lane < CONV_LANES; lane++) w[lane] += sum[lane];
        }
}
