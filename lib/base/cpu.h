// SPDX-License-Identifier: MIT
// Which vector instructions this machine has.
#ifndef PARTITA_CPU_H
#define PARTITA_CPU_H

enum cpu_isa {
    CPU_C,      // plain C
    CPU_NEON,   // aarch64
    CPU_AVX2,   // AVX2 and FMA
    CPU_AVX512, // AVX-512 F, DQ, BW, VL
};

// The highest level the processor and operating system support, lowered (never raised) by the
// environment variable PARTITA_CPU=c|neon|avx2|avx512; other values of it are ignored.
enum cpu_isa cpu_detect(void);

const char *cpu_isa_name(enum cpu_isa level);

// Cores this process may run on; at least 1.
int cpu_count(void);

#endif
