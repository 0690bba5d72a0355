// SPDX-License-Identifier: MIT
// Processor features as the compiler's run-time library reports them (it also asks whether the
// operating system saves the wide registers).
#include "cpu.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    [CPU_C] = "c",
    [CPU_NEON] = "neon",
    [CPU_AVX2] = "avx2",
    [CPU_AVX512] = "avx512",
};

static enum cpu_isa supported_isa(void)
{
#if defined __x86_64__
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CPU_C;
    const int wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    return wide ? CPU_AVX512 : CPU_AVX2;
#elif defined __aarch64__
    return CPU_NEON;
#else
    return CPU_C;
#endif
}

enum cpu_isa cpu_lower(enum cpu_isa isa, const char *wish)
{
    for (enum cpu_isa lower = CPU_C; wish && lower < isa; lower++)
        if (!strcmp(wish, names[lower])) return lower;
    return isa;
}

enum cpu_isa cpu_detect(void)
{
    static _Atomic int known = -1; // threads that ask at once find the same
    if (known < 0) known = (int)cpu_lower(supported_isa(), getenv("PARTITA_CPU"));
    return (enum cpu_isa)known;
}

bool cpu_sums_pairs(void)
{
#if defined __x86_64__
    static _Atomic int known = -1;
    if (known < 0)
        known = supported_isa() == CPU_AVX512 && __builtin_cpu_supports("avx512bf16") &&
                cpu_lower(CPU_ISAS, getenv("PARTITA_CPU")) == CPU_ISAS;
    return known > 0;
#else
    return false;
#endif
}

const char *cpu_isa_name(enum cpu_isa isa)
{
    assert((size_t)isa < sizeof names / sizeof *names);
    return names[isa];
}
