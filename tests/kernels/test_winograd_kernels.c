// SPDX-License-Identifier: MIT
// Kernels of minimal filtering, for every instruction set of this machine, against the convolution
// that they compute and the matrices of winograd_matrix.h; rows of tiles beside plain copies.
// Operands are between inaccessible pages or guard bytes. The C reference has the same tests.
#include "base/winograd_matrix.h"
#include "support/kernel_check.h"

enum { N_EDGES_OF_TILES = 5, ROWS = 3, BLOCKS = 3, MAX_TILES = 16 * BLOCKS };

static const size_t edges[N_EDGES_OF_TILES] = {4, 5, 6, 7, 8};

// Elements of ROWS rows of tiles at offsets of their own.
struct tiles {
    size_t elements, offset[WINOGRAD_EXTENT], row, n;
    struct fence fence;
    void *x;
};

static struct tiles draw_tiles(struct random *random, bool f64, size_t elements, size_t n)
{
    struct tiles t = {.elements = elements, .n = n};
    const size_t gap = random_below(random, 3);
    for (size_t k = 0; k < elements; k++) t.offset[k] = (elements - 1 - k) * (n + gap);
    t.row = elements * (n + gap);
    const size_t all = (ROWS - 1) * t.row + elements * n + (elements - 1) * gap,
                 bytes = all * scalar_size(f64);
    t.fence = fence_open(bytes);
    t.x = fence_put(&t.fence, NULL, bytes, EDGE_END);
    fill_random(random, f64, t.x, all);
    return t;
}

static double element(const struct tiles *t, bool f64, size_t row, size_t k, size_t i)
{
    return scalar_get(f64, t->x, row * t->row + t->offset[k] + i);
}

// The transform, ret[row][element][n], guarded.
static void *transformed(const struct tiles *t, bool f64, winograd_fn *kernel, size_t edge,
                         size_t count, size_t elements)
{
    void *y = guarded_alloc(ROWS * elements * t->n * scalar_size(f64), scalar_size(f64));
    const struct winograd_rows rows = {t->n, ROWS, t->row, elements * t->n, t->n, t->offset, 0};
    kernel(y, t->x, edge, count, &rows);
    return y;
}

// A'[(G g) . (B' d)] is the correlation of d and g, for each F(m, r). The bound is the rounding
// error of at most 4 edge operations on the sum of magnitudes, which is the same formula with
// magnitudes.
static void minimal_filtering(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const double u = f64 ? 0x1p-53 : 0x1p-24;
    struct random random = random_start(s->name);
    for (int e = 0; e < N_EDGES_OF_TILES; e++)
        for (size_t edge = edges[e], m = 2; m < edge; m++) {
            const size_t r = edge + 1 - m, n = BLOCKS * block_lanes(f64);
            struct tiles d = draw_tiles(&random, f64, edge, n), g = draw_tiles(&random, f64, r, n);
            void *v = transformed(&d, f64, s->kernels->winograd_input, edge, 0, edge);
            void *w = transformed(&g, f64, s->kernels->winograd_taps, edge, r, edge);
            struct tiles product = draw_tiles(&random, f64, edge, n);
            for (size_t l = 0; l < ROWS; l++)
                for (size_t k = 0; k < edge; k++)
                    for (size_t i = 0; i < n; i++) {
                        const size_t at = (l * edge + k) * n + i;
                        scalar_put(f64, product.x, l * product.row + product.offset[k] + i,
                                   scalar_get(f64, v, at) * scalar_get(f64, w, at));
                    }
            void *y = transformed(&product, f64, s->kernels->winograd_output, edge, m, m);
            for (size_t at = 0; at < ROWS * m * n; at++) {
                const size_t i = at % n, o = at / n % m, l = at / n / m;
                double expected = 0, magnitude = 0;
                for (size_t k = 0; k < r; k++)
                    expected += element(&d, f64, l, o + k, i) * element(&g, f64, l, k, i);
                for (size_t p = 0; p < edge; p++) {
                    double row[WINOGRAD_EXTENT], inputs = 0, taps = 0;
                    winograd_input_row(edge, p, row);
                    for (size_t k = 0; k < edge; k++)
                        inputs += fabs(row[k] * element(&d, f64, l, k, i));
                    for (size_t k = 0; k < r; k++)
                        taps +=
                            fabs(winograd_taps_entry(edge, r, k, p) * element(&g, f64, l, k, i));
                    magnitude += fabs(winograd_output_entry(edge, m, o, p)) * inputs * taps;
                }
                const double error = fabs(scalar_get(f64, y, at) - expected);
                if (!(error <= 4 * (double)edge * u * magnitude))
                    fail_msg("F(%zu,%zu), output %zu: error %.3g of %.3g", m, r, o, error,
                             magnitude);
            }
            fence_close(&d.fence);
            fence_close(&g.fence);
            fence_close(&product.fence);
            guarded_free(v);
            guarded_free(w);
            guarded_free(y);
        }
}

