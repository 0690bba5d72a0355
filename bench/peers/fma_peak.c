// SPDX-License-Identifier: MIT
// The peak rate of the machine as a contender: the time that the multiply-adds of a direct filter
// take when nothing else is done, measured with independent chains of fused multiply-adds in the
// widest vectors of this processor that PARTITA_CPU allows. An output counts as one multiply-add a
// tap for real signals, two for real taps on complex signals, four for complex taps.
#include "peers/peers.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The inner loops are unrolled by pragma: the chains must stay in registers at any optimisation
// level.
enum { CHAINS = 16, ROUNDS = 20000 };

typedef void fma_loop_fn(void);

struct peak {
    fma_loop_fn *loop;
    double fmas; // scalar multiply-adds of one run of the loop
};

// Keeps the compiler from folding the chains.
static volatile float sink_f32;
static volatile double sink_f64;

#if defined(__x86_64__)

__attribute__((target("avx512f"))) static void fma_loop_f32_avx512(void)
{
    __m512 sum[CHAINS], factor = _mm512_set1_ps(0.999f);
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_set1_ps((float)i);
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_fmadd_ps(sum[i], factor, factor);
    for (int i = 0; i < CHAINS; i++) sink_f32 = _mm512_cvtss_f32(sum[i]);
}

__attribute__((target("avx512f"))) static void fma_loop_f64_avx512(void)
{
    __m512d sum[CHAINS], factor = _mm512_set1_pd(0.999);
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_set1_pd(i);
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_fmadd_pd(sum[i], factor, factor);
    for (int i = 0; i < CHAINS; i++) sink_f64 = _mm512_cvtsd_f64(sum[i]);
}

enum { CHAINS_AVX2 = 12 }; // of 16 registers

__attribute__((target("avx2,fma"))) static void fma_loop_f32_avx2(void)
{
    __m256 sum[CHAINS_AVX2], factor = _mm256_set1_ps(0.999f);
    for (int i = 0; i < CHAINS_AVX2; i++) sum[i] = _mm256_set1_ps((float)i);
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS_AVX2; i++) sum[i] = _mm256_fmadd_ps(sum[i], factor, factor);
    for (int i = 0; i < CHAINS_AVX2; i++) sink_f32 = _mm256_cvtss_f32(sum[i]);
}

__attribute__((target("avx2,fma"))) static void fma_loop_f64_avx2(void)
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
    const char *limit = getenv("PARTITA_CPU");
    const bool avx2_at_most = limit != NULL && strcmp(limit, "avx2") == 0;
    if (!avx2_at_most && __builtin_cpu_supports("avx512f"))
        return (struct peak){f64 ? fma_loop_f64_avx512 : fma_loop_f32_avx512,
                             (f64 ? 8.0 : 16.0) * CHAINS * ROUNDS};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct peak){f64 ? fma_loop_f64_avx2 : fma_loop_f32_avx2,
                             (f64 ? 4.0 : 8.0) * CHAINS_AVX2 * ROUNDS};
    return (struct peak){NULL, 0};
}

#else

typedef float wide_f32 __attribute__((vector_size(16)));
typedef double wide_f64 __attribute__((vector_size(16)));

// The compiler makes fused multiply-adds of these loops on machines whose baseline has them
// (aarch64).
__attribute__((optimize("fp-contract=fast"))) static void fma_loop_f32(void)
{
    wide_f32 sum[CHAINS] = {{0}}, factor = {0.999f, 0.999f, 0.999f, 0.999f};
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * factor + factor;
    for (int i = 0; i < CHAINS; i++) sink_f32 = sum[i][0];
}

__attribute__((optimize("fp-contract=fast"))) static void fma_loop_f64(void)
{
    wide_f64 sum[CHAINS] = {{0}}, factor = {0.999, 0.999};
    for (int k = 0; k < ROUNDS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * factor + factor;
    for (int i = 0; i < CHAINS; i++) sink_f64 = sum[i][0];
}

static struct peak peak_select(bool f64)
{
    return (struct peak){f64 ? fma_loop_f64 : fma_loop_f32, (f64 ? 2.0 : 4.0) * CHAINS * ROUNDS};
}

#endif

static double peak_pass(void *state, const struct workload *w, double *calls)
{
    const struct peak *peak = state;
    double paths = (double)(w->in_channels / w->groups * w->out_channels);
    double outputs = (double)(w->n_frames / w->stride);
    double weight = type_is_complex(w->signal) ? 2 : 1;
    if (type_is_complex(w->taps)) weight = 4;
    (void)calls;
    double start = bench_now();
    peak->loop();
    return (bench_now() - start) / peak->fmas * weight * paths * outputs * (double)w->n_taps;
}

bool peer_fma_peak(struct contender *contender, const struct workload *w)
{
    struct peak *peak = bench_allocate(sizeof *peak);
    *peak = peak_select(type_is_f64(w->signal));
    contender->state = peak;
    contender->pass = peak_pass;
    contender->close = free;
    if (peak->loop != NULL) return true;
    snprintf(contender->reason, sizeof contender->reason,
             "this processor has no fused multiply-add");
    free(peak);
    return false;
}
