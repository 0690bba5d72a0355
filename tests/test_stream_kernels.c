// SPDX-License-Identifier: MIT
// The kernels that streams alone use, every level this machine has, against the contract of kernels.h: sums over lines
// of tiles against sums in twice the precision, the peak by its bits, fades against their formula. What they may read
// lies between pages that fault, what they must not read is NaN. The C reference goes through the same tests.
#include "kernel_check.h"

#include <stdio.h>

enum { MAX_LEVELS = CPU_AVX512 + 1 };
enum { MAX_LINES = 4, MAX_TERMS = 12, MAX_TILES = 5, TILE_BYTES = SPECTRUM_TILE * 2 * SPECTRUM_BLOCK_BYTES };

struct subject {
    const struct kernels *kernels;
    char name[16];
};

// What one pointer of a line reads: tile `tile * tile_step + term * term_step` for some tiles and all terms. Tiles are
// counted from where the pointer points to; the first that is read may lie before it.
struct strip {
    ptrdiff_t tile_step, term_step, low;
    size_t bytes; // from the first to the last tile that is read
    char *memory;
    struct fence fence;
};

struct lines_data {
    size_t first, end, n_lines;
    size_t terms; // of all lines
    struct {
        size_t terms;
        bool still;
        struct strip x, next, h;
    } line[MAX_LINES];
};

static size_t tile_reals(bool f64)
{
    return TILE_BYTES / scalar_size(f64);
}

static char *strip_tile(const struct strip *s, size_t tile, size_t term)
{
    return s->memory + ((ptrdiff_t)tile * s->tile_step + (ptrdiff_t)term * s->term_step - s->low) * TILE_BYTES;
}

// Random tiles where they are read, times `factor`, and NaN in the gaps.
static void strip_fill(struct strip *s, struct random *random, bool f64, const struct lines_data *d, size_t terms,
                       double factor, bool tame)
{
    ptrdiff_t high = PTRDIFF_MIN;
    s->low = PTRDIFF_MAX;
    for (size_t tile = d->first; tile < d->end; tile++)
        for (size_t t = 0; t < terms; t++) {
            const ptrdiff_t at = (ptrdiff_t)tile * s->tile_step + (ptrdiff_t)t * s->term_step;
            if (at < s->low) s->low = at;
            if (at > high) high = at;
        }
    if (high == PTRDIFF_MIN) s->low = 0;
    s->bytes = high == PTRDIFF_MIN ? 0 : (size_t)(high - s->low + 1) * TILE_BYTES;
    s->memory = guarded_alloc(s->bytes, 0); // filled with NaN
    s->fence = fence_open(s->bytes);
    for (size_t tile = d->first; tile < d->end; tile++)
        for (size_t t = 0; t < terms; t++) {
            char *x = strip_tile(s, tile, t);
            fill_random(random, f64, x, tile_reals(f64));
            for (size_t i = 0; i < tile_reals(f64); i++) scalar_put(f64, x, i, factor * scalar_get(f64, x, i));
            for (size_t k = random_below(random, 8); !tame && k > 0; k--)
                scalar_put(f64, x, random_below(random, tile_reals(f64)), hostile(random, f64, false));
        }
}

static void strip_free(struct strip *s)
{
    fence_close(&s->fence);
    guarded_free(s->memory);
}

// A copy between pages that fault. What a line points to may lie outside of it.
static const void *strip_place(const struct strip *s, enum edge edge)
{
    return (const void *)((intptr_t)fence_place(&s->fence, s->memory, s->bytes, edge) - s->low * TILE_BYTES);
}

static struct lines_data lines_make(struct random *random, bool f64, bool tame)
{
    struct lines_data d = {.first = random_below(random, MAX_TILES), .n_lines = random_below(random, MAX_LINES + 1)};
    d.end = d.first + random_below(random, MAX_TILES + 1 - d.first);
    for (size_t i = 0; i < d.n_lines; i++) d.terms += d.line[i].terms = random_below(random, MAX_TERMS + 1);
    const double factor = 1.0 / (double)(4 * d.terms + 1); // sums of huge values stay finite
    for (size_t i = 0; i < d.n_lines; i++) {
        const size_t terms = d.line[i].terms;
        struct strip *x = &d.line[i].x, *next = &d.line[i].next, *h = &d.line[i].h;
        x->term_step = (ptrdiff_t)random_below(random, 7) - 3;
        x->tile_step = (ptrdiff_t)(random_below(random, 4) ? terms + random_below(random, 9) : random_below(random, 3));
        h->term_step = 1;
        h->tile_step = (ptrdiff_t)(terms + random_below(random, 9) * random_below(random, 2));
        d.line[i].still = random_below(random, 3) == 0;
        next->term_step = d.line[i].still ? 0 : x->term_step;
        next->tile_step = d.line[i].still ? 0 : x->tile_step;
        strip_fill(x, random, f64, &d, terms, 1, tame);
        strip_fill(next, random, f64, &d, terms, 1, tame);
        strip_fill(h, random, f64, &d, terms, factor, true);
    }
    return d;
}

