// SPDX-License-Identifier: MIT
// Kernels for streams, for every instruction set of this machine, against the contract of
// kernels.h: products over paths against sums in twice the precision, the peak by its bits.
// Operands are between inaccessible pages; bytes that must not be read are NaN.
#include "support/kernel_check.h"

#include <stdio.h>

enum { MAX_PATHS = 4, MAX_PARTS = 9, MAX_TILES = 13 };

// Rows of tiles, one for each tile of the spectrum from `first` on, `pitch` tiles apart.
struct rows {
    size_t first, end, width, pitch;
    size_t tile;  // bytes
    size_t bytes; // from the start of the first row to the end of the last
    char *memory;
    struct fence fence;
};

struct paths_data {
    struct cmac_terms terms;
    size_t first, end, n_lines;
    size_t n_own;                         // lines of the call; the others are those of `more`
    struct cmac_more more[CMAC_SUMS - 2]; // with 2 sums, and with 1
    size_t products;                      // of all paths
    struct {
        size_t first, count;
        size_t sums; // the products are added to
        struct rows x, h;
        struct rows words, scales; // of 16 bits, with the values that h has
    } line[MAX_PATHS];
    char *y[CMAC_SUMS]; // tiles first .. end-1 before the sum
};

static size_t tile_reals(bool f64)
{
    return SPECTRUM_LINE_BYTES / scalar_size(f64);
}

static char *row_tile(const struct rows *r, size_t tile, size_t i)
{
    return r->memory + ((tile - r->first) * r->pitch + i) * r->tile;
}

// Filled with NaN.
static struct rows rows_make(size_t first, size_t end, size_t width, size_t pitch, size_t tile)
{
    struct rows r = {.first = first, .end = end, .width = width, .pitch = pitch, .tile = tile};
    r.bytes = end > first && width ? ((end - first - 1) * pitch + width) * tile : 0;
    r.memory = guarded_alloc(r.bytes, 0);
    r.fence = fence_open(r.bytes);
    return r;
}

static void rows_free(struct rows *r)
{
    fence_close(&r->fence);
    guarded_free(r->memory);
}

// A copy between inaccessible pages; returns the pointer of a path, whose tile 0 may be outside.
static const void *rows_put(const struct rows *r, enum edge edge)
{
    const char *copy = fence_put(&r->fence, r->memory, r->bytes, edge);
    return (const void *)((uintptr_t)copy - r->first * r->pitch * r->tile);
}

// A line of random mantissas, the largest ones included, and a scale; and their values, which `h`
// gets, as the contract has them.
static void words_fill(struct random *random, void *words_, void *scale_, void *h_, double factor)
{
    uint32_t *words = words_;
    float *scale = scale_, *h = h_;
    *scale = (float)(factor * ldexp(1 + (double)random_below(random, 1000), -41));
    for (size_t i = 0; i < SPECTRUM_LANES_BYTES / sizeof *h; i++) {
        int mantissa[2];
        for (int k = 0; k < 2; k++) {
            const int edges[] = {0, 32767, -32768, -1};
            mantissa[k] = random_below(random, 8) ? (int)random_below(random, 65536) - 32768
                                                  : edges[random_below(random, 4)];
            h[i + (size_t)k * SPECTRUM_LANES_BYTES / sizeof *h] =
                (float)(mantissa[k] * 65536.0 * (double)*scale);
        }
        words[i] = (uint32_t)(uint16_t)mantissa[0] | (uint32_t)(uint16_t)mantissa[1] << 16;
    }
}

static void tile_fill(struct random *random, bool f64, char *x, double factor, bool tame)
{
    fill_random(random, f64, x, tile_reals(f64));
    for (size_t i = 0; i < tile_reals(f64); i++)
        scalar_put(f64, x, i, factor * scalar_get(f64, x, i));
    for (size_t k = random_below(random, 8); !tame && k > 0; k--)
        scalar_put(f64, x, random_below(random, tile_reals(f64)),
                   extreme_value(random, f64, false));
}

