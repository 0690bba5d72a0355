// SPDX-License-Identifier: MIT
// Measures the cost model in several short runs on this thread each, all of it in under a second.
// Other programs disturb a shared machine for longer than a run takes, so transforms whose tables
// are soon made are measured twice.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fft/fft.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"
#include "wisdom.h"

// Everything a measured loop may touch.
struct bench {
    const struct kernels *kernels;
    const struct fft *fft;
    char *a, *b, *c, *scratch;
    size_t n;
    enum cost_distance distance;
    size_t sums;
};

typedef void run_fn(const struct bench *bench);

enum { MAX_RUNS = 63, SWEEPS = 2 };
static const double RUNS_SECONDS = 1e-3;

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The time of one run that a share of all runs does not exceed: repeated for RUNS_SECONDS, at least
// three times after one that does not count.
static double time_run(run_fn *run, const struct bench *bench, double share)
{
    double times[MAX_RUNS], spent = 0;
    int n = 0;
    run(bench);
    while (n < 3 || (spent < RUNS_SECONDS && n < MAX_RUNS)) {
        const double start = clock_seconds();
        run(bench);
        times[n] = clock_seconds() - start;
        spent += times[n++];
    }
    qsort(times, (size_t)n, sizeof *times, by_time);
    return times[(int)(share * (n - 1))];
}

// The run that counts: the median where memory decides, which others use too, else the fastest.
static const double BEST = 0, MEDIAN = 0.5;

enum { TAPS = 64, TILE = 1024 };

static void run_fir(const struct bench *bench)
{
    const size_t scalar = bench->kernels->f64 ? 8 : 4;
    for (size_t i = 0; i < 16; i++)
        bench->kernels->fir(bench->a, bench->b + TAPS * scalar, bench->c, bench->n, TAPS, FIR_REAL);
}

static void run_cmac(const struct bench *bench)
{
    bench->kernels->cmac(bench->a, bench->b, bench->n, bench->c, bench->n, 1, bench->n);
}

enum { TERMS = 16 };

// Sums of products along a ring of n blocks, 1, 2 or 4 of them at once.
static void run_products(const struct bench *bench)
{
    const size_t slots = TERMS + bench->sums - 1, tiles = bench->n / TERMS;
    const struct cmac_terms terms = {.slots = TERMS,
                                     .newest = TERMS - 1,
                                     .multiple = 1,
                                     .sums = bench->sums,
                                     .overwrite = {true, true, true, true},
                                     .ahead = bench->distance == COST_NEAR ? 0 : 2 * TERMS};
    const struct cmac_path line = {.x = bench->b,
                                   .h = bench->c,
                                   .count = TERMS,
                                   .x_pitch = bench->distance == COST_MEMORY ? 0 : slots,
                                   .h_pitch = TERMS};
    void *y[CMAC_SUMS];
    for (size_t k = 0; k < CMAC_SUMS; k++) y[k] = bench->a + k * tiles * SPECTRUM_LINE_BYTES;
    bench->kernels->cmac_partitions(y, &terms, &line, 1, 0, tiles);
}

static void run_pairs(const struct bench *bench)
{
    size_t offset[TAPS];
    for (size_t t = 0; t < TAPS; t++) offset[t] = t * TAPS;
    struct conv_operands operands = {.y = bench->a, .x = bench->b, .w = bench->c};
    operands.offset = offset;
    operands.w_term = operands.channels = CONV_CHANNELS;
    operands.y_stride = operands.terms = operands.n = TAPS;
    operands.w_channel = 1;
    for (size_t i = 0; i < TAPS; i++) bench->kernels->conv_pairs(&operands, NULL);
}

static void run_copy(const struct bench *bench)
{
    samples_copy(bench->a, 1, bench->b + 8, 1, bench->n, 4);
}

static void run_fft(const struct bench *bench)
{
    fft_forward(bench->fft, bench->b, bench->a, bench->scratch);
    fft_inverse(bench->fft, bench->a, bench->b, bench->scratch);
}

// The steps that read the samples.
static void run_edge(const struct bench *bench)
{
    fft_forward_steps(bench->fft, bench->b, bench->a, bench->scratch,
                      (struct fft_steps){0, bench->fft->sample_steps});
}

static const struct partita_allocator plain;

// Seconds of `run` for each sample of a transform of at least `least` samples, or 0
// without memory. The samples stay zero: speed does not depend on them.
static double fft_cost(run_fn *run, size_t least, bool f64, bool complex, enum cpu_isa isa)
{
    const size_t n = fft_good_size(least);
    const struct fft_request request = {.n = n, .f64 = f64, .complex = complex, .isa = isa};
    struct fft *fft;
    if (fft_create(&request, &plain, &fft) != PARTITA_OK) return 0;
    const size_t samples = mem_round(n * (f64 ? 8 : 4) * (complex ? 2 : 1));
    const size_t spectrum = mem_round(fft->spectrum_bytes);
    char *memory = mem_allocate(&plain, samples + spectrum + fft->scratch_bytes);
    double cost = 0;
    if (memory) {
        const struct bench bench = {
            .fft = fft, .a = memory, .b = memory + samples, .scratch = memory + samples + spectrum};
        cost = time_run(run, &bench, BEST) / (double)least;
    }
    mem_release(&plain, memory);
    fft_destroy(fft);
    return cost;
}

