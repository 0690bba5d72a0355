// SPDX-License-Identifier: MIT
// How a bounded problem of one axis is split into blocks, on any device: which taps its outputs
// depend on, which blocks of a channel hold samples, which outputs a block yields.
#ifndef PARTITA_SEGMENTS_H
#define PARTITA_SEGMENTS_H

#include "core/problem.h"

// Along its axis a problem is y[p] = sum over j < span of g[j] * x[causal_first + stride*p - j], a
// causal filter g read at every stride-th position.
static inline ptrdiff_t causal_first(const struct axis *axis)
{
    return axis->begin + (ptrdiff_t)axis->span - 1;
}

// The same with g from the first tap that any output depends on to the last: y[p] = sum over j <
// taps of g[first_tap + j] * x[first + stride*p - j]. No taps: the result is zero.
struct trimmed {
    size_t first_tap, taps;
    ptrdiff_t first;
    size_t outputs; // at full rate, those between strides included
};
struct trimmed segments_trim(const struct shape *shape);

// Blocks that lie in [0, size): the first one of those that start at origin + i*length, and how
// many.
struct segment_range {
    ptrdiff_t first;
    size_t count;
};
struct segment_range segments_inside(ptrdiff_t origin, size_t length, size_t size);

// Outputs of the problem that lie in [from, end) of those at full rate, and where the first of them
// is.
struct segment_outputs {
    size_t first, count, skip; // index, number; of the first, from `from`
};
struct segment_outputs segment_outputs(const struct axis *axis, size_t from, size_t end);

#endif