static size_t slot_of(const struct paths_data *d, size_t p)
{
    return (d->terms.newest + d->terms.slots - p * d->terms.multiple) % d->terms.slots;
}

// The slots after the last are copies of the first ones, as far as both are read.
static void slots_copy(struct paths_data *d, size_t i, size_t tile)
{
    bool read[(MAX_PARTS + 1) * 4 + CMAC_SUMS] = {0};
    for (size_t p = 0; p < d->line[i].count; p++)
        for (size_t k = 0; k < d->terms.sums; k++)
            read[slot_of(d, d->line[i].first + p) + k] = true;
    for (size_t slot = 0; slot + 1 < d->terms.sums; slot++)
        if (read[slot] && read[slot + d->terms.slots])
            memcpy(row_tile(&d->line[i].x, tile, slot + d->terms.slots),
                   row_tile(&d->line[i].x, tile, slot), SPECTRUM_LINE_BYTES);
}

// Only samples that the contract allows a kernel to read are not NaN.
static void path_fill(struct paths_data *d, size_t i, struct random *random, bool f64,
                      double factor, bool tame)
{
    for (size_t tile = d->first; tile < d->end; tile++) {
        for (size_t p = 0; p < d->line[i].count; p++) {
            if (d->terms.i16)
                words_fill(random, row_tile(&d->line[i].words, tile, p),
                           row_tile(&d->line[i].scales, tile, p), row_tile(&d->line[i].h, tile, p),
                           factor);
            else tile_fill(random, f64, row_tile(&d->line[i].h, tile, p), factor, true);
            for (size_t k = 0; k < d->terms.sums; k++)
                tile_fill(random, f64,
                          row_tile(&d->line[i].x, tile, slot_of(d, d->line[i].first + p) + k), 1,
                          tame);
        }
        slots_copy(d, i, tile);
    }
}

static struct paths_data paths_make(struct random *random, bool f64, bool tame, bool i16)
{
    // Prefetched after the lines, hence any address.
    static const struct cmac_next next = {.lines = 2, .x = &next, .h = &next, .first = 3};
    const size_t multiple = 1 + random_below(random, 4),
                 parts = 1 + random_below(random, MAX_PARTS);
    const size_t slots = (parts - 1) * multiple + 1 + random_below(random, 2);
    struct paths_data d = {
        .terms = {.slots = slots,
                  .newest = random_below(random, slots),
                  .multiple = multiple,
                  .sums = (size_t)1 << random_below(random, 3),
                  .ahead = random_below(random, 2) * 40,
                  .x_near = random_below(random, 2),
                  .i16 = i16,
                  .next = random_below(random, 2) ? &next : NULL},
        .first = random_below(random, MAX_TILES),
        .n_lines = random_below(random, MAX_PATHS + 1),
    };
    d.end = d.first + random_below(random, MAX_TILES + 1 - d.first);
    d.n_own = d.terms.sums > 1 ? random_below(random, d.n_lines + 1) : d.n_lines;
    for (size_t i = 0; i < d.n_lines; i++) {
        const size_t before = i > d.n_own ? d.line[i - 1].sums : d.terms.sums / 2;
        d.line[i].sums = i < d.n_own ? d.terms.sums : before - random_below(random, before);
        d.line[i].first = random_below(random, parts + 1);
        d.products += d.line[i].count = random_below(random, parts + 1 - d.line[i].first);
    }
    const double factor = 1.0 / (double)(4 * d.products + 4); // sums of huge values stay finite
    const size_t row = slots + d.terms.sums - 1;
    const size_t pitch = random_below(random, 4) ? row + random_below(random, 3) : row;
    const size_t h_pitch = parts + random_below(random, 9) * random_below(random, 2);
    for (size_t i = 0; i < d.n_lines; i++) {
        const size_t count = d.line[i].count;
        d.line[i].x = rows_make(d.first, d.end, row, pitch, SPECTRUM_LINE_BYTES);
        d.line[i].h = rows_make(d.first, d.end, count, h_pitch, SPECTRUM_LINE_BYTES);
        d.line[i].words = rows_make(d.first, d.end, i16 ? count : 0, h_pitch, SPECTRUM_I16_BYTES);
        d.line[i].scales = rows_make(d.first, d.end, i16 ? count : 0, h_pitch, sizeof(float));
        path_fill(&d, i, random, f64, factor, tame);
    }
    for (size_t k = 0; k < d.terms.sums; k++) {
        d.terms.overwrite[k] = random_below(random, 2);
        d.y[k] = guarded_alloc((d.end - d.first) * SPECTRUM_LINE_BYTES, 0); // initially NaN
        for (size_t tile = d.first; tile < d.end && !d.terms.overwrite[k]; tile++)
            tile_fill(random, f64, d.y[k] + (tile - d.first) * SPECTRUM_LINE_BYTES, factor, true);
    }
    return d;
}

