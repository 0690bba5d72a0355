// SPDX-License-Identifier: MIT
#include "winograd_search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/winograd_matrix.h"
#include "winograd_error.h"

static const size_t extents[] = {1, 4, 6, 8};
enum { EXTENTS = sizeof extents / sizeof *extents, SPLITS = EXTENTS * EXTENTS };

bool winograd_split(const struct request *request, int number, struct winograd_split *ret)
{
    const size_t extent[WINOGRAD_AXES] = {extents[number / EXTENTS], extents[number % EXTENTS]};
    size_t tile[3] = {1, 1, 1};
    assert(number >= 0 && number < SPLITS);
    struct tile_grid *grid = &ret->grid;
    ret->number = number;
    ret->frequencies = extent[0] * extent[1];
    if (ret->frequencies == 1) return false;
    if (!tile_grid_make(request->shape, request->direction, grid)) return false;
    for (int a = 0; a < WINOGRAD_AXES; a++) {
        const size_t taps = grid->axis[1 + a].taps;
        if (taps == 1 ? extent[a] > 1 : taps >= extent[a]) return false;
        tile[1 + a] = extent[a] + 1 - taps;
    }
    tile_grid_split(grid, tile);
    ret->in = grid->in * (grid->phases_out ? 1 : grid->phases);
    ret->out = grid->out * (grid->phases_out ? grid->phases : 1);
    return grid->tiles > 0;
}

// Error and description of a split; the terms of a product's sum are channels, or tiles of backward
// weight.
static void describe_split(const struct request *request, const struct winograd_split *split,
                           struct estimate *ret)
{
    const struct tile_grid *grid = &split->grid;
    const struct tile_axis *down = &grid->axis[1];
    const struct tile_axis *along = &grid->axis[2];
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const double tiles = (double)grid->tiles * (double)grid->images * (double)grid->batch;
    ret->transform = down->extent > along->extent ? down->extent : along->extent;
    ret->error = winograd_error(grid, request->shape->f64, weight ? tiles : (double)split->in);
    snprintf(ret->summary, sizeof ret->summary, "F(%zux%zu,%zux%zu)", down->tile, along->tile,
             down->taps, along->taps);
}

static bool fits_workspace(const struct request *request, const struct estimate *estimate)
{
    return size_add(estimate->worker, estimate->shared) <= request->workspace_limit;
}

void winograd_search(const struct request *request, winograd_try_fn *try_split,
                     struct estimate *ret)
{
    const double budget = winograd_budget(request);
    double least_error = INFINITY;
    for (int number = 0; number < SPLITS; number++) {
        struct winograd_split split;
        struct estimate now = {0};
        if (!winograd_split(request, number, &split)) continue;
        describe_split(request, &split, &now);
        if (request->transform && now.transform != request->transform) continue;
        try_split(request, &split, &now);
        if (!now.applicable) continue;
        least_error = fmin(least_error, now.error);
        if (now.error > budget) continue;
        const bool same = fits_workspace(request, &now) == fits_workspace(request, ret);
        if (!ret->applicable || (same ? now.seconds < ret->seconds : fits_workspace(request, &now)))
            *ret = now;
    }
    if (ret->applicable) return;
    if (least_error < INFINITY)
        snprintf(ret->reason, sizeof ret->reason, "error %.1e is beyond the budget of %.1e",
                 least_error, budget);
    else if (request->transform)
        snprintf(ret->reason, sizeof ret->reason, "has no tiles of %zu for these taps",
                 request->transform);
    else
        snprintf(ret->reason, sizeof ret->reason, "serves 2 to %d taps of a phase along an axis",
                 WINOGRAD_EXTENT - 1);
}