// Sample c of row r of lines; 0 where there is none.
static double line_sample(const struct winograd_lines *lines, bool f64, const void *x, size_t r,
                          size_t c)
{
    const bool exists =
        lines->first_row <= r && r < lines->last_row && lines->first <= c && c < lines->last;
    const size_t row = (r - lines->first_row) * lines->pitch;
    return exists ? scalar_get(f64, x, row + c - lines->first) : 0;
}

// Transforms of rows of samples beside the matrices in float64. The samples that exist lie between
// fences: with margins they end where kernels may read, else where tiles do, or before. Results are
// written nowhere else.
static void lines_case(const struct kernel_subject *s, struct random *random, bool taps,
                       size_t extent, size_t count)
{
    const bool f64 = s->kernels->f64;
    const size_t bytes = scalar_size(f64), lanes = block_lanes(f64);
    const size_t from = taps ? count : extent, margin = (from + count - 1) / count * count - count;
    struct winograd_lines lines = {
        .rows = 1 + random_below(random, 7),
        .tiles = 1 + random_below(random, 2 * lanes + 1),
        .residues = 1 + random_below(random, 4),
        .pitch = 2 * (lanes + 1) * count + margin + random_below(random, 3),
        .y_residue = (7 * (2 * lanes + 1)) + random_below(random, 3),
        .y_stride = 4 * (7 * (2 * lanes + 1) + 3) + random_below(random, 3)};
    const size_t whole = (lines.tiles + lanes - 1) / lanes * lanes;
    lines.last_row = lines.rows;
    lines.last = whole * count + margin;
    if (random_below(random, 2)) {
        lines.first_row = random_below(random, lines.rows);
        lines.last_row -= random_below(random, lines.rows - lines.first_row);
        lines.first = random_below(random, 4);
        lines.last = lines.first + 1 + random_below(random, lines.last - lines.first);
    }
    const size_t samples =
        (lines.last_row - lines.first_row - 1) * lines.pitch + lines.last - lines.first;
    const size_t results = extent * lines.y_stride;
    struct fence fence = fence_open(samples * bytes);
    const enum edge edge = random_below(random, 2) ? EDGE_START : EDGE_END;
    void *x = fence_put(&fence, NULL, samples * bytes, edge);
    void *y = guarded_alloc(results * bytes, bytes);
    size_t written = 0, zeros = 0;
    fill_random(random, f64, x, samples);
    memset(y, 0, results * bytes);
    (taps ? s->kernels->winograd_taps_lines : s->kernels->winograd_input_lines)(y, x, extent, count,
                                                                                &lines);
    for (size_t r = 0; r < lines.rows; r++)
        for (size_t i = 0; i < extent; i++) {
            double row[WINOGRAD_EXTENT] = {1};
            if (!taps && extent > 1) winograd_input_row(extent, i, row);
            for (size_t k = 0; taps && extent > 1 && k < from; k++)
                row[k] = winograd_taps_entry(extent, count, k, i);
            for (size_t t = 0; t < lines.tiles; t++) {
                double expected = 0, magnitude = 0;
                for (size_t k = 0; k < from; k++) {
                    const double x_k = line_sample(&lines, f64, x, r, t * count + k);
                    expected += row[k] * x_k;
                    magnitude += fabs(row[k] * x_k);
                }
                const size_t at = r % lines.residues * lines.y_residue +
                                  r / lines.residues * lines.tiles + i * lines.y_stride + t;
                const double tolerance =
                    4 * (f64 ? 0x1p-53 : 0x1p-24) * sqrt((double)extent) * magnitude;
                if (!(fabs(scalar_get(f64, y, at) - expected) <= tolerance))
                    fail_msg("F(%zu) of %zu, row %zu, tile %zu: %g, expected %g", count, extent, r,
                             t, scalar_get(f64, y, at), expected);
                written++;
            }
        }
    for (size_t i = 0; i < results; i++) zeros += scalar_get(f64, y, i) == 0;
    assert_true(zeros + written >= results);
    guarded_free(y);
    fence_close(&fence);
}

