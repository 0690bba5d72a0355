// SPDX-License-Identifier: MIT
// Chooses the inner loops of an instruction set, as kernels/kernels.c does.
#include "select_kernels.h"

#define DECLARE(isa, name)                                                                         \
    extern const struct select_kernels k_select_f32_##name, k_select_f64_##name;
#define TABLE(isa, name) [isa] = {&k_select_f32_##name, &k_select_f64_##name},

const struct select_kernels *select_kernels_of(enum cpu_isa isa, bool f64)
{
    EACH_SET(DECLARE)
    static const struct select_kernels *const tables[CPU_ISAS][2] = {EACH_SET(TABLE)};
    while (!tables[isa][f64]) isa--;
    return tables[isa][f64];
}
