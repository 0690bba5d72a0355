// SPDX-License-Identifier: MIT
// Chooses the inner loops of an instruction set, as kernels/kernels.c does.
#include "select_kernels.h"

extern const struct select_kernels k_select_f32_c, k_select_f64_c;
extern const struct select_kernels k_select_f32_neon, k_select_f64_neon;
extern const struct select_kernels k_select_f32_avx2, k_select_f64_avx2;
extern const struct select_kernels k_select_f32_avx512, k_select_f64_avx512;

const struct select_kernels *select_kernels_of(enum cpu_isa isa, bool f64)
{
#ifdef HAVE_AVX512
    if (isa >= CPU_AVX512) return f64 ? &k_select_f64_avx512 : &k_select_f32_avx512;
#endif
#ifdef HAVE_AVX2
    if (isa >= CPU_AVX2) return f64 ? &k_select_f64_avx2 : &k_select_f32_avx2;
#endif
#ifdef HAVE_NEON
    if (isa >= CPU_NEON) return f64 ? &k_select_f64_neon : &k_select_f32_neon;
#endif
    (void)isa;
    return f64 ? &k_select_f64_c : &k_select_f32_c;
}
