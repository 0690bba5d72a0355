// SPDX-License-Identifier: MIT
// The limit of the machine as a contender: the time the multiply-adds of a direct filter take when nothing else is
// done, measured with independent chains of fused multiply-adds in the widest vectors this processor has. The filter
// is charged taps multiply-adds an output for real signals, twice that for real taps on complex signals, four times
// for complex taps.
#include "runner/runner.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The inner loops are unrolled by pragma: the chains must live in registers at any optimisation level.
enum { CHAINS = 16, ROUNDS = 20000 };

typedef void burn_fn(void);

struct peak {
    burn_fn *burn;
    double fmas; // scalar multiply-adds of one burn
};

// Keeps the compiler from folding the chains.
static volatile float sink_f32;
static volatile double sink_f64;

#if defined(__x86_64__)

__attribute__((target("avx512f"))) static void burn_f32_avx512(void)
{
    __m512 sum[CHAINS], factor = _mm512_set1_ps(0.999f);
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_set1_ps((float)i);
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_fmadd_ps(sum[i], factor, factor);
    for (int i = 0; i < CHAINS; i++) sink_f32 = _mm512_cvtss_f32(sum[i]);
}

__attribute__((target("avx512f"))) static void burn_f64_avx512(void)
{
    __m512d sum[CHAINS], factor = _mm512_set1_pd(0.999);
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_set1_pd(i);
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_fmadd_pd(sum[i], factor, factor);
    for (int i = 0; i < CHAINS; i++) sink_f64 = _mm512_cvtsd_f64(sum[i]);
}

enum { CHAINS_AVX2 = 12 }; // of 16 registers

__attribute__((target("avx2,fma"))) static void burn_f32_avx2(void)
{
    __m256 sum[CHAINS_AVX2], factor = _mm256_set1_ps(0.999f);
    for (int i = 0; i < CHAINS_AVX2; i++) sum[i] = _mm256_set1_ps((float)i);
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS_AVX2; i++) sum[i] = _mm256_fmadd_ps(sum[i], factor, factor);
    for (int i = 0; i < CHAINS_AVX2; i++) sink_f32 = _mm256_cvtss_f32(sum[i]);
}

__attribute__((target("avx2,fma"))) static void burn_f64_avx2(void)
{
    __m256d sum[CHAINS_AVX2], factor = _mm256_set1_pd(0.999);
    for (int i = 0; i < CHAINS_AVX2; i++) sum[i] = _mm256_set1_pd(i);
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS_AVX2; i++) sum[i] = _mm256_fmadd_pd(sum[i], factor, factor);
    for (int i = 0; i < CHAINS_AVX2; i++) sink_f64 = _mm256_cvtsd_f64(sum[i]);
}

static struct peak peak_select(bool f64)
{
    if (__builtin_cpu_supports("avx512f"))
        return (struct peak){f64 ? burn_f64_avx512 : burn_f32_avx512, (f64 ? 8.0 : 16.0) * CHAINS * ROUNDS};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct peak){f64 ? burn_f64_avx2 : burn_f32_avx2, (f64 ? 4.0 : 8.0) * CHAINS_AVX2 * ROUNDS};
    return (struct peak){NULL, 0};
}

#else

typedef float wide_f32 __attribute__((vector_size(16)));
typedef double wide_f64 __attribute__((vector_size(16)));

// On machines whose baseline has fused multiply-adds (aarch64) these are what the compiler makes of the loop.
__attribute__((optimize("fp-contract=fast"))) static void burn_f32(void)
{
    wide_f32 sum[CHAINS] = {{0}}, factor = {0.999f, 0.999f, 0.999f, 0.999f};
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * factor + factor;
    for (int i = 0; i < CHAINS; i++) sink_f32 = sum[i][0];
}

__attribute__((optimize("fp-contract=fast"))) static void burn_f64(void)
{
    wide_f64 sum[CHAINS] = {{0}}, factor = {0.999, 0.999};
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * factor + factor;
    for (int i = 0; i < CHAINS; i++) sink_f64 = sum[i][0];
}

static struct peak peak_select(bool f64)
{
    return (struct peak){f64 ? burn_f64 : burn_f32, (f64 ? 2.0 : 4.0) * CHAINS * ROUNDS};
}

#endif

static double peak_pass(void *state, const struct workload *w, double *calls)
{
    const struct peak *peak = state;
    double cells = (double)(w->in_channels / w->groups * w->out_channels), outputs = (double)(w->n_frames / w->stride);
    double weight = type_is_complex(w->taps) ? 4 : type_is_complex(w->signal) ? 2 : 1;
    (void)calls;
    double start = bench_now();
    peak->burn();
    return (bench_now() - start) / peak->fmas * weight * cells * outputs * (double)w->n_taps;
}

bool peer_fma_peak(struct contender *contender, const struct workload *w)
{
    struct peak *peak = bench_allocate(sizeof *peak);
    *peak = peak_select(type_is_f64(w->signal));
    contender->state = peak;
    contender->pass = peak_pass;
    contender->close = free;
    if (peak->burn != NULL) return true;
    snprintf(contender->reason, sizeof contender->reason, "this processor has no fused multiply-add");
    free(peak);
    return false;
}