static void paths_free(struct paths_data *d)
{
    for (size_t i = 0; i < d->n_lines; i++) {
        rows_free(&d->line[i].x);
        rows_free(&d->line[i].h);
        rows_free(&d->line[i].words);
        rows_free(&d->line[i].scales);
    }
    for (size_t k = 0; k < d->terms.sums; k++) guarded_free(d->y[k]);
}

// The paths as a kernel gets them, with all their arrays at one edge of a fence.
static void paths_put(struct paths_data *d, struct cmac_path *lines, enum edge edge)
{
    for (size_t i = 0; i < d->n_lines; i++)
        lines[i] = (struct cmac_path){
            .x = rows_put(&d->line[i].x, edge),
            .h = rows_put(d->terms.i16 ? &d->line[i].words : &d->line[i].h, edge),
            .scale = rows_put(&d->line[i].scales, edge),
            .first = d->line[i].first,
            .count = d->line[i].count,
            .x_pitch = d->line[i].x.pitch,
            .h_pitch = d->line[i].h.pitch,
        };
    size_t n = 0;
    for (size_t i = d->n_own; i < d->n_lines; i++) {
        if (n == 0 || d->more[n - 1].sums != d->line[i].sums)
            d->more[n++] = (struct cmac_more){.paths = &lines[i], .sums = d->line[i].sums};
        d->more[n - 1].n_paths++;
    }
    d->terms.more = d->more, d->terms.n_more = n;
}

static struct sum paths_sum(bool f64, const struct paths_data *d, size_t k, size_t tile, size_t i)
{
    const size_t lanes = block_lanes(f64), re = i % lanes, im = re + lanes;
    const bool imaginary = i >= lanes;
    struct sum sum = {0};
    if (!d->terms.overwrite[k])
        sum_product(&sum, scalar_get(f64, d->y[k] + (tile - d->first) * SPECTRUM_LINE_BYTES, i), 1);
    for (size_t l = 0; l < d->n_lines; l++)
        for (size_t p = 0; p < d->line[l].count && k < d->line[l].sums; p++) {
            const void *x = row_tile(&d->line[l].x, tile, slot_of(d, d->line[l].first + p) + k);
            const void *h = row_tile(&d->line[l].h, tile, p);
            const double xr = scalar_get(f64, x, re), xm = scalar_get(f64, x, im);
            const double hr = scalar_get(f64, h, re), hm = scalar_get(f64, h, im);
            sum_product(&sum, xr, imaginary ? hm : hr);
            sum_product(&sum, imaginary ? xm : -xm, imaginary ? hr : hm);
            // hr (xr + xm) and (hr + hm) xm, or (hm - hr) xr, in place of these two.
            if (d->terms.i16) sum.magnitude += 2 * fabs(hr * (imaginary ? xr : xm));
        }
    return sum;
}

