// SPDX-License-Identifier: MIT
// Division of positions and sizes that rounds down, below zero too, and up.
#ifndef PARTITA_DIVISION_H
#define PARTITA_DIVISION_H

#include <stddef.h>

static inline ptrdiff_t floor_div(ptrdiff_t a, size_t b)
{
    const ptrdiff_t d = (ptrdiff_t)b;
    return a / d - (a % d < 0);
}

static inline size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b > 0);
}

#endif
