// SPDX-License-Identifier: MIT
#include "tile_search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "core/plan.h"
#include "tile_tables.h"

enum {
    MAX_TAPS = 1 << 16, // along an axis
    MAX_SIZES = 96,     // that are tried
};

// Samples of the transform of one tile that covers an axis. The transform may be shorter than the
// tile's extent and wrap around: an output then reads other padding in place of its own, provided
// that the inputs [begin, end) that exist are far enough from both ends of the extent.
static size_t tile_size_whole(const struct tile_axis *axis, bool sevens)
{
    enum { MAX_TRIES = 64 };
    if (axis->whole) return axis->whole;
    if (axis->count > TILE_MAX_SIZE) return SIZE_MAX;
    if (axis->count == 0) return tile_tables_next_size(axis->taps, sevens);
    const size_t extent = axis->count + axis->taps - 1;
    const ptrdiff_t q = axis->first + axis->lead;
    struct tile_range seen = {extent, 0};
    if (size_mul(axis->images, axis->branches) > MAX_TRIES) seen = (struct tile_range){0, extent};
    else
        for (size_t i = 0; i < axis->images * axis->branches; i++) {
            const struct tile_range range =
                tile_within(&axis->in, i / axis->branches, i % axis->branches, q, extent);
            if (range.begin >= range.end) continue;
            seen.begin = size_min(seen.begin, range.begin);
            seen.end = size_max(seen.end, range.end);
        }
    const size_t n = size_max(size_max(axis->count, axis->taps), seen.end);
    return tile_tables_next_size(size_max(n, extent - seen.begin), sevens);
}

bool tile_size_split(struct tile_grid *grid, size_t transform, size_t most_elements,
                     size_t ret_n[3])
{
    size_t tile[3];
    size_t elements = 1;
    for (int i = 0; i < 3; i++) {
        const struct tile_axis *axis = &grid->axis[i];
        if (axis->taps > MAX_TAPS) return false;
        const size_t all = tile_size_whole(axis, grid->sevens);
        ret_n[i] = size_min(transform, all);
        if (ret_n[i] < axis->taps || ret_n[i] > TILE_MAX_SIZE) return false;
        if (ret_n[i] != all && tile_tables_next_size(ret_n[i], grid->sevens) != ret_n[i])
            return false;
        tile[i] = ret_n[i] - axis->taps + 1;
        if (ret_n[i] == all && axis->count) tile[i] = axis->count;
        elements = size_mul(elements, ret_n[i]);
    }
    if (elements > most_elements) return false;
    tile_grid_split(grid, tile);
    return true;
}

// The longest transform worth trying; 0 and a reason if there is none. *ret_grid is the request's
// grid, not split.
static size_t longest(const struct request *request, bool sevens, struct tile_grid *ret_grid,
                      char *reason, size_t size)
{
    const struct shape *shape = request->shape;
    size_t max = 1;
    if (shape->stream || shape->complex_signal) {
        snprintf(reason, size, "for bounded problems of real types");
        return 0;
    }
    if (!tile_grid_make(shape, request->direction, ret_grid)) {
        snprintf(reason, size, "stride and dilation beyond what positions can count");
        return 0;
    }
    ret_grid->sevens = sevens;
    for (int i = 0; i < 3; i++) {
        struct tile_axis *axis = &ret_grid->axis[i];
        if (axis->taps > MAX_TAPS) {
            snprintf(reason, size, "tiles hold %d taps along an axis at most, not %zu", MAX_TAPS,
                     axis->taps);
            return 0;
        }
        axis->whole = tile_size_whole(axis, ret_grid->sevens);
        max = size_max(max, axis->count > TILE_MAX_SIZE / 2 ? TILE_MAX_SIZE : axis->whole);
    }
    return size_min(max, TILE_MAX_SIZE);
}

// Every size up to EVERY_SIZE, then in steps of a quarter.
static size_t list_sizes(size_t max, bool sevens, size_t ret[MAX_SIZES])
{
    enum { EVERY_SIZE = 128 };
    size_t n = 0;
    for (size_t size = 1; size <= max;
         size = tile_tables_next_size(size < EVERY_SIZE ? size + 1 : size + size / 4, sevens)) {
        assert(n < MAX_SIZES);
        ret[n++] = size;
    }
    return n;
}

void tile_search(const struct request *request, const struct tile_engine *engine,
                 struct estimate *ret)
{
    enum { MAX_TRIED = 6 };
    struct tile_grid grid;
    const struct tile_problem problem = {request, &grid};
    const size_t max = longest(request, engine->sevens, &grid, ret->reason, sizeof ret->reason);
    size_t size[MAX_SIZES];
    double cost[MAX_SIZES];
    if (!max) return;
    assert(max <= TILE_MAX_SIZE && !ret->applicable);
    if (request->transform) {
        engine->try_size(&problem, request->transform, ret);
        return;
    }
    const size_t n = list_sizes(max, grid.sevens, size);
    for (size_t i = 0; i < n; i++)
        cost[i] = engine->size_cost ? engine->size_cost(&problem, size[i]) : 0;
    // size_cost does not know which decisions fit a limited workspace.
    const bool all = !engine->size_cost || request->workspace_limit < SIZE_MAX;
    for (size_t tried = 0; tried < (all ? n : MAX_TRIED); tried++) {
        size_t next = 0;
        for (size_t i = 1; i < n; i++)
            if (cost[i] < cost[next]) next = i;
        if (cost[next] == INFINITY) return;
        engine->try_size(&problem, size[next], ret);
        cost[next] = INFINITY;
    }
}

// Schatzman (1996): a transform's rms error is 0.6 u sqrt(log2 N); three of them, more with Gauss's
// sums.
double tile_error(const struct shape *shape, const size_t n[3], bool gauss)
{
    return shape_roundoff(shape) * (gauss ? 1.5 : 1.1) *
           sqrt(log2((double)(n[0] * n[1] * n[2]) + 1));
}