static void transformed_lines(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start("lines");
    for (int taps = 0; taps < 2; taps++) {
        lines_case(s, &random, taps, 1, 1);
        for (size_t extent = 4; extent <= WINOGRAD_EXTENT; extent++)
            for (size_t count = 2; count < extent; count++)
                for (int repeat = 0; repeat < 8; repeat++)
                    lines_case(s, &random, taps, extent, count);
    }
}

// The finished sample (row, at) of tiles in x, and the sum of magnitudes that it has.
static double stored_sample(const struct winograd_stores *stores, bool f64, const void *x,
                            const size_t matrix[2], const size_t sample[2], double *magnitude)
{
    const size_t extent = matrix[0], count = matrix[1];
    const size_t t = sample[0] / stores->rows * stores->cols + sample[1] / count;
    const size_t i = sample[0] % stores->rows, k = sample[1] % count;
    double sum = stores->finish->bias ? scalar_get(f64, stores->finish->bias, 0) : 0;
    *magnitude = fabs(sum);
    for (size_t j = 0; j < extent; j++) {
        const double entry = extent > 1 ? winograd_output_entry(extent, count, k, j) : 1;
        const double product =
            entry * scalar_get(f64, x, i * stores->x_row + j * stores->x_stride + t);
        sum += product;
        *magnitude += fabs(product);
    }
    return stores->finish->relu && sum < 0 ? 0 : sum;
}

// Tiles stored in rows that end anywhere, beside the matrices in float64; results are written
// nowhere else.
static void store_case(const struct kernel_subject *s, struct random *random, size_t extent,
                       size_t count)
{
    const bool f64 = s->kernels->f64;
    const size_t bytes = scalar_size(f64), lanes = block_lanes(f64);
    const size_t cols = 1 + random_below(random, lanes + 3), high = 1 + random_below(random, 4);
    const size_t n = (cols * high + lanes - 1) / lanes * lanes;
    double bias;
    scalar_put(f64, &bias, 0, 0.25);
    const struct conv_finish finish = {.bias = random_below(random, 2) ? &bias : NULL,
                                       .relu = random_below(random, 2)};
    struct winograd_stores stores = {.rows = 1 + random_below(random, 4),
                                     .x_stride = n,
                                     .x_row = extent * n,
                                     .tiles = cols * high,
                                     .cols = cols,
                                     .finish = &finish};
    stores.first = random_below(random, cols * count);
    stores.last = stores.first + 1 + random_below(random, cols * count - stores.first);
    stores.first_row = random_below(random, high * stores.rows);
    stores.last_row =
        stores.first_row + 1 + random_below(random, high * stores.rows - stores.first_row);
    stores.pitch = stores.last - stores.first + random_below(random, 3);
    const size_t samples =
        stores.rows * stores.x_row + lanes; // a row of tiles ends in whole blocks
    const size_t results =
        (stores.last_row - stores.first_row - 1) * stores.pitch + stores.last - stores.first;
    void *x = guarded_alloc(samples * bytes, bytes), *y = guarded_alloc(results * bytes, bytes);
    fill_random(random, f64, x, samples);
    for (size_t i = 0; i < results; i++) scalar_put(f64, y, i, 77);
    s->kernels->winograd_store(y, x, extent, count, &stores);
    for (size_t i = 0; i < results; i++) {
        const size_t row = stores.first_row + i / stores.pitch;
        const size_t at = stores.first + i % stores.pitch;
        double magnitude = 0, expected = 77;
        if (at < stores.last)
            expected = stored_sample(&stores, f64, x, (size_t[]){extent, count},
                                     (size_t[]){row, at}, &magnitude);
        const double tolerance = 4 * (f64 ? 0x1p-53 : 0x1p-24) * sqrt((double)extent) * magnitude;
        if (!(fabs(scalar_get(f64, y, i) - expected) <= tolerance))
            fail_msg("F(%zu) of %zu, row %zu, sample %zu: %g, expected %g", count, extent, row, at,
                     scalar_get(f64, y, i), expected);
    }
    guarded_free(x);
    guarded_free(y);
}

static void stored_tiles(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start("stores");
    for (int repeat = 0; repeat < 16; repeat++) {
        store_case(s, &random, 1, 1);
        for (size_t extent = 4; extent <= WINOGRAD_EXTENT; extent++)
            for (size_t count = 2; count < extent; count++) store_case(s, &random, extent, count);
    }
}

static const struct promise promises[] = {
    {"minimal filtering", minimal_filtering},
    {"winograd_lines", transformed_lines},
    {"winograd_store", stored_tiles},
};

int main(void)
{
    return test_all_isas(promises, sizeof promises / sizeof *promises);
}
