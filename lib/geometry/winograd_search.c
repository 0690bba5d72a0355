// SPDX-License-Identifier: MIT
#include "winograd_search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "base/winograd_matrix.h"
#include "core/device.h"
#include "core/plan.h"

// Without a budget of the caller's, in units of roundoff: 2e-6 in f32.
static const double DEFAULT_BUDGET = 2e-6 / 0x1p-24;

static const size_t extents[] = {1, 4, 5, 6, 7, 8};
enum { EXTENTS = sizeof extents / sizeof *extents, SPLITS = EXTENTS * EXTENTS * EXTENTS };

// winograd_split of a grid that is not split yet, ret->grid.
static bool split_grid(int number, struct winograd_split *ret)
{
    const size_t extent[3] = {extents[number / EXTENTS / EXTENTS],
                              extents[number / EXTENTS % EXTENTS], extents[number % EXTENTS]};
    size_t tile[3];
    struct tile_grid *grid = &ret->grid;
    assert(number >= 0 && number < SPLITS);
    ret->number = number;
    ret->frequencies = extent[0] * extent[1] * extent[2];
    if (ret->frequencies == 1) return false;
    for (int a = 0; a < 3; a++) {
        const size_t taps = grid->axis[a].taps;
        if (taps == 1 ? extent[a] > 1 : taps >= extent[a]) return false;
        tile[a] = extent[a] + 1 - taps;
    }
    tile_grid_split(grid, tile);
    ret->in = grid->in * (grid->branches_out ? 1 : grid->branches);
    ret->out = grid->out * (grid->branches_out ? grid->branches : 1);
    return grid->tiles > 0;
}

bool winograd_split(const struct request *request, int number, struct winograd_split *ret)
{
    return tile_grid_make(request->shape, request->direction, &ret->grid) &&
           split_grid(number, ret);
}

double winograd_error_growth(size_t extent, size_t taps)
{
    // Of extents from 4 on with 2 taps or more.
    static const double growth[][WINOGRAD_EXTENT - 2] = {
        {0x1.4a7e9cb8a3491p+0, 0x1.4a7e9cb8a3491p+0},
        {0x1.ace4a6cd0e538p+0, 0x1.9e8eac42cbd44p+0, 0x1.ace4a6cd0e538p+0},
        {0x1.292c74fe53fb7p+1, 0x1.17d7ec8924667p+1, 0x1.17d7ec8924667p+1, 0x1.292c74fe53fb6p+1},
        {0x1.ae5511941349cp+1, 0x1.8e75d75316e8fp+1, 0x1.858bb19b7ac2cp+1, 0x1.8e75d75316e90p+1,
         0x1.ae5511941349cp+1},
        {0x1.3e7ddef63c7f8p+2, 0x1.22b40f81752aap+2, 0x1.17794a6245514p+2, 0x1.17794a6245514p+2,
         0x1.22b40f81752aap+2, 0x1.3e7ddef63c7f8p+2},
    };
    assert(extent == 1 || (extent <= WINOGRAD_EXTENT && taps >= 2 && taps < extent));
    return extent > 1 ? growth[extent - 4][taps - 2] : 1;
}

// Roundings of six or nine transforms along one axis each, then of the products' sums; 1.7 remains
// of the former for every extent, by experiment with random tiles
// (docs/decisions/0014-winograd.md).
static double winograd_error(const struct request *request, const struct tile_grid *grid,
                             double terms)
{
    const double segment = fmin(terms, WINOGRAD_TERMS);
    double growth = 1;
    for (int a = 0; a < 3; a++)
        growth *= winograd_error_growth(grid->axis[a].extent, grid->axis[a].taps);
    return shape_roundoff(request->shape) * growth * sqrt(1.7 + 0.09 * (segment + terms / segment));
}

double winograd_budget(const struct request *request)
{
    return request->error_budget > 0 ? request->error_budget
                                     : DEFAULT_BUDGET * shape_roundoff(request->shape);
}

void winograd_search(const struct request *request, winograd_try_fn *try_split,
                     struct estimate *ret)
{
    const double budget = winograd_budget(request);
    struct winograd_split split, best = {0};
    double least_error = INFINITY; // of all splits
    const bool made = tile_grid_make(request->shape, request->direction, &split.grid);
    // Odd extents come last, and have to save an eighth of the products of the best even ones,
    // since their transforms and errors are larger. CUDA has no kernels for them.
    const int splits = request->device && !request->device->host ? SPLITS : 2 * SPLITS;
    double even_products = INFINITY;
    for (int i = 0; i < splits && made; i++) {
        struct estimate now = {0};
        const struct tile_axis *axis = split.grid.axis;
        const bool odd = i >= SPLITS;
        if (!split_grid(i % SPLITS, &split)) continue;
        bool has_odd = false;
        for (int a = 0; a < 3; a++) has_odd |= axis[a].extent > 1 && axis[a].extent % 2;
        if (has_odd != odd) continue;
        const double products = (double)split.frequencies * (double)split.grid.tiles;
        if (odd && 8 * products > 7 * even_products) continue;
        for (int a = 0; a < 3; a++) now.transform = size_max(now.transform, axis[a].extent);
        if (request->transform && now.transform != request->transform) continue;
        if (now.transform > request_max_transform(request)) continue;
        // The terms of a product's sum are channels, or tiles of backward weight.
        const double tiles =
            (double)split.grid.tiles * (double)split.grid.images * (double)split.grid.batch;
        const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
        now.error = winograd_error(request, &split.grid, weight ? tiles : (double)split.in);
        least_error = fmin(least_error, now.error);
        if (now.error > budget) continue;
        try_split(request, &split, &now);
        if (!now.applicable) continue;
        const bool same = estimate_fits(request, &now) == estimate_fits(request, ret);
        const bool cheaper = request_cost(request, &now) < request_cost(request, ret);
        if (ret->applicable && !(same ? cheaper : estimate_fits(request, &now))) continue;
        *ret = now;
        best = split;
        if (!odd) even_products = products;
    }
    if (ret->applicable) {
        const struct tile_axis *axis = best.grid.axis;
        if (axis[0].extent > 1)
            snprintf(ret->summary, sizeof ret->summary, "F(%zux%zux%zu,%zux%zux%zu)", axis[0].tile,
                     axis[1].tile, axis[2].tile, axis[0].taps, axis[1].taps, axis[2].taps);
        else
            snprintf(ret->summary, sizeof ret->summary, "F(%zux%zu,%zux%zu)", axis[1].tile,
                     axis[2].tile, axis[1].taps, axis[2].taps);
    } else if (least_error < INFINITY)
        estimate_refuse(ret, "error %.1e is beyond the budget of %.1e", least_error, budget);
    else if (request->transform)
        estimate_refuse(ret, "has no tiles of %zu for these taps", request->transform);
    else estimate_refuse(ret, "serves 2 to %d taps of a branch along an axis", WINOGRAD_EXTENT - 1);
}
