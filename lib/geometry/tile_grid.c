// SPDX-License-Identifier: MIT
// Grids of tiles, see tile_grid.h. With g the common divisor of stride s and dilation d, outputs
// fall into d/g images and taps into s/g phases: output i + (d/g) q of image i meets with tap j +
// (s/g) k of phase j the sample s i + d j + (s d / g)(q + k), which is position q + k of that image
// and phase.
#include "tile_grid.h"
#include "base/sizes.h"

// Positions of outputs that exist, over all images and phases: the last of the least offset, the
// first of the greatest.
static void count_positions(struct tile_axis *axis)
{
    const struct tile_side *out = &axis->out;
    const ptrdiff_t greatest =
        out->base + (ptrdiff_t)(out->image * (axis->images - 1) + out->phase * (axis->phases - 1));
    const ptrdiff_t end = floor_div((ptrdiff_t)out->size - 1 - out->base, out->step) + 1;
    axis->first = -floor_div(greatest, out->step);
    axis->count = end > axis->first ? (size_t)(end - axis->first) : 0;
}

static bool make_axis(const struct axis *axis, bool backward, struct tile_axis *ret)
{
    // Where they mean nothing, stride and dilation are what makes the fewest images and phases.
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
                              .phases = size_min(stride / common, axis->kernel),
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
    static const struct axis no_axis = {
        .kernel = 1, .size = 1, .stride = 1, .dilation = 1, .span = 1, .out = 1};
    const bool backward = direction == PARTITA_BACKWARD_DATA;
    *ret = (struct tile_grid){.batch = shape->batch,
                              .groups = shape->groups,
                              .in = backward ? shape->group_out : shape->group_in,
                              .out = backward ? shape->group_in : shape->group_out,
                              .phases_out = backward,
                              .flip = shape->flip,
                              .covers = true,
                              .scalar_bytes = shape->scalar_bytes,
                              .images = 1,
                              .phases = 1};
    for (int i = 0; i < 3; i++) {
        struct tile_axis *axis = &ret->axis[i];
        const int unused = 3 - shape->rank;
        if (!make_axis(i < unused ? &no_axis : &shape->axis[i - unused], backward, axis))
            return false;
        ret->images = size_mul(ret->images, axis->images);
        ret->phases = size_mul(ret->phases, axis->phases);
        if (backward && axis->images * axis->phases != axis->out.step) ret->covers = false;
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

void tile_grid_phase(const struct tile_grid *grid, size_t phase, size_t ret[3])
{
    const struct tile_axis *axis = grid->axis;
    size_unravel(phase, (const size_t[]){axis[0].phases, axis[1].phases, axis[2].phases}, ret);
}

void tile_grid_tile(const struct tile_grid *grid, size_t tile, size_t ret[3])
{
    const struct tile_axis *axis = grid->axis;
    size_unravel(tile, (const size_t[]){axis[0].tiles, axis[1].tiles, axis[2].tiles}, ret);
}

size_t tile_grid_tap(const struct tile_grid *grid, const size_t phase[3], const size_t k[3])
{
    size_t index = 0;
    for (int i = 0; i < 3; i++) {
        const struct tile_axis *axis = &grid->axis[i];
        const size_t tap =
            phase[i] + axis->period * (axis->reversed ? axis->taps - 1 - k[i] : k[i]);
        if (tap >= axis->kernel) return SIZE_MAX;
        index = index * axis->kernel + (grid->flip ? axis->kernel - 1 - tap : tap);
    }
    return index;
}

size_t tile_grid_cell(const struct tile_grid *grid, size_t group, size_t k, size_t c)
{
    return grid->phases_out ? (group * grid->in + c) * grid->out + k
                            : (group * grid->out + k) * grid->in + c;
}

struct tile_range tile_within(const struct tile_side *side, size_t image, size_t phase, ptrdiff_t q,
                              size_t n)
{
    const ptrdiff_t first = tile_sample(side, image, phase, q), size = (ptrdiff_t)side->size;
    const size_t begin = first < 0 ? ceil_div((size_t)-first, side->step) : 0;
    const size_t end = first < size ? ceil_div((size_t)(size - first), side->step) : 0;
    return (struct tile_range){size_min(begin, size_min(end, n)), size_min(end, n)};
}
