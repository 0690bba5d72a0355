// SPDX-License-Identifier: MIT
// Chooses the table of an instruction set. Which tables exist is the build's choice, EACH_SET;
// which one runs is the caller's.
#include "kernels.h"

#define DECLARE(isa, name) extern const struct kernels k_table_f32_##name, k_table_f64_##name;
#define TABLE(isa, name) [isa] = {&k_table_f32_##name, &k_table_f64_##name},

const struct kernels *kernels_select(enum cpu_isa isa, bool f64)
{
    EACH_SET(DECLARE)
    static const struct kernels *const tables[CPU_ISAS][2] = {EACH_SET(TABLE)};
    while (!tables[isa][f64]) isa--;
    return tables[isa][f64];
}
