// SPDX-License-Identifier: MIT
// Winograd's transforms along one axis of tiles, vectors over the tiles. Points come in pairs +-p
// (winograd_matrix.h), whose rows have equal even parts and opposite odd parts: each part is
// computed once. Even extents have the point 0 before them. Extents and counts are constants in
// every instance, so that entries 0 and 1 cost nothing. Rows of samples are split into tiles and
// back.
#include "base/winograd_matrix.h"
#include "vector.h"

enum { PAIRS = (WINOGRAD_EXTENT - 1) / 2 };

// Coefficients in x^2 of the product of (x^2 - p^2) over the pairs but `skipped`; returns its
// degree in x^2.
INLINE size_t winograd_product_of_pairs(size_t extent, size_t skipped, double ret[PAIRS + 1])
{
    size_t degree = 0;
    ret[0] = 1;
    UNROLL
    for (size_t pair = 0; pair < (extent - 1) / 2; pair++) {
        const double square = winograd_pair(extent, pair) * winograd_pair(extent, pair);
        if (pair == skipped) continue;
        ret[degree + 1] = ret[degree];
        UNROLL
        for (size_t k = degree; k > 0; k--) ret[k] = ret[k - 1] - square * ret[k];
        ret[0] *= -square;
        degree++;
    }
    return degree;
}

// sum + c*x, or c*x where there is no sum yet.
INLINE vec winograd_add_scaled(vec sum, bool first, double c, vec x)
{
    if (first) return vec_broadcast((REAL)c) * x;
    if (c == 1) return sum + x;
    return vec_multiply_add(vec_broadcast((REAL)c), x, sum);
}

// Sum of c[k] * x[from + 2k], k <= degree, highest first: its coefficient is 1.
INLINE vec winograd_even_polynomial(const vec *x, size_t from, const double *c, size_t degree)
{
    vec sum = x[from + 2 * degree];
    UNROLL
    for (size_t k = degree; k-- > 0;) sum = winograd_add_scaled(sum, false, c[k], x[from + 2 * k]);
    return sum;
}

INLINE void winograd_input_tile(vec *y, const vec *x, size_t extent)
{
    double c[PAIRS + 1];
    const size_t zero = 1 - extent % 2; // points
    size_t degree = winograd_product_of_pairs(extent, extent, c);
    if (zero) y[0] = winograd_even_polynomial(x, 0, c, degree);
    y[extent - 1] = winograd_even_polynomial(x, zero, c, degree);
    UNROLL
    for (size_t pair = 0; pair < (extent - 1) / 2; pair++) {
        const vec p = vec_broadcast((REAL)winograd_pair(extent, pair));
        degree = winograd_product_of_pairs(extent, pair, c);
        const vec even = winograd_even_polynomial(x, zero + 1, c, degree),
                  odd = winograd_even_polynomial(x, zero, c, degree);
        y[zero + 2 * pair] = vec_multiply_add(p, odd, even);
        y[zero + 2 * pair + 1] = vec_multiply_add(-p, odd, even);
    }
}

INLINE void winograd_output_tile(vec *y, const vec *x, size_t extent, size_t count)
{
    const size_t zero = 1 - extent % 2; // points
    vec even[PAIRS], odd[PAIRS];
    UNROLL
    for (size_t pair = 0; pair < (extent - 1) / 2; pair++) {
        even[pair] = x[zero + 2 * pair] + x[zero + 2 * pair + 1];
        odd[pair] = x[zero + 2 * pair] - x[zero + 2 * pair + 1];
    }
    UNROLL
    for (size_t k = 0; k < count; k++) {
        const bool alone = (k > 0 || !zero) && k + 1 < count; // no sum but of pairs
        vec sum = k == 0 ? x[0] : x[extent - 1];
        UNROLL
        for (size_t pair = 0; pair < (extent - 1) / 2; pair++)
            sum = winograd_add_scaled(sum, alone && pair == 0,
                                      winograd_power(winograd_pair(extent, pair), k),
                                      k % 2 ? odd[pair] : even[pair]);
        y[k] = sum;
    }
}