static void lines_free(struct lines_data *d)
{
    for (size_t i = 0; i < d->n_lines; i++) {
        strip_free(&d->line[i].x);
        strip_free(&d->line[i].next);
        strip_free(&d->line[i].h);
    }
}

// The lines as a kernel gets them, with all that they point to at one edge of its fence. One sum has no use for what
// the second reads.
static void lines_place(const struct lines_data *d, struct cmac_line *lines, bool pairs, enum edge edge)
{
    for (size_t i = 0; i < d->n_lines; i++)
        lines[i] = (struct cmac_line){
            .x = strip_place(&d->line[i].x, edge),
            .h = strip_place(&d->line[i].h, edge),
            .x_next = pairs ? strip_place(&d->line[i].next, edge) : NULL,
            .still = pairs && d->line[i].still,
            .x_step = d->line[i].x.term_step,
            .x_tile = (size_t)d->line[i].x.tile_step,
            .h_tile = (size_t)d->line[i].h.tile_step,
            .terms = d->line[i].terms,
        };
}

static struct sum lines_sum(bool f64, const struct lines_data *d, bool next, size_t tile, size_t i)
{
    const size_t lanes = block_lanes(f64), re = i / (2 * lanes) * 2 * lanes + i % lanes, im = re + lanes;
    const bool imaginary = i / lanes % 2;
    struct sum sum = {0};
    for (size_t l = 0; l < d->n_lines; l++)
        for (size_t t = 0; t < d->line[l].terms; t++) {
            const void *x = strip_tile(next ? &d->line[l].next : &d->line[l].x, tile, t);
            const void *h = strip_tile(&d->line[l].h, tile, t);
            const double xr = scalar_get(f64, x, re), xm = scalar_get(f64, x, im);
            const double hr = scalar_get(f64, h, re), hm = scalar_get(f64, h, im);
            sum_product(&sum, xr, imaginary ? hm : hr);
            sum_product(&sum, imaginary ? xm : -xm, imaginary ? hr : hm);
        }
    return sum;
}

// y holds tiles first .. end-1. A product passes through the additions of its part and one for both parts.
static void lines_compare(bool f64, const struct lines_data *d, bool next, const void *y)
{
    const size_t reals = tile_reals(f64);
    for (size_t i = 0; i < (d->end - d->first) * reals; i++) {
        const struct sum sum = lines_sum(f64, d, next, d->first + i / reals, i % reals);
        const double actual = scalar_get(f64, y, i);
        if (!agrees(&sum, f64, actual, d->terms + 1) || (!d->terms && actual != 0))
            fail_msg("%zu lines, %zu terms, tile %zu, real %zu%s: %.17g, not %.17g", d->n_lines, d->terms,
                     d->first + i / reals, i % reals, next ? " of y_next" : "", actual, sum_value(&sum));
    }
}

static void *tile_back(void *y, size_t tiles)
{
    return (void *)((uintptr_t)y - tiles * TILE_BYTES);
}

// y holds no more than the tiles to be written, between pages that fault. Sums of both kernels are held to the same
// bound: the contract says nothing of the bits of one beside those of the other.
static void lines_check(const struct kernels *k, struct random *random, bool tame)
{
    struct lines_data d = lines_make(random, k->f64, tame);
    struct cmac_line lines[MAX_LINES];
    const size_t bytes = (d.end - d.first) * TILE_BYTES;
    struct fence fy = fence_open(bytes), fnext = fence_open(bytes);
    for (enum edge edge = 0; edge < N_EDGES; edge++)
        for (int pairs = 0; pairs < 2; pairs++) {
            void *y = fence_place(&fy, NULL, bytes, edge), *next = fence_place(&fnext, NULL, bytes, edge);
            memset(y, ZONE_VALUE, bytes);
            memset(next, ZONE_VALUE, bytes);
            lines_place(&d, lines, pairs, edge);
            if (pairs) k->cmac_pairs(tile_back(y, d.first), tile_back(next, d.first), lines, d.n_lines, d.first, d.end);
            else k->cmac_lines(tile_back(y, d.first), lines, d.n_lines, d.first, d.end);
            lines_compare(k->f64, &d, false, y);
            if (pairs) lines_compare(k->f64, &d, true, next);
            fence_check(&fy, bytes, edge);
            fence_check(&fnext, bytes, edge);
        }
    fence_close(&fy);
    fence_close(&fnext);
    lines_free(&d);
}

static void test_lines(void **state)
{
    const struct subject *s = *state;
    struct random random = random_start(s->name);
    for (int round = 0; round < 200; round++) lines_check(s->kernels, &random, round % 3);
}

