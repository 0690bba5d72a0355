// SPDX-License-Identifier: MIT
// Chooses the inner loops of an instruction set, as kernels/kernels.c does.
#include "causal_kernels.h"

extern const struct causal_kernels k_causal_f32_c, k_causal_f32_neon, k_causal_f32_avx2,
    k_causal_f32_avx512;

const struct causal_kernels *causal_kernels_select(enum cpu_isa isa)
{
#ifdef HAVE_AVX512
    if (isa >= CPU_AVX512) return &k_causal_f32_avx512;
#endif
#ifdef HAVE_AVX2
    if (isa >= CPU_AVX2) return &k_causal_f32_avx2;
#endif
#ifdef HAVE_NEON
    if (isa >= CPU_NEON) return &k_causal_f32_neon;
#endif
    (void)isa;
    return &k_causal_f32_c;
}