INLINE void winograd_taps_tile(vec *y, const vec *x, size_t extent, size_t count)
{
    double c[PAIRS + 1];
    const size_t zero = 1 - extent % 2; // points
    winograd_product_of_pairs(extent, extent, c);
    if (zero) y[0] = vec_broadcast((REAL)(1 / c[0])) * x[0];
    y[extent - 1] = x[count - 1];
    UNROLL
    for (size_t pair = 0; pair < (extent - 1) / 2; pair++) {
        const double p = winograd_pair(extent, pair);
        const size_t degree = winograd_product_of_pairs(extent, pair, c);
        double divisor = 0;
        UNROLL
        for (size_t k = 0; k <= degree; k++)
            divisor += c[k] * winograd_power(p, 2 * k + 1 + zero) * 2;
        vec part[2];
        UNROLL
        for (size_t k = 0; k < count; k++)
            part[k % 2] =
                winograd_add_scaled(part[k % 2], k < 2, winograd_power(p, k) / divisor, x[k]);
        y[zero + 2 * pair] = part[0] + part[1];
        y[zero + 2 * pair + 1] = zero ? part[0] - part[1] : part[1] - part[0];
    }
}

enum matrix { INPUT, OUTPUT, TAPS };

INLINE void winograd_tile(enum matrix matrix, vec *y, const vec *x, size_t extent, size_t count)
{
    if (matrix == INPUT) winograd_input_tile(y, x, extent);
    else if (matrix == OUTPUT) winograd_output_tile(y, x, extent, count);
    else winograd_taps_tile(y, x, extent, count);
}

// Into the L2 cache. A number, for the line need not be one of the array's.
INLINE void winograd_prefetch_line(const REAL *x, size_t ahead)
{
    if (ahead) __builtin_prefetch((const void *)((uintptr_t)x + ahead * sizeof(REAL)), 0, 2);
}

// The same to be written.
INLINE void winograd_prefetch_output(const REAL *y, size_t ahead)
{
    if (ahead) __builtin_prefetch((const void *)((uintptr_t)y + ahead * sizeof(REAL)), 1, 2);
}

// One matrix over all rows and tiles.
INLINE void winograd_of_rows(enum matrix matrix, REAL *y, const REAL *x, size_t extent,
                             size_t count, const struct winograd_rows *given)
{
    const struct winograd_rows rows = *given; // y may not change it
    const size_t from = matrix == TAPS ? count : extent, to = matrix == OUTPUT ? count : extent;
    for (size_t r = 0; r < rows.rows; r++, x += rows.x_row_stride, y += rows.y_row_stride) {
        const REAL *element[WINOGRAD_EXTENT];
        UNROLL
        for (size_t k = 0; k < from; k++) element[k] = x + rows.offset[k];
        NO_UNROLL
        for (size_t i = 0; i < rows.n; i += LANES) {
            vec in[WINOGRAD_EXTENT], out[WINOGRAD_EXTENT];
            UNROLL
            for (size_t k = 0; k < from; k++) in[k] = vec_load(element[k] + i);
            UNROLL
            for (size_t k = 0; matrix == OUTPUT && k < from; k++)
                winograd_prefetch_line(element[k] + i, rows.ahead);
            UNROLL
            for (size_t k = 0; matrix != OUTPUT && k < to; k++)
                winograd_prefetch_line(y + k * rows.y_stride + i, rows.ahead);
            winograd_tile(matrix, out, in, extent, count);
            UNROLL
            for (size_t k = 0; k < to; k++) vec_store(y + k * rows.y_stride + i, out[k]);
        }
    }
}

// Samples of a row, of which first .. last-1 exist; `whole`, a constant: all that are read do.
struct winograd_samples {
    const REAL *x; // sample 0
    ptrdiff_t first, last;
    bool whole;
};

INLINE vec winograd_load(const struct winograd_samples *row, size_t at)
{
    if (row->whole) return vec_load(row->x + at);
    const size_t first = vec_lane(row->first - (ptrdiff_t)at);
    const size_t last = vec_lane(row->last - (ptrdiff_t)at);
    return vec_load_masked(row->x + at, vec_lanes(first, last));
}

INLINE REAL winograd_sample(const struct winograd_samples *row, size_t at)
{
    const bool exists = row->first <= (ptrdiff_t)at && (ptrdiff_t)at < row->last;
    return row->whole || exists ? row->x[at] : 0;
}