// A tile alone has the same bits as among others.
static void test_lines_cuts(void **state)
{
    const struct subject *s = *state;
    const struct kernels *k = s->kernels;
    struct random random = random_start(s->name);
    for (int round = 0; round < 100; round++) {
        struct lines_data d = lines_make(&random, k->f64, true);
        struct cmac_line lines[MAX_LINES];
        char *y[4]; // one sum, the two of pairs; whole and in tiles
        const size_t bytes = d.end * TILE_BYTES;
        for (int i = 0; i < 4; i++) y[i] = guarded_alloc(bytes, 0);
        lines_place(&d, lines, true, EDGE_END);
        for (int pairs = 0; pairs < 2; pairs++) {
            if (pairs) k->cmac_pairs(y[0], y[1], lines, d.n_lines, d.first, d.end);
            else k->cmac_lines(y[0], lines, d.n_lines, d.first, d.end);
            for (size_t tile = d.first; tile < d.end; tile++) {
                if (pairs) k->cmac_pairs(y[2], y[3], lines, d.n_lines, tile, tile + 1);
                else k->cmac_lines(y[2], lines, d.n_lines, tile, tile + 1);
            }
            assert_memory_equal(y[0], y[2], bytes);
            assert_memory_equal(y[1], y[3], bytes);
        }
        for (int i = 0; i < 4; i++) guarded_free(y[i]);
        lines_free(&d);
    }
}

enum { MAX_LOOP = 200 };

static uint64_t magnitude_bits(bool f64, const void *x, size_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)x + i * scalar_size(f64), scalar_size(f64));
    return bits & (f64 ? INT64_MAX : INT32_MAX);
}

// Of numbers the largest by comparison, of others, where two may not compare, the largest bits.
static uint64_t peak_expected(bool f64, const void *x, size_t n)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++) {
        const double a = fabs(scalar_get(f64, x, i)), most = fabs(scalar_get(f64, x, at));
        const bool numbers = isfinite(a) && isfinite(most);
        if (numbers ? a > most : magnitude_bits(f64, x, i) > magnitude_bits(f64, x, at)) at = i;
    }
    return n ? magnitude_bits(f64, x, at) : 0;
}

// Every length and alignment. Reading before or after would find NaN or a page that faults.
static void test_peak(void **state)
{
    const struct subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    const size_t scalar = scalar_size(f64), alignments = SPECTRUM_BLOCK_BYTES / scalar;
    struct fence fx = fence_open((MAX_LOOP + alignments) * scalar);
    for (size_t n = 0; n <= MAX_LOOP; n++)
        for (size_t offset = 0; offset < alignments * N_EDGES; offset++) {
            const size_t before = offset / N_EDGES, bytes = (before + n) * scalar;
            const enum edge edge = offset % N_EDGES;
            char *x = fence_place(&fx, NULL, bytes, edge);
            memset(x, ZONE_VALUE, bytes);
            x += before * scalar;
            fill_random(&random, f64, x, n);
            const size_t n_hostile = n ? random_below(&random, 4) : 0;
            for (size_t k = 0; k < n_hostile; k++)
                scalar_put(f64, x, random_below(&random, n), hostile(&random, f64, random_below(&random, 2)));
            const uint64_t peak = s->kernels->peak(x, n), expected = peak_expected(f64, x, n);
            if (peak != expected)
                fail_msg("%zu samples, %zu past alignment: %#llx, not %#llx", n, before, (unsigned long long)peak,
                         (unsigned long long)expected);
            fence_check(&fx, bytes, edge);
        }
    fence_close(&fx);
}

