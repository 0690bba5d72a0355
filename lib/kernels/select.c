// SPDX-License-Identifier: MIT
// Chooses the inner loops of an instruction set. Built once for each struct TABLES of them, as the
// function SELECT of HEADER; EACH_TABLE has the tables that were built.
#include HEADER

#define DECLARE(isa, f64, name) extern const struct TABLES name;
#define ENTRY(isa, f64, name) [isa][f64] = &name,

const struct TABLES *SELECT(enum cpu_isa isa, bool f64)
{
    EACH_TABLE(DECLARE)
    static const struct TABLES *const tables[CPU_ISAS][2] = {EACH_TABLE(ENTRY)};
    while (!tables[isa][f64]) isa--;
    return tables[isa][f64];
}
