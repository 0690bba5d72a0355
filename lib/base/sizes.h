// SPDX-License-Identifier: MIT
// Arithmetic of sizes and indices.
#ifndef PARTITA_SIZES_H
#define PARTITA_SIZES_H

#include <assert.h>
#include <stddef.h>

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

// a/b rounded down, also for negative a.
static inline ptrdiff_t floor_div(ptrdiff_t a, size_t b)
{
    const ptrdiff_t d = (ptrdiff_t)b;
    assert(d > 0);
    return a / d - (a % d < 0);
}

// a/b rounded up.
static inline size_t ceil_div(size_t a, size_t b)
{
    assert(b > 0);
    return a / b + (a % b > 0);
}

// a rounded up to a multiple of b.
static inline size_t size_round_up(size_t a, size_t b)
{
    return ceil_div(a, b) * b;
}

// Splits n evenly into as few parts of at most `max` as possible; returns the length of a part.
static inline size_t size_split_even(size_t n, size_t max)
{
    assert(n > 0 && max > 0);
    return ceil_div(n, ceil_div(n, max));
}

// Coordinates of an index into an array of extents n, the last of which is contiguous.
static inline void size_unravel(size_t index, const size_t n[3], size_t ret[3])
{
    for (int i = 2; i >= 0; i--) {
        ret[i] = index % n[i];
        index /= n[i];
    }
}

static inline size_t size_gcd(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