// Compares tiles first .. end-1. A product is rounded by the additions of its real or imaginary
// part and one for both; in 16 bits by one more, of what is multiplied.
static void paths_compare(bool f64, const struct paths_data *d, size_t k, const void *y)
{
    const size_t reals = tile_reals(f64);
    for (size_t i = 0; i < (d->end - d->first) * reals; i++) {
        const struct sum sum = paths_sum(f64, d, k, d->first + i / reals, i % reals);
        const double actual = scalar_get(f64, y, i);
        if (!agrees(&sum, f64, actual, d->products + 1 + d->terms.i16) ||
            (!d->products && actual != sum_value(&sum)))
            fail_msg(
                "%zu lines, %zu products, sum %zu of %zu, tile %zu, real %zu: %.17g, not %.17g",
                d->n_lines, d->products, k, d->terms.sums, d->first + i / reals, i % reals, actual,
                sum_value(&sum));
    }
}

static void *tile_back(void *y, size_t tiles)
{
    return (void *)((uintptr_t)y - tiles * SPECTRUM_LINE_BYTES);
}

// y has only the tiles to be written, between inaccessible pages.
static void paths_check(const struct kernels *kernels, struct random *random, bool tame, bool i16)
{
    struct paths_data d = paths_make(random, kernels->f64, tame, i16);
    struct cmac_path lines[MAX_PATHS];
    const size_t bytes = (d.end - d.first) * SPECTRUM_LINE_BYTES;
    struct fence fy[CMAC_SUMS];
    for (size_t k = 0; k < d.terms.sums; k++) fy[k] = fence_open(bytes);
    for (enum edge edge = 0; edge < N_EDGES; edge++) {
        void *y[CMAC_SUMS], *shifted[CMAC_SUMS];
        for (size_t k = 0; k < d.terms.sums; k++) {
            y[k] = fence_put(&fy[k], d.y[k], bytes, edge);
            shifted[k] = tile_back(y[k], d.first);
        }
        paths_put(&d, lines, edge);
        kernels->cmac_partitions(shifted, &d.terms, lines, d.n_own, d.first, d.end);
        for (size_t k = 0; k < d.terms.sums; k++) {
            paths_compare(kernels->f64, &d, k, y[k]);
            fence_check(&fy[k], bytes, edge);
        }
    }
    for (size_t k = 0; k < d.terms.sums; k++) fence_close(&fy[k]);
    paths_free(&d);
}

// Of reals, and in f32 of 16 bits: the expected sums have the widened values with the rounding of
// the contract. Samples that are not finite or nearly so are only for reals.
static void test_paths(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start(s->name);
    for (int round = 0; round < 600; round++) {
        const bool i16 = round % 2 && !s->kernels->f64;
        paths_check(s->kernels, &random, i16 || round % 3, i16);
    }
}

// A tile has the same bits alone as among others, and so has a sum.
static void test_paths_splits(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start(s->name);
    for (int round = 0; round < 400; round++) {
        const bool i16 = round % 2 && !s->kernels->f64;
        cmac_partitions_fn *const kernel = s->kernels->cmac_partitions;
        struct paths_data d = paths_make(&random, s->kernels->f64, true, i16);
        struct cmac_path lines[MAX_PATHS], later[MAX_PATHS];
        const size_t bytes = (d.end - d.first) * SPECTRUM_LINE_BYTES;
        void *several[CMAC_SUMS];
        char *alone = guarded_alloc(bytes, 0), *copy[CMAC_SUMS];
        for (size_t k = 0; k < d.terms.sums; k++) {
            copy[k] = guarded_alloc(bytes, 0);
            memcpy(copy[k], d.y[k], bytes);
            several[k] = tile_back(copy[k], d.first);
        }
        paths_put(&d, lines, EDGE_END);
        kernel(several, &d.terms, lines, d.n_own, d.first, d.end);
        for (size_t k = 0; k < d.terms.sums; k++) {
            struct cmac_terms terms = d.terms;
            void *y[] = {tile_back(alone, d.first)};
            terms.sums = 1, terms.n_more = 0;
            terms.overwrite[0] = d.terms.overwrite[k];
            size_t n = 0;
            for (size_t i = 0; i < d.n_lines; i++) {
                if (k >= d.line[i].sums) continue;
                later[n] = lines[i];
                later[n++].x = (const char *)lines[i].x + k * SPECTRUM_LINE_BYTES;
            }
            memcpy(alone, d.y[k], bytes);
            for (size_t tile = d.first; tile < d.end; tile++)
                kernel(y, &terms, later, n, tile, tile + 1);
            assert_memory_equal(alone, copy[k], bytes);
            guarded_free(copy[k]);
        }
        guarded_free(alone);
        paths_free(&d);
    }
}

