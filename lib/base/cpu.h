// SPDX-License-Identifier: MIT
// Which vector instructions this machine has.
#ifndef PARTITA_CPU_H
#define PARTITA_CPU_H

#include <stdbool.h>

enum cpu_isa {
    CPU_C,      // plain C
    CPU_NEON,   // aarch64
    CPU_AVX2,   // AVX2 and FMA
    CPU_AVX512, // AVX-512 F, DQ, BW, VL
    CPU_ISAS,
};

// `isa`, lowered (never raised) to the instruction set that `wish` names: c, neon, avx2, avx512.
// Another text, or NULL, lowers nothing.
enum cpu_isa cpu_lower(enum cpu_isa isa, const char *wish);

// The highest instruction set that the processor and operating system support, lowered by the
// environment variable PARTITA_CPU, which is read by the first call of the process.
enum cpu_isa cpu_detect(void);

// Whether the processor adds products of pairs of bf16 to sums of f32 (AVX512-BF16, vdpbf16ps), and
// PARTITA_CPU names no instruction set.
bool cpu_sums_pairs(void);

const char *cpu_isa_name(enum cpu_isa isa);

#endif
