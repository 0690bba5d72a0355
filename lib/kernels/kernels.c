// SPDX-License-Identifier: MIT
// Chooses the table of an instruction set. Which tables exist is the build's choice (HAVE_...),
// which one runs is the caller's.
#include "kernels.h"

#include <assert.h>

extern const struct kernels k_table_f32_c, k_table_f64_c;
extern const struct kernels k_table_f32_neon, k_table_f64_neon;
extern const struct kernels k_table_f32_avx2, k_table_f64_avx2;
extern const struct kernels k_table_f32_avx512, k_table_f64_avx512;

const struct kernels *kernels_select(enum cpu_isa isa, bool f64)
{
#ifdef HAVE_AVX512
    if (isa >= CPU_AVX512) return f64 ? &k_table_f64_avx512 : &k_table_f32_avx512;
#endif
#ifdef HAVE_AVX2
    if (isa >= CPU_AVX2) return f64 ? &k_table_f64_avx2 : &k_table_f32_avx2;
#endif
#ifdef HAVE_NEON
    if (isa >= CPU_NEON) return f64 ? &k_table_f64_neon : &k_table_f32_neon;
#endif
    assert(isa <= CPU_AVX512);
    (void)isa;
    return f64 ? &k_table_f64_c : &k_table_f32_c;
}
