// SPDX-License-Identifier: MIT
// Which pairs of parts begin at which output, for parts of two sizes. Pair (i, j) covers the taps_part + signal_part -
// 1 outputs from i * taps_part + j * signal_part on, a multiple of what divides both.
#include "../sizes.h"
#include "blocks.h"

struct divisions divisions_of(const struct shape *shape, const struct blocks_layout *layout)
{
    const size_t taps = layout->part, signal = layout->signal_part, unit = common_divisor(taps, signal);
    return (struct divisions){.taps_part = taps,
                              .signal_part = signal,
                              .unit = unit,
                              .apart = taps + signal,
                              .count = (taps + signal) / unit,
                              .taps = layout->parts,
                              .signals = ceil_div(shape->axis[0].size, signal),
                              .first = layout->first,
                              .end = layout->first + (ptrdiff_t)layout->outputs};
}

// Intervals of division k that end before the first output wanted.
static size_t skipped(const struct divisions *divisions, size_t k)
{
    const ptrdiff_t behind = (ptrdiff_t)(k * divisions->unit + divisions->apart) - 1; // interval 0
    return behind > divisions->first ? 0 : ceil_div((size_t)(divisions->first - behind) + 1, divisions->apart);
}

size_t divisions_begin(const struct divisions *divisions, size_t k, size_t interval)
{
    return k * divisions->unit + (skipped(divisions, k) + interval) * divisions->apart;
}

size_t divisions_intervals(const struct divisions *divisions, size_t k)
{
    const size_t last =
        (divisions->taps - 1) * divisions->taps_part + (divisions->signals - 1) * divisions->signal_part;
    const ptrdiff_t end = divisions->end <= (ptrdiff_t)last ? divisions->end : (ptrdiff_t)last + 1;
    const ptrdiff_t begin = (ptrdiff_t)divisions_begin(divisions, k, 0);
    return begin >= end ? 0 : ceil_div((size_t)(end - begin), divisions->apart);
}

// In units the taps' part i begins at i * t, the signal's part j at j * s, and nothing divides both t and s: i t + j s
// = at is solved by the latest i in reach that leaves a multiple of s, and from there by steps of s and t.
struct divisions_pairs divisions_pairs(const struct divisions *divisions, size_t begin)
{
    const size_t t = divisions->taps_part / divisions->unit, s = divisions->signal_part / divisions->unit;
    const size_t at = begin / divisions->unit;
    size_t i = at / t < divisions->taps ? at / t : divisions->taps - 1;
    while (i > 0 && (at - i * t) % s) i--;
    const size_t j = (at - i * t) / s;
    if ((at - i * t) % s || j >= divisions->signals) return (struct divisions_pairs){.count = 0};
    const size_t down = i / s, up = (divisions->signals - 1 - j) / t, more = down < up ? down : up;
    return (struct divisions_pairs){i - more * s, s, j + more * t, t, more + 1};
}
