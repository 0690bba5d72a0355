// SPDX-License-Identifier: MIT
#include "tile_search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "tile_size.h"
#include "tile_tables.h"

// The longest transform worth trying; 0 and a reason if there is none.
static size_t longest(const struct request *request, char *reason, size_t size)
{
    const struct shape *shape = request->shape;
    struct tile_grid grid;
    size_t most = 1;
    if (shape->stream || shape->complex_signal) {
        snprintf(reason, size, "for bounded problems of real types");
        return 0;
    }
    if (!tile_grid_make(shape, request->direction, &grid)) {
        snprintf(reason, size, "stride and dilation beyond what positions can count");
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        const struct tile_axis *axis = &grid.axis[i];
        if (axis->taps > TILE_SIZE_MAX_TAPS) {
            snprintf(reason, size, "tiles hold %d taps along an axis at most, not %zu",
                     TILE_SIZE_MAX_TAPS, axis->taps);
            return 0;
        }
        const size_t n = axis->count > TILE_MAX_SIZE / 2 ? TILE_MAX_SIZE : tile_size_whole(axis);
        if (n > most) most = n;
    }
    return size_min(most, TILE_MAX_SIZE);
}

void tile_search(const struct request *request, tile_try_fn *try_size, struct estimate *ret)
{
    enum { EVERY_SIZE = 128 }; // up to which every size is tried
    const size_t most = longest(request, ret->reason, sizeof ret->reason);
    if (!most) return;
    assert(most <= TILE_MAX_SIZE && !ret->applicable);
    if (request->transform) try_size(request, request->transform, ret);
    else
        for (size_t n = 1; n <= most; n = tile_tables_next_size(n < EVERY_SIZE ? n + 1 : n + n / 4))
            try_size(request, n, ret);
}

// Schatzman (1996): a transform's rms error is 0.6 u sqrt(log2 N); three of them, more with Gauss's
// sums.
double tile_error(const struct shape *shape, const size_t n[3], bool gauss)
{
    return shape_roundoff(shape) * (gauss ? 1.5 : 1.1) *
           sqrt(log2((double)(n[0] * n[1] * n[2]) + 1));
}