enum { MAX_LOOP = 200 };

static uint64_t magnitude_bits(bool f64, const void *x, size_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)x + i * scalar_size(f64), scalar_size(f64));
    return bits & (f64 ? INT64_MAX : INT32_MAX);
}

// The largest by comparison; for NaN and infinities, which may not compare, by bits.
static uint64_t peak_expected(bool f64, const void *x, size_t n)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++) {
        const double a = fabs(scalar_get(f64, x, i)), largest = fabs(scalar_get(f64, x, at));
        const bool numbers = isfinite(a) && isfinite(largest);
        if (numbers ? a > largest : magnitude_bits(f64, x, i) > magnitude_bits(f64, x, at)) at = i;
    }
    return n ? magnitude_bits(f64, x, at) : 0;
}

// All lengths and alignments, with NaN or an inaccessible page before and after the samples, and
// before and after both copies.
static void test_peak(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    const size_t scalar = scalar_size(f64), alignments = SPECTRUM_LANES_BYTES / scalar;
    struct fence fx = fence_open((MAX_LOOP + alignments) * scalar);
    for (size_t n = 0; n <= MAX_LOOP; n++)
        for (size_t offset = 0; offset < alignments * N_EDGES; offset++) {
            const size_t before = offset / N_EDGES, bytes = (before + n) * scalar;
            const enum edge edge = offset % N_EDGES;
            char *x = fence_put(&fx, NULL, bytes, edge);
            memset(x, ZONE_VALUE, bytes);
            x += before * scalar;
            fill_random(&random, f64, x, n);
            const size_t n_hostile = n ? random_below(&random, 4) : 0;
            for (size_t k = 0; k < n_hostile; k++)
                scalar_put(f64, x, random_below(&random, n),
                           extreme_value(&random, f64, random_below(&random, 2)));
            const uint64_t peak = s->kernels->peak(x, n), expected = peak_expected(f64, x, n);
            if (peak != expected)
                fail_msg("%zu samples, %zu past alignment: %#llx, not %#llx", n, before,
                         (unsigned long long)peak, (unsigned long long)expected);
            fence_check(&fx, bytes, edge);
        }
    fence_close(&fx);
}

// Each value among zeros of both signs, at every index; and it is above its predecessor in the
// list.
static void test_peak_values(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const double tiny = f64 ? 0x1p-1074 : 0x1p-149, huge = f64 ? DBL_MAX : (double)FLT_MAX;
    const double values[] = {-0.0, tiny, -2 * tiny, 700 * tiny, -1, 1.5, -huge, INFINITY, -NAN};
    enum { N = 67 };
    double x[N];
    for (size_t at = 0; at < N; at++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            for (size_t i = 0; i < N; i++) scalar_put(f64, x, i, i % 2 ? 0 : -0.0);
            scalar_put(f64, x, at, values[v]);
            const uint64_t expected = magnitude_bits(f64, x, at);
            assert_int_equal(expected == 0, v == 0);
            assert_true(s->kernels->peak(x, N) == expected);
            if (v) scalar_put(f64, x, (at + N / 2) % N, values[v - 1]);
            assert_true(s->kernels->peak(x, N) == expected);
        }
}

static const struct promise promises[] = {
    {"lines", test_paths},
    {"lines, same bits", test_paths_splits},
    {"peak", test_peak},
    {"peak, values", test_peak_values},
};

int main(void)
{
    return test_all_isas(promises, sizeof promises / sizeof *promises);
}
