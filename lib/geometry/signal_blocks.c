// SPDX-License-Identifier: MIT
#include "signal_blocks.h"

#include <assert.h>

#include "base/sizes.h"

struct trimmed shape_trim(const struct shape *shape)
{
    const struct axis *axis = &shape->axis[0];
    assert(axis->out > 0 && axis->span > 0);
    const size_t outputs = (axis->out - 1) * axis->stride + 1;
    const ptrdiff_t q = causal_first(axis);
    // Tap j meets samples q - j .. q + outputs - 1 - j.
    const ptrdiff_t low = q - (ptrdiff_t)axis->size + 1, high = q + (ptrdiff_t)outputs - 1;
    const ptrdiff_t first = low > 0 ? low : 0;
    const ptrdiff_t last = high < (ptrdiff_t)axis->span - 1 ? high : (ptrdiff_t)axis->span - 1;
    return (struct trimmed){.first_tap = (size_t)first,
                            .taps = last < first ? 0 : (size_t)(last - first) + 1,
                            .first = q - first,
                            .outputs = outputs};
}

struct block_range blocks_inside(ptrdiff_t origin, size_t length, size_t size)
{
    assert(size > 0);
    const ptrdiff_t first = floor_div(-origin, length),
                    last = floor_div((ptrdiff_t)size - 1 - origin, length);
    return (struct block_range){first, (size_t)(last - first) + 1};
}

struct block_outputs block_outputs(const struct axis *axis, size_t from, size_t end)
{
    const size_t first = ceil_div(from, axis->stride),
                 behind = size_min(ceil_div(end, axis->stride), axis->out);
    return (struct block_outputs){first, behind > first ? behind - first : 0,
                                  first * axis->stride - from};
}
