// SPDX-License-Identifier: MIT
// Included first in all files of lib/ if the build is configured with -Dmodes=true: engines leave
// out the modes that the variable PARTITA_WITHOUT names, ENGINE:MODE,.., so that the benchmarks
// time and bench_choices prints a library without them. `grep MODE_IS_ON lib` finds the names.
#ifndef BENCH_MODES_H
#define BENCH_MODES_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool bench_mode_is_on(const char *name)
{
    const char *without = getenv("PARTITA_WITHOUT");
    return without == NULL || strstr(without, name) == NULL;
}

#define MODE_IS_ON(name) bench_mode_is_on(name)

#endif