// Elements of LANES tiles that begin `step` samples apart: element k of tile i is sample i*step +
// k, or element k - step of tile i + 1.
INLINE void winograd_gather(vec *in, const struct winograd_samples *row, size_t step,
                            size_t elements)
{
    UNROLL
    for (size_t k = 0; k < step; k++) in[k] = winograd_load(row, k * LANES);
    vec_deinterleave(in, step);
    UNROLL
    for (size_t k = step; k < elements; k++)
        in[k] =
            vec_shift(in[k - step], vec_broadcast(winograd_sample(row, LANES * step + k - step)));
}

// Rows of samples to the transforms of their tiles; step, extent and count are constants.
INLINE void winograd_of_lines(enum matrix matrix, REAL *y, const REAL *x, size_t extent,
                              size_t count, const struct winograd_lines *given)
{
    const struct winograd_lines lines = *given; // y may not change it
    const size_t from = matrix == TAPS ? count : extent;
    const size_t reach = (LANES - 1) * count + (from + count - 1) / count * count;
    const ptrdiff_t first = (ptrdiff_t)lines.first, last = (ptrdiff_t)lines.last;
    for (size_t r = 0; r < lines.rows; r++) {
        REAL *to = y + r % lines.residues * lines.y_residue + r / lines.residues * lines.tiles;
        const bool exists = lines.first_row <= r && r < lines.last_row;
        NO_UNROLL
        for (size_t i = 0; i < lines.tiles; i += LANES) {
            const ptrdiff_t at = (ptrdiff_t)(i * count);
            struct winograd_samples row = {.x = x + (at - first), .first = first - at};
            row.last = exists ? last - at : row.first;
            vec in[WINOGRAD_EXTENT + 2], out[WINOGRAD_EXTENT];
            row.whole = row.first <= 0 && (ptrdiff_t)reach <= row.last;
            UNROLL
            for (size_t k = 0; k < count; k++)
                if (exists) winograd_prefetch_line(row.x + k * LANES, (size_t)lines.ahead);
            if (row.whole) {
                row.whole = true; // a constant for the compiler
                winograd_gather(in, &row, count, from);
            } else {
                row.whole = false;
                winograd_gather(in, &row, count, from);
            }
            if (extent == 1) out[0] = in[0];
            else winograd_tile(matrix, out, in, extent, count);
            const size_t left = lines.tiles - i;
            UNROLL
            for (size_t k = 0; k < extent; k++)
                if (left < LANES) vec_store_first(to + k * lines.y_stride + i, out[k], left);
                else vec_store(to + k * lines.y_stride + i, out[k]);
        }
        if (exists) x += lines.pitch;
    }
}

// A row of results, whose samples first .. last-1 are stored, sample `first` at y.
struct winograd_output {
    REAL *y;
    size_t first, last;
    ptrdiff_t ahead;
    bool biased, relu;
    vec bias;
};

// The first n lanes of v, which are the samples from `at` on.
INLINE void winograd_put(const struct winograd_output *out, vec v, size_t at, size_t n)
{
    const ptrdiff_t to = (ptrdiff_t)at - (ptrdiff_t)out->first;
    const size_t last = at + n < out->last ? at + n : out->last;
    if (out->biased) v += out->bias;
    if (out->relu) v = vec_positive(v);
    if (to >= 0 && at + LANES <= last) {
        winograd_prefetch_output(out->y + to, (size_t)out->ahead);
        vec_store(out->y + to, v);
        return;
    }
    const size_t begin = vec_lane(-to), end = vec_lane((ptrdiff_t)last - (ptrdiff_t)at);
    if (begin < end) vec_store_range(out->y + to, v, begin, end);
}

// `count` samples of each of LANES tiles, of which `tiles` exist, to samples from `at` on.
INLINE void winograd_put_tiles(const struct winograd_output *out, const vec *x, size_t count,
                               size_t at, size_t tiles)
{
    const size_t samples = tiles * count;
    vec v[WINOGRAD_EXTENT];
    UNROLL
    for (size_t k = 0; k < count; k++) v[k] = x[k];
    vec_interleave(v, count);
    UNROLL
    for (size_t k = 0; k < count; k++)
        if (samples > k * LANES) winograd_put(out, v[k], at + k * LANES, samples - k * LANES);
}

