// SPDX-License-Identifier: MIT
// How a bounded problem of one axis is split into blocks, on any device: which taps its outputs
// depend on, which blocks of a channel hold samples, which outputs a block contains.
#ifndef PARTITA_SIGNAL_BLOCKS_H
#define PARTITA_SIGNAL_BLOCKS_H

#include "base/ranges.h"
#include "core/problem.h"

// Along its axis a problem is y[p] = sum over j < span of g[j] * x[causal_first + stride*p - j], a
// causal filter g read at every stride-th position.
static inline ptrdiff_t causal_first(const struct axis *axis)
{
    return axis->begin + (ptrdiff_t)axis->span - 1;
}

// The same where g begins with the first tap that any output depends on and ends with the last one:
// y[p] = sum over j < taps of g[first_tap + j] * x[first + stride*p - j]. No taps: the result is
// zero.
struct trimmed {
    size_t first_tap, taps;
    ptrdiff_t first;
    size_t outputs; // at full rate, including those that the stride skips
};
struct trimmed shape_trim(const struct shape *shape);

// The outputs of the problem that are in the range [from, end) of outputs at full rate.
struct block_outputs {
    size_t first, count, skip; // index of the first; number; distance of the first from `from`
};
struct block_outputs block_outputs(const struct axis *axis, size_t from, size_t end);

#endif
