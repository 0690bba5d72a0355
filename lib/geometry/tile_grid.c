// SPDX-License-Identifier: MIT
// Grids of tiles, see tile_grid.h. With g the common divisor of stride s and dilation d, outputs
// fall into d/g images and taps into s/g branches: output i + (d/g) q of image i meets with tap j +
// (s/g) k of branch j the sample s i + d j + (s d / g)(q + k), which is position q + k of that
// image and branch.
#include "tile_grid.h"
#include "base/ranges.h"

// Positions of outputs that exist, over all images and branches.
static void count_positions(struct tile_axis *axis)
{
    const struct tile_side *out = &axis->out;
    const size_t offsets = out->image * (axis->images - 1) + out->branch * (axis->branches - 1) + 1;
    const struct windows positions = {out->base, out->step, offsets};
    const struct range found = windows_outputs(&positions, (struct range){0, out->size});
    axis->first = found.first;
    axis->count = found.size;
}

static bool make_axis(const struct axis *axis, bool backward, struct tile_axis *ret)
{
    // Where they mean nothing, stride and dilation are those with the fewest images and branches.
    const size_t stride = axis->out == 1 ? axis->dilation : axis->stride;
    const size_t dilation = axis->kernel == 1 ? stride : axis->dilation;
    const size_t common = size_gcd(stride, dilation), step = size_mul(stride / common, dilation);
    if (step > PTRDIFF_MAX / 4) return false;
    const struct tile_side x = {axis->size, axis->begin, stride, dilation, step};
    const struct tile_side y = {axis->out, 0, 1, 0, dilation / common};
    *ret = (struct tile_axis){.in = backward ? y : x,
                              .out = backward ? x : y,
                              .images = size_min(dilation / common, axis->out),
                              .period = stride / common,
                              .branches = size_min(stride / common, axis->kernel),
                              .kernel = axis->kernel,
                              .taps = ceil_div(axis->kernel, stride / common),
                              .reversed = backward};
    if (size_mul(step, size_add(ceil_div(axis->size, step), 2 * ret->taps)) > PTRDIFF_MAX / 4)
        return false;
    if (backward) ret->lead = -(ptrdiff_t)(ret->taps - 1);
    count_positions(ret);
    return true;
}

bool tile_grid_make(const struct shape *shape, enum partita_direction direction,
                    struct tile_grid *ret)
{
    const bool backward = direction == PARTITA_BACKWARD_DATA;
    *ret = (struct tile_grid){.batch = shape->batch,
                              .groups = shape->groups,
                              .in = backward ? shape->group_out : shape->group_in,
                              .out = backward ? shape->group_in : shape->group_out,
                              .branches_out = backward,
                              .flip = shape->flip,
                              .covers = true,
                              .scalar_bytes = shape->scalar_bytes,
                              .images = 1,
                              .branches = 1};
    for (int i = 0; i < 3; i++) {
        struct tile_axis *axis = &ret->axis[i];
        const struct axis of_shape = shape_axis(shape, i);
        if (!make_axis(&of_shape, backward, axis)) return false;
        ret->images = size_mul(ret->images, axis->images);
        ret->branches = size_mul(ret->branches, axis->branches);
        if (backward && axis->images * axis->branches != axis->out.step) ret->covers = false;
    }
    return true;
}

void tile_grid_split(struct tile_grid *grid, const size_t tile[3])
{
    grid->tiles = 1;
    for (int i = 0; i < 3; i++) {
        struct tile_axis *axis = &grid->axis[i];
        axis->tile = tile[i];
        axis->extent = tile[i] + axis->taps - 1;
        axis->tiles = ceil_div(axis->count, tile[i]);
        grid->tiles = size_mul(grid->tiles, axis->tiles);
    }
}

void tile_grid_image(const struct tile_grid *grid, size_t image, size_t ret[3])
{
    const struct tile_axis *axis = grid->axis;
    size_unravel(image, (const size_t[]){axis[0].images, axis[1].images, axis[2].images}, ret);
}

void tile_grid_branch(const struct tile_grid *grid, size_t branch, size_t ret[3])
{
    const struct tile_axis *axis = grid->axis;
    size_unravel(branch, (const size_t[]){axis[0].branches, axis[1].branches, axis[2].branches},
                 ret);
}

void tile_grid_tile(const struct tile_grid *grid, size_t tile, size_t ret[3])
{
    const struct tile_axis *axis = grid->axis;
    size_unravel(tile, (const size_t[]){axis[0].tiles, axis[1].tiles, axis[2].tiles}, ret);
}

size_t tile_grid_tap(const struct tile_grid *grid, const size_t branch[3], const size_t k[3])
{
    size_t index = 0;
    for (int i = 0; i < 3; i++) {
        const struct tile_axis *axis = &grid->axis[i];
        const size_t tap =
            branch[i] + axis->period * (axis->reversed ? axis->taps - 1 - k[i] : k[i]);
        if (tap >= axis->kernel) return SIZE_MAX;
        index = index * axis->kernel + (grid->flip ? axis->kernel - 1 - tap : tap);
    }
    return index;
}

size_t tile_grid_path(const struct tile_grid *grid, size_t group, size_t k, size_t c)
{
    return grid->branches_out ? (group * grid->in + c) * grid->out + k
                              : (group * grid->out + k) * grid->in + c;
}

struct tile_range tile_within(const struct tile_side *side, size_t image, size_t branch,
                              ptrdiff_t q, size_t n)
{
    const ptrdiff_t first = tile_sample(side, image, branch, q), size = (ptrdiff_t)side->size;
    const size_t begin = first < 0 ? ceil_div((size_t)-first, side->step) : 0;
    const size_t end = first < size ? ceil_div((size_t)(size - first), side->step) : 0;
    return (struct tile_range){size_min(begin, size_min(end, n)), size_min(end, n)};
}