enum {
    BYTES = 1 << 25,
    FAR = 1 << 22,
    NEAR = 1 << 18
}; // beyond the caches; beyond those of a core; in them

static void measure_products(struct cost_rates *costs, struct bench *bench)
{
    static const size_t bytes[COST_DISTANCES] = {NEAR, FAR, BYTES};
    const size_t scalar = bench->kernels->f64 ? 8 : 4, lanes = SPECTRUM_LANES_BYTES / scalar;
    for (int distance = 0; distance < COST_DISTANCES; distance++)
        for (int i = 0; i < 3; i++) {
            bench->distance = (enum cost_distance)distance;
            bench->sums = (size_t)1 << i;
            bench->n = bytes[distance] / (SPECTRUM_LINE_BYTES);
            const double seconds =
                time_run(run_products, bench, distance == COST_NEAR ? BEST : MEDIAN);
            costs->product[distance][i] = seconds / (double)(bench->sums * bench->n * lanes);
        }
}

static bool measure_kernels(struct cost_rates *costs, bool f64, enum cpu_isa isa)
{
    char *memory = mem_allocate(&plain, 3 * BYTES);
    if (!memory) return false;
    const size_t scalar = f64 ? 8 : 4, lanes = SPECTRUM_LANES_BYTES / scalar;
    struct bench bench = {.kernels = kernels_select(isa, f64),
                          .a = memory,
                          .b = memory + BYTES,
                          .c = memory + 2 * BYTES};
    bench.n = 1;
    costs->work.call = time_run(run_fir, &bench, BEST) / 16;
    bench.n = TILE;
    costs->work.fma = time_run(run_fir, &bench, BEST) / (16.0 * TILE * TAPS);
    costs->work.pair = costs->work.fma;
    if (!f64 && isa == CPU_AVX512 && cpu_sums_pairs())
        costs->work.pair =
            time_run(run_pairs, &bench, BEST) / (CONV_CHANNELS * (double)TAPS * TAPS * TAPS);
    bench.n = 1024;
    costs->cmac_cached = time_run(run_cmac, &bench, BEST) / (double)(bench.n * lanes);
    bench.n = 2 * FAR / (SPECTRUM_LINE_BYTES);
    costs->cmac_far = time_run(run_cmac, &bench, MEDIAN) / (double)(bench.n * lanes);
    measure_products(costs, &bench);
    bench.n = 1 << 15;
    costs->work.copy = time_run(run_copy, &bench, BEST) / (double)bench.n * (f64 ? 2 : 1);
    bench.n = BYTES / 4 - 2;
    costs->work.copy_far = time_run(run_copy, &bench, BEST) / (double)bench.n * (f64 ? 2 : 1);
    mem_release(&plain, memory);
    return true;
}

static bool measure_fetch(struct cost_rates *costs, bool f64, enum cpu_isa isa)
{
    const double near = fft_cost(run_edge, (size_t)1 << 13, f64, false, isa);
    const double far = fft_cost(run_edge, (size_t)1 << 18, f64, false, isa);
    costs->work.fetch = far > near ? far - near : near / 8; // a saved model holds positive costs
    return near > 0 && far > 0;
}

static bool measure_transforms(struct cost_rates *costs, bool f64, enum cpu_isa isa)
{
    static const int sizes[SWEEPS] = {COST_FFT_SIZES, COST_FFT_SIZES - 6};
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int i = 0; i < 2 * sizes[sweep]; i++) {
            const bool complex = i >= sizes[sweep];
            const int size = i % sizes[sweep];
            double *least = &costs->fft[complex][size];
            const double cost =
                fft_cost(run_fft, (size_t)1 << (size + COST_FFT_FIRST), f64, complex, isa);
            if (cost <= 0) return false;
            *least = sweep == 0 ? cost : fmin(*least, cost);
        }
    return true;
}

enum partita_status cost_model_calibrate(struct cost_model *ret, enum cpu_isa isa)
{
    struct cost_model model;
    cost_model_default(&model, isa);
    for (int f64 = 0; f64 < 2; f64++) {
        struct cost_rates *costs = &model.costs[f64];
        if (!measure_kernels(costs, f64, isa) || !measure_fetch(costs, f64, isa) ||
            !measure_transforms(costs, f64, isa))
            return PARTITA_ERR_NOMEM;
        work_derive(&costs->work, isa);
    }
    *ret = model;
    return PARTITA_OK;
}
