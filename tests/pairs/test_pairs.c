// SPDX-License-Identifier: MIT
// Correlations of pairs of signals against direct sums in long double, of random signals, lags,
// windows and lists, and their bits.
#include "support/test.h"

#include <math.h>
#include <stdio.h>

enum { MAX_SIGNALS = 11, MAX_FRAMES = 2500, MAX_PAIRS = 100, GROUP = 16 };

// Sums of pairs and their signals, [signals][pitch].
struct world {
    struct partita_pairs_options options;
    size_t list[MAX_PAIRS][2];
    size_t n, pitch, lags, bytes;
    char *x, *y;
    struct partita_pairs *pairs;
    struct log_lines lines;
};

static void random_list(struct world *w, struct random *random)
{
    size_t *pair = w->list[0], n = 0;
    for (size_t i = 0; i < w->options.signals; i++)
        for (size_t j = i; j < w->options.signals; j++) *pair++ = i, *pair++ = j, n++;
    w->options.pairs = w->list[0];
    w->options.n_pairs = n;
    if (random_below(random, 2)) return;
    w->options.n_pairs = random_below(random, MAX_PAIRS + 1);
    for (size_t p = 0; p < w->options.n_pairs; p++) {
        const bool neighbour = p && random_below(random, 3);
        const size_t first = random_below(random, w->options.signals);
        w->list[p][0] = neighbour ? w->list[p - 1][0] : first;
        w->list[p][1] = neighbour ? (w->list[p - 1][1] + 1) % w->options.signals
                                  : random_below(random, w->options.signals);
    }
}

static void random_world(struct world *w, struct random *random, enum partita_type type)
{
    memset(w, 0, sizeof *w);
    w->bytes = partita_type_size(type);
    w->options.type = type;
    w->options.signals = 1 + random_below(random, MAX_SIGNALS);
    w->options.max_lag = random_below(random, 4) ? random_below(random, 90) : 0;
    w->options.threads = (int)random_below(random, 4);
    w->options.log = log_into(&w->lines);
    w->n = random_below(random, random_below(random, 3) ? MAX_FRAMES : 100);
    if (random_below(random, 3)) w->options.block = 1 + random_below(random, w->n / 2 + 2);
    w->pitch = w->n + random_below(random, 3);
    w->lags = 2 * w->options.max_lag + 1;
    random_list(w, random);
    w->x = guarded_alloc((w->options.signals * w->pitch + 1) * w->bytes, w->bytes);
    w->y = guarded_alloc((w->options.n_pairs * w->lags + 1) * w->bytes, 3 * w->bytes);
    random_samples(random, type, w->x, w->options.signals * w->pitch);
}

static void open_pairs(struct world *w)
{
    if (partita_pairs_create(&w->options, &w->pairs)) fail_msg("%s", w->lines.text);
}

static void drop_world(struct world *w)
{
    partita_pairs_destroy(w->pairs);
    guarded_free(w->x);
    guarded_free(w->y);
}

// Sum of the products of samples of a window.
static long double direct(const struct world *w, const size_t pair[2], ptrdiff_t lag)
{
    const char *x = w->x + pair[0] * w->pitch * w->bytes, *y = w->x + pair[1] * w->pitch * w->bytes;
    long double sum = 0;
    for (size_t t = 0; t < w->n; t++) {
        const ptrdiff_t later = (ptrdiff_t)t + lag;
        if (later < 0 || later >= (ptrdiff_t)w->n) continue;
        sum += (long double)creal(reference_sample(w->options.type, x, t)) *
               (long double)creal(reference_sample(w->options.type, y, (size_t)later));
    }
    return sum;
}

// The error of pair p of y = scale * the sums of `windows` times the same window. Errors are those
// of transforms, which a block spreads evenly over its lags, and those of sums of GROUP blocks and
// of their groups. Products of uniform samples have a variance of 1/9.
// At least, without options.block.
static size_t block_of(const struct world *w)
{
    return w->options.block ? w->options.block : 4 * w->options.max_lag + 512;
}

static void check_pair(const struct world *w, size_t p, double scale, size_t windows)
{
    double complex expected[2 * MAX_PAIRS];
    const size_t block = block_of(w), blocks = windows * (w->n / block + 1);
    for (size_t l = 0; l < w->lags; l++)
        expected[l] = (double)(scale * (double)windows *
                               direct(w, w->list[p], (ptrdiff_t)l - (ptrdiff_t)(w->lags / 2)));
    const double gate = gate_transform(w->options.type, block + w->lags) +
                        gate_direct(w->options.type, GROUP + blocks / GROUP + 1);
    const double typical = scale * (double)windows * sqrt((double)w->n) / 3;
    const double error =
        error_against(w->options.type, w->y + p * w->lags * w->bytes, expected, w->lags, typical);
    if (!(error <= gate_for_outputs(gate, w->lags)))
        fail_msg("n %zu, lags %zu, block %zu, pair %zu of %zu, (%zu, %zu): error %.3g above %.3g",
                 w->n, w->lags, block, p, w->options.n_pairs, w->list[p][0], w->list[p][1], error,
                 gate);
}