// Each value alone among zeros of both signs, wherever it is, and above the one before it in the list.
static void test_peak_values(void **state)
{
    const struct subject *s = *state;
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

struct fade {
    size_t n, per_frame;
    double first, slope;
    double x[MAX_LOOP], y[MAX_LOOP];
};

static void fade_make(struct fade *f, struct random *random, bool f64, size_t n, size_t per_frame)
{
    const size_t length = 1 + random_below(random, 3000); // in frames
    f->n = n;
    f->per_frame = per_frame;
    f->first = (double)random_below(random, length);
    f->slope = 1.0 / (double)(length + n);
    fill_random(random, f64, f->x, n);
    fill_random(random, f64, f->y, n);
}

// y + x w - y w. A sample passes through the roundings of the difference, the product and the sum; its weight through
// one in double precision and one to the precision of the samples; and here the weight is rounded once: 6 in all. One
// of them rounds nothing (in double precision the weight is rounded once) or next to nothing, which leaves room for
// their products.
static void fade_compare(bool f64, const struct fade *f, const void *y)
{
    for (size_t i = 0; i < f->n; i++) {
        const double weight = (f->first + (double)(i / f->per_frame)) * f->slope;
        const double from = scalar_get(f64, f->y, i), to = scalar_get(f64, f->x, i);
        struct sum sum = {0};
        sum_product(&sum, from, 1);
        sum_product(&sum, to, weight);
        sum_product(&sum, -from, weight);
        if (!agrees(&sum, f64, scalar_get(f64, y, i), 5)) // and one more
            fail_msg("sample %zu of %zu, weight %.17g: %.17g, not %.17g", i, f->n, weight, scalar_get(f64, y, i),
                     sum_value(&sum));
    }
}

static void test_blend(void **state)
{
    const struct subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    struct fade f;
    struct fence fx = fence_open(sizeof f.x), fy = fence_open(sizeof f.y);
    for (size_t round = 0; round < (MAX_LOOP + 1) * 16; round++) {
        const size_t n = round / 16, bytes = n * scalar_size(f64);
        const enum edge edge = round % N_EDGES;
        fade_make(&f, &random, f64, n, 1 + round / 2 % 2);
        if (n && round % 16 > 4) // in one of both, that differences stay finite
            scalar_put(f64, round % 16 < 11 ? f.x : f.y, random_below(&random, n), hostile(&random, f64, false));
        const void *x = fence_place(&fx, f.x, bytes, edge);
        void *y = fence_place(&fy, f.y, bytes, edge);
        s->kernels->blend(y, x, n, f.per_frame, f.first, f.slope);
        fade_compare(f64, &f, y);
        assert_memory_equal(x, f.x, bytes);
        fence_check(&fx, bytes, edge);
        fence_check(&fy, bytes, edge);
    }
    fence_close(&fx);
    fence_close(&fy);
}

// In pieces of whole frames, each with the first weight of its own, a fade has the same bits as in one call.
static void test_blend_cuts(void **state)
{
    const struct subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    for (int round = 0; round < 2000; round++) {
        struct fade f;
        const size_t per_frame = 1 + random_below(&random, 2), frames = random_below(&random, MAX_LOOP / 2 + 1);
        fade_make(&f, &random, f64, frames * per_frame, per_frame);
        double whole[MAX_LOOP];
        memcpy(whole, f.y, sizeof whole);
        s->kernels->blend(whole, f.x, f.n, per_frame, f.first, f.slope);
        for (size_t at = 0, n; at < frames; at += n) {
            n = 1 + random_below(&random, random_below(&random, 2) ? 5 : frames);
            if (n > frames - at) n = frames - at;
            s->kernels->blend(scalar_at(f64, f.y, at * per_frame), scalar_at(f64, f.x, at * per_frame), n * per_frame,
                              per_frame, f.first + (double)at, f.slope);
        }
        if (f.n) assert_memory_equal(whole, f.y, f.n * scalar_size(f64));
    }
}

// A fade between equal signals leaves them.
static void test_blend_equal(void **state)
{
    const struct subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    for (size_t round = 0; round < 8 * MAX_LOOP; round++) {
        struct fade f;
        fade_make(&f, &random, f64, 1 + round / 8, 1 + round % 2);
        scalar_put(f64, f.x, random_below(&random, f.n), hostile(&random, f64, true));
        memcpy(f.y, f.x, sizeof f.y);
        s->kernels->blend(f.y, f.x, f.n, f.per_frame, f.first, f.slope);
        for (size_t i = 0; i < f.n; i++) assert_true(scalar_get(f64, f.y, i) == scalar_get(f64, f.x, i));
    }
}

static const struct {
    const char *name;
    CMUnitTestFunction run;
} promises[] = {
    {"lines and pairs of lines", test_lines},
    {"lines, same bits", test_lines_cuts},
    {"peak", test_peak},
    {"peak, values", test_peak_values},
    {"blend", test_blend},
    {"blend, cut anywhere", test_blend_cuts},
    {"blend of equals", test_blend_equal},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct subject subjects[2 * MAX_LEVELS];
    static struct CMUnitTest tests[2 * MAX_LEVELS * N_PROMISES];
    unsetenv("PARTITA_CPU"); // all levels run here, whichever the rest of a suite is forced to
    size_t n = 0;
    struct subject *s = subjects;
    for (enum cpu_level level = CPU_C; level <= cpu_detect(); level++)
        for (int f64 = 0; f64 < 2; f64++) {
            const struct kernels *k = kernels_select(level, f64);
            if (strcmp(k->isa, cpu_level_name(level)) != 0) continue;
            s->kernels = k;
            snprintf(s->name, sizeof s->name, "%s-%s", f64 ? "f64" : "f32", k->isa);
            for (size_t p = 0; p < N_PROMISES; p++)
                tests[n++] = named_test(promises[p].run, s, "%s: %s", s->name, promises[p].name);
            s++;
        }
    return run_test_list(tests, n);
}
