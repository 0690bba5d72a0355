// SPDX-License-Identifier: MIT
#include "signal_blocks.h"

struct trimmed shape_trim(const struct shape *shape)
{
    const struct axis *axis = &shape->axis[0];
    assert(axis->out > 0 && axis->span > 0);
    const size_t outputs = (axis->out - 1) * axis->stride + 1;
    const ptrdiff_t q = causal_first(axis);
    // Tap j meets samples q - j .. q + outputs - 1 - j.
    const struct range meeting = {q - (ptrdiff_t)axis->size + 1, outputs + axis->size - 1};
    const struct range taps = range_within(meeting, 0, (ptrdiff_t)axis->span);
    return (struct trimmed){(size_t)taps.first, taps.size, q - taps.first, outputs};
}

struct block_outputs block_outputs(const struct axis *axis, size_t from, size_t end)
{
    const size_t first = ceil_div(from, axis->stride),
                 behind = size_min(ceil_div(end, axis->stride), axis->out);
    return (struct block_outputs){first, behind > first ? behind - first : 0,
                                  first * axis->stride - from};
}