static void results_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < 24; i++) {
        char name[32];
        snprintf(name, sizeof name, "pairs %zu", i);
        struct random random = random_start(name);
        struct world w;
        random_world(&w, &random, i % 2 ? PARTITA_F64 : PARTITA_F32);
        open_pairs(&w);
        // The second reading shows that the first one has cleared the sums.
        for (size_t windows = 1; windows <= 3; windows += 2) {
            const double scale = windows == 1 ? 1 : 0.3;
            for (size_t k = 0; k < windows; k++)
                assert_ok(partita_pairs_add(w.pairs, w.x, w.pitch, 0, w.n, 0));
            assert_ok(partita_pairs_read(w.pairs, w.y, scale));
            for (size_t k = 0; k < 3 && w.options.n_pairs; k++)
                check_pair(&w, random_below(&random, w.options.n_pairs), scale, windows);
        }
        drop_world(&w);
    }
}

// Adds a window in parts whose lengths are multiples of the block.
static void add_parts(struct world *w, struct random *random)
{
    const size_t block = w->options.block, reach = w->options.max_lag;
    for (size_t at = 0, n; at < w->n; at += n) {
        n = block * (1 + random_below(random, 3));
        if (n > w->n - at) n = w->n - at;
        const size_t before = at < reach ? at : reach, left = w->n - at - n;
        assert_ok(partita_pairs_add(w->pairs, w->x + at * w->bytes, w->pitch, before, n,
                                    left < reach ? left : reach));
    }
}

// The bits of a pair in parts, with other threads, and alone.
static void bits_depend_on_the_pair_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < 24; i++) {
        char name[32];
        snprintf(name, sizeof name, "bits %zu", i);
        struct random random = random_start(name);
        struct world w;
        do {
            random_world(&w, &random, i % 2 ? PARTITA_F64 : PARTITA_F32);
            if (w.options.n_pairs && w.options.block) break;
            guarded_free(w.x), guarded_free(w.y);
        } while (true);
        const size_t row = w.lags * w.bytes, p = random_below(&random, w.options.n_pairs);
        char *others = malloc(w.options.n_pairs * row);
        open_pairs(&w);
        assert_ok(partita_pairs_add(w.pairs, w.x, w.pitch, 0, w.n, 0));
        assert_ok(partita_pairs_read(w.pairs, w.y, 1));
        add_parts(&w, &random);
        assert_ok(partita_pairs_read(w.pairs, others, 1));
        assert_memory_equal(w.y, others, w.options.n_pairs * row);
        partita_pairs_destroy(w.pairs);

        w.options.threads = 1 + w.options.threads % 3;
        open_pairs(&w);
        add_parts(&w, &random);
        assert_ok(partita_pairs_read(w.pairs, others, 1));
        assert_memory_equal(w.y, others, w.options.n_pairs * row);
        partita_pairs_destroy(w.pairs);

        w.options.pairs = w.list[p];
        w.options.n_pairs = 1;
        open_pairs(&w);
        add_parts(&w, &random);
        assert_ok(partita_pairs_read(w.pairs, others, 1));
        assert_memory_equal(w.y + p * row, others, row);
        free(others);
        drop_world(&w);
    }
}

// Samples that are not finite reach the pairs of their signal, and none after they are read.
static void nonfinite_samples_stay_with_their_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < 16; i++) {
        char name[32];
        snprintf(name, sizeof name, "nonfinite %zu", i);
        struct random random = random_start(name);
        const enum partita_type type = i % 2 ? PARTITA_F64 : PARTITA_F32;
        struct world w;
        random_world(&w, &random, type);
        const size_t bytes = w.options.n_pairs * w.lags * w.bytes;
        char *finite = malloc(bytes + 1);
        open_pairs(&w);
        assert_ok(partita_pairs_add(w.pairs, w.x, w.pitch, 0, w.n, 0));
        assert_ok(partita_pairs_read(w.pairs, finite, 1));
        const size_t signal = random_below(&random, w.options.signals);
        char *x = malloc((w.options.signals * w.pitch + 1) * w.bytes);
        memcpy(x, w.x, w.options.signals * w.pitch * w.bytes);
        if (w.n)
            sample_put(type, x, signal * w.pitch + random_below(&random, w.n),
                       i % 3 ? (double)NAN : (double)INFINITY);
        assert_ok(partita_pairs_add(w.pairs, x, w.pitch, 0, w.n, 0));
        assert_ok(partita_pairs_read(w.pairs, w.y, 1));
        for (size_t p = 0; p < w.options.n_pairs; p++) {
            const char *y = w.y + p * w.lags * w.bytes;
            if (w.n && (w.list[p][0] == signal || w.list[p][1] == signal))
                for (size_t l = 0; l < w.lags; l++)
                    assert_true(!isfinite(creal(reference_sample(type, y, l))));
            else assert_memory_equal(y, finite + p * w.lags * w.bytes, w.lags * w.bytes);
        }
        assert_ok(partita_pairs_add(w.pairs, w.x, w.pitch, 0, w.n, 0));
        assert_ok(partita_pairs_read(w.pairs, w.y, 1));
        assert_memory_equal(w.y, finite, bytes);
        free(finite);
        free(x);
        drop_world(&w);
    }
}

