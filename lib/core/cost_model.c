// SPDX-License-Identifier: MIT
#include "cost_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

// Figures of `partita plan --calibrate` on a 2022 server core with AVX-512, f32, in ns; only their
// ratios matter for a choice. Twice as long scalars cost twice as much, narrower vectors more in
// proportion.
static const double fft_real[COST_FFT_SIZES] = {4.4,  3.6,  2.3,  0.66, 0.63, 0.64, 0.68, 0.71,
                                                0.79, 0.93, 0.96, 1.01, 1.08, 1.11, 1.15, 1.21};
static const double fft_complex[COST_FFT_SIZES] = {4.1,  1.9,  1.6,  1.35, 1.35, 1.37, 1.46, 1.65,
                                                   1.74, 1.81, 1.95, 2.05, 2.15, 2.25, 2.35, 2.5};

static const double product[COST_DISTANCES][3] = {
    {0.14, 0.08, 0.07}, {0.17, 0.1, 0.07}, {0.4, 0.2, 0.1}};

// sysconf adds up the caches of a whole package, but cores share only one of them. Read once a
// process: a plan must not depend on whether a file can be opened now.
static size_t last_cache(void)
{
    static _Atomic size_t known;
    if (known) return known;
    size_t kib = 0, bytes = (size_t)1 << 25;
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (sysconf(_SC_LEVEL3_CACHE_SIZE) > 0) bytes = (size_t)sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (file) {
        if (fscanf(file, "%zuK", &kib) != 1) kib = 0;
        fclose(file);
    }
    if (kib > 0 && kib < SIZE_MAX >> 10) bytes = kib << 10;
    known = bytes;
    return bytes;
}

// Relative to measured rates: the kernels of layers have the same vectors, caches and memory. The
// figures are those of the layers of docs/bench with AVX-512 and AVX2.
void work_derive(struct work *rates, enum cpu_isa isa)
{
    rates->row = 128 * rates->copy;
    rates->gather = 20 * rates->copy;
    rates->pack = 8 * rates->copy;
    rates->product = (isa == CPU_AVX2 ? 1.8 : 1) * rates->fma;
    rates->one_load = 1.4 * rates->fma;
    rates->two_loads = 3 * rates->fma;
    rates->reduction = 0.05 * rates->call;
    rates->sum = 3 * rates->copy;
    rates->task = 0.2 * rates->call;
    rates->block = 6 * rates->call;
    rates->lanes = 10 * rates->copy;
    rates->operation = 0.8 * rates->fma;
    rates->minimal = (isa == CPU_AVX2 ? 0.5 : 0.35) * rates->fma;
    rates->minimal_copy = (isa == CPU_AVX2 ? 0.5 : 0.35) * rates->copy;
}

void work_add(struct work *to, const struct work *more, double times)
{
    double *sum = (double *)to;
    const double *counts = (const double *)more;
    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++) sum[i] += times * counts[i];
}

void work_move(struct work *to, const struct cost_model *model, double scalars, double bytes)
{
    const double near = (double)model->cache_bytes;
    // A last cache of hundreds of MiB is several, of other cores.
    const double shared = 0.6 * fmin((double)model->shared_bytes, 32 * near);
    double far = 0; // share of the distance from a core's cache to memory; measured
    if (bytes > shared) far = 1;
    else if (bytes > near) far = 0.05 + 0.35 * (bytes - near) / (shared - near);
    to->copy += (1 - far) * scalars;
    to->copy_far += far * scalars;
}

double work_seconds(const struct work *work, const struct cost_rates *costs)
{
    const double *counts = (const double *)work, *rates = (const double *)&costs->work;
    enum { KINDS = sizeof *work / sizeof *counts };
    double even = 0, odd = 0; // two sums wait less for one another
    for (size_t i = 0; i + 1 < KINDS; i += 2) {
        even += counts[i] * rates[i];
        odd += counts[i + 1] * rates[i + 1];
    }
    return even + odd + (KINDS % 2 ? counts[KINDS - 1] * rates[KINDS - 1] : 0);
}

void cost_model_default(struct cost_model *ret, enum cpu_isa isa)
{
    const double narrow[] = {[CPU_C] = 6, [CPU_NEON] = 2.5, [CPU_AVX2] = 1.2, [CPU_AVX512] = 1};
    *ret = (struct cost_model){.isa = isa, .cache_bytes = 1 << 20, .shared_bytes = last_cache()};
    ret->pairs = isa == CPU_AVX512 && cpu_sums_pairs();
    for (int f64 = 0; f64 < 2; f64++) {
        const double wide = 1e-9 * (f64 ? 2 : 1);
        const double slow = narrow[isa] * wide;
        struct cost_rates *costs = &ret->costs[f64];
        costs->work = (struct work){.fma = 0.017 * slow,
                                    .pair = 0.017 * slow,
                                    .call = 50e-9,
                                    .copy = 0.073 * wide,
                                    .copy_far = 0.4 * wide,
                                    .fetch = 0.12 * wide};
        work_derive(&costs->work, isa);
        costs->cmac_cached = 0.2 * slow;
        costs->cmac_far = 0.5 * wide;
        for (int i = 0; i < COST_DISTANCES * 3; i++)
            costs->product[i / 3][i % 3] =
                fmax(product[i / 3][i % 3] * wide, product[COST_NEAR][2] * slow);
        for (int i = 0; i < COST_FFT_SIZES; i++) {
            costs->fft[0][i] = fft_real[i] * slow;
            costs->fft[1][i] = fft_complex[i] * slow;
        }
    }
}

// log2 of a size. Those of transforms are 1, 3 or 5 times a power of two, and are asked for often.
static double octaves_of(size_t n)
{
    static const double odd[] = {[1] = 0, [3] = 1.5849625007211562, [5] = 2.321928094887362};
    const int twos = n ? __builtin_ctzll(n) : 0;
    const size_t rest = n >> twos;
    return rest == 1 || rest == 3 || rest == 5 ? twos + odd[rest] : log2((double)n);
}

double cost_model_fft(const struct cost_model *model, bool f64, bool complex, size_t n)
{
    const double *cost = model->costs[f64].fft[complex];
    const double octave = octaves_of(n) - COST_FFT_FIRST;
    if (octave <= 0) return cost[0] * (double)n;
    // Three octaves are a pass over the samples each way, beyond the measured sizes from memory and
    // back.
    const double beyond = octave - (COST_FFT_SIZES - 1);
    const int scalars = complex ? 2 : 1;
    const double passes =
        beyond > 0 ? 2 * scalars * model->costs[f64].work.copy_far * beyond / 3 : 0;
    const int below = octave < COST_FFT_SIZES - 2 ? (int)octave : COST_FFT_SIZES - 2;
    return (cost[below] + (cost[below + 1] - cost[below]) * (octave - below) + passes) * (double)n;
}

static void processor_name(char name[49])
{
    strcpy(name, "processor");
#if defined(__x86_64__)
    unsigned words[12];
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002U + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                         &words[4 * i + 3]))
            return;
    memcpy(name, words, sizeof words);
    name[48] = 0;
#endif
    for (char *c = name; *c; c++)
        if (*c < ' ' || *c > '~') *c = '_';
}

void cost_model_machine(char *text, size_t size, enum cpu_isa isa)
{
    char processor[49];
    processor_name(processor);
    snprintf(text, size, "%s; %ld cores; %s", processor, sysconf(_SC_NPROCESSORS_ONLN),
             cpu_isa_name(isa));
}
