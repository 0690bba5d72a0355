// SPDX-License-Identifier: MIT
#include "host.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

// Figures of `partita plan --calibrate` on a 2022 server core; only their ratios matter for a choice. Narrower
// vectors are slower in proportion where arithmetic binds.
void host_default(struct host *ret, enum cpu_level level)
{
    const double scalar[] = {[CPU_C] = 6, [CPU_NEON] = 2.5, [CPU_AVX2] = 1.2, [CPU_AVX512] = 1};
    *ret = (struct host){.level = level, .cache_bytes = 1 << 20};
    for (int f64 = 0; f64 < 2; f64++) {
        const double slow = scalar[level] * (f64 ? 2 : 1);
        struct host_costs *costs = &ret->costs[f64];
        costs->fma = 1.8e-11 * slow;
        costs->fir_call = 2e-8;
        costs->cmac_cached = 1.3e-10 * slow;
        costs->cmac_far = 2.8e-10 * slow;
        costs->copy = 6e-11 * (f64 ? 2 : 1);
        for (int i = 0; i < HOST_FFT_SIZES; i++) {
            const double octaves = i + HOST_FFT_FIRST, far = octaves > 16 ? (octaves - 16) * 0.2 : 0;
            costs->fft[0][i] = (0.25 + 0.04 * octaves + far) * 1e-9 * slow;
            costs->fft[1][i] = (0.4 + 0.09 * octaves + 2 * far) * 1e-9 * slow;
        }
    }
}

double host_fft(const struct host *host, bool f64, bool complex, size_t n)
{
    const double *cost = host->costs[f64].fft[complex];
    const double octave = log2((double)n) - HOST_FFT_FIRST;
    if (octave <= 0) return cost[0] * (double)n;
    const int below = octave < HOST_FFT_SIZES - 2 ? (int)octave : HOST_FFT_SIZES - 2;
    return (cost[below] + (cost[below + 1] - cost[below]) * (octave - below)) * (double)n;
}

static void processor_name(char name[49])
{
    strcpy(name, "processor");
#if defined(__x86_64__)
    unsigned words[12];
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002U + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]))
            return;
    memcpy(name, words, sizeof words);
    name[48] = 0;
#endif
    for (char *c = name; *c; c++)
        if (*c < ' ' || *c > '~') *c = '_';
}

void host_name(char *text, size_t size, enum cpu_level level)
{
    char processor[49];
    processor_name(processor);
    snprintf(text, size, "%s; %ld cores; %s", processor, sysconf(_SC_NPROCESSORS_ONLN), cpu_level_name(level));
}