// 2^18 samples, of which the first and the third signal have a mean; nothing but zeros is zero.
static void long_and_constant_signals(void **state)
{
    enum { N = 1 << 18, LAG = 2, SIGNALS = 4, LAGS = 2 * LAG + 1, PAIRS = 10, BLOCK = 64 };
    static float x[SIGNALS][N], y[PAIRS][LAGS];
    static const double mean[SIGNALS] = {1, 0, -0.9, 0}, noise[SIGNALS] = {0.1, 1, 0, 0};
    struct random random = random_start("long");
    size_t list[PAIRS][2], n = 0;
    for (size_t i = 0; i < SIGNALS; i++)
        for (size_t j = i; j < SIGNALS; j++, n++) list[n][0] = i, list[n][1] = j;
    const struct partita_pairs_options options = {.signals = SIGNALS,
                                                  .max_lag = LAG,
                                                  .pairs = list[0],
                                                  .n_pairs = PAIRS,
                                                  .block = BLOCK,
                                                  .threads = 2};
    struct partita_pairs *pairs;
    (void)state;
    random_samples(&random, PARTITA_F32, x, SIGNALS * N);
    for (size_t i = 0; i < SIGNALS; i++)
        for (size_t t = 0; t < N; t++) x[i][t] = (float)(mean[i] + noise[i] * (double)x[i][t]);
    assert_ok(partita_pairs_create(&options, &pairs));
    const double blocks = N / BLOCK;
    assert_ok(partita_pairs_add(pairs, x, N, 0, N, 0));
    assert_ok(partita_pairs_read(pairs, y, 1));
    for (size_t i = 0, p = 0; i < SIGNALS; i++)
        for (size_t j = i; j < SIGNALS; j++, p++) {
            long double norms[2] = {0, 0};
            for (size_t t = 0; t < N; t++) {
                norms[0] += (long double)x[i][t] * (long double)x[i][t];
                norms[1] += (long double)x[j][t] * (long double)x[j][t];
            }
            // The bound of partita/pairs.h: sums of blocks at its worst, that is to say linear.
            const double u = 0x1p-24,
                         bound = u * (GROUP + blocks / GROUP) + gate_transform(PARTITA_F32, 512);
            for (int l = -LAG; l <= LAG; l++) {
                long double sum = 0;
                for (int t = l < 0 ? -l : 0; t < N && t + l < N; t++)
                    sum += (long double)x[i][t] * (long double)x[j][t + l];
                const double error = fabs((double)(sum - (long double)y[p][l + LAG]));
                assert_true(error <= bound * sqrt((double)(norms[0] * norms[1])));
            }
        }
    partita_pairs_destroy(pairs);
}

static void *no_memory(void *user, size_t bytes)
{
    (void)user, (void)bytes;
    return NULL;
}

static void no_release(void *user, void *memory)
{
    (void)user, (void)memory;
}

static void refusals_name_the_field(void **state)
{
    static const size_t list[] = {0, 1, 2, 3};
    static const struct {
        struct partita_pairs_options options;
        const char *line;
    } cases[] = {
        {{.max_lag = 3}, "signals = 0: must be from 1 to 1048576"},
        {{.signals = 2, .type = PARTITA_CF32}, "type = 3: must be f32 or f64"},
        {{.signals = 2, .max_lag = (1 << 24) + 1},
         "max_lag = 16777217, block = 0: must be at most 16777216"},
        {{.signals = 2, .n_pairs = 1}, "pairs is NULL"},
        {{.signals = 2, .block = (1 << 24) + 1}, "block = 16777217: must be at most 16777216"},
        {{.signals = 2, .threads = -1}, "threads = -1: 0 or more"},
        {{.signals = 2, .allocator.allocate = no_memory}, "allocator: both or none"},
        {{.signals = 3, .pairs = list, .n_pairs = 2}, "pairs[1][1] = 3: must be below signals = 3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct log_lines lines = {.n_lines = 0};
        struct partita_pairs_options options = cases[i].options;
        struct partita_pairs *pairs;
        options.log = log_into(&lines);
        assert_int_equal(partita_pairs_create(&options, &pairs), PARTITA_ERR_ARG);
        assert_int_equal(lines.n_lines, 1);
        if (!strstr(lines.text, cases[i].line)) fail_msg("%s", lines.text);
    }
    // Memory that the sanitizer of addresses would refuse by ending the program.
    const struct partita_pairs_options large = {
        .signals = 1 << 20, .max_lag = 1 << 24, .allocator = {no_memory, no_release, NULL}};
    struct partita_pairs *pairs;
    assert_int_equal(partita_pairs_create(&large, &pairs), PARTITA_ERR_NOMEM);
    partita_pairs_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(bits_depend_on_the_pair_alone),
        cmocka_unit_test(nonfinite_samples_stay_with_their_pairs),
        cmocka_unit_test(long_and_constant_signals),
        cmocka_unit_test(refusals_name_the_field),
    };
    return run_all(tests);
}