// Row by row of tiles, so that only the last vectors of a row of samples are stored in part.
INLINE void winograd_of_stores(enum matrix matrix, REAL *y, const REAL *x, size_t extent,
                               size_t count, const struct winograd_stores *given)
{
    const struct winograd_stores to = *given; // y may not change it
    const REAL *bias = to.finish->bias;
    struct winograd_output out = {.first = to.first,
                                  .last = to.last,
                                  .ahead = to.ahead,
                                  .biased = bias != NULL,
                                  .relu = to.finish->relu};
    if (bias) out.bias = vec_broadcast(*bias);
    for (size_t row = 0; row < to.tiles / to.cols * to.rows; row++) {
        const REAL *from = x + row % to.rows * to.x_row + row / to.rows * to.cols;
        if (row < to.first_row || row >= to.last_row) continue;
        out.y = y + (row - to.first_row) * to.pitch;
        NO_UNROLL
        for (size_t t = 0; t < to.cols; t += LANES) {
            vec in[WINOGRAD_EXTENT], results[WINOGRAD_EXTENT];
            const size_t left = to.cols - t;
            UNROLL
            for (size_t k = 0; k < extent; k++) in[k] = vec_load(from + k * to.x_stride + t);
            if (extent == 1) results[0] = in[0];
            else winograd_tile(matrix, results, in, extent, count);
            winograd_put_tiles(&out, results, count, t * count, left < LANES ? left : LANES);
        }
    }
}

// A function for each extent and count, which are constants in it, and one that calls them.
// clang-format off
#define CASES(DO, ...) \
    DO(4, 2, __VA_ARGS__) DO(4, 3, __VA_ARGS__) DO(5, 2, __VA_ARGS__) DO(5, 3, __VA_ARGS__) \
    DO(5, 4, __VA_ARGS__) DO(6, 2, __VA_ARGS__) DO(6, 3, __VA_ARGS__) DO(6, 4, __VA_ARGS__) \
    DO(6, 5, __VA_ARGS__) DO(7, 2, __VA_ARGS__) DO(7, 3, __VA_ARGS__) DO(7, 4, __VA_ARGS__) \
    DO(7, 5, __VA_ARGS__) DO(7, 6, __VA_ARGS__) DO(8, 2, __VA_ARGS__) DO(8, 3, __VA_ARGS__) \
    DO(8, 4, __VA_ARGS__) DO(8, 5, __VA_ARGS__) DO(8, 6, __VA_ARGS__) DO(8, 7, __VA_ARGS__)
#define INPUT_CASES(DO, ...) DO(4, 0, __VA_ARGS__) DO(5, 0, __VA_ARGS__) \
    DO(6, 0, __VA_ARGS__) DO(7, 0, __VA_ARGS__) DO(8, 0, __VA_ARGS__)
#define CASES_AND_1(DO, ...) DO(1, 1, __VA_ARGS__) CASES(DO, __VA_ARGS__)
#define CASE_OF(extent, count) ((extent) * WINOGRAD_EXTENT + (count))
#define CASE(extent, count, name, kind, matrix) \
    case CASE_OF(extent, count): name##_##extent##_##count(y, x, kind); break;
#define FUNCTION(extent, count, name, kind, matrix) \
    NOINLINE void name##_##extent##_##count(REAL *y, const REAL *x, const struct winograd_##kind *kind) \
    { winograd_of_##kind(matrix, y, x, extent, count, kind); }
#define TRANSFORM(cases, name, kind, matrix) \
    cases(FUNCTION, name, kind, matrix) \
    void KERNEL(name)(void *y, const void *x, size_t extent, size_t count, const struct winograd_##kind *kind) \
    { switch (CASE_OF(extent, count)) { cases(CASE, name, kind, matrix) } }

TRANSFORM(INPUT_CASES, winograd_input, rows, INPUT)
TRANSFORM(CASES, winograd_output, rows, OUTPUT)
TRANSFORM(CASES, winograd_taps, rows, TAPS)
TRANSFORM(CASES_AND_1, winograd_input_lines, lines, INPUT)
TRANSFORM(CASES_AND_1, winograd_taps_lines, lines, TAPS)
TRANSFORM(CASES_AND_1, winograd_store, stores, OUTPUT)
// clang-format on
