// SPDX-License-Identifier: MIT
#include "lines.h"

#include <string.h>

struct tiles_array tiles_array_of(const struct tiles_call *call, enum tiles_kind kind)
{
    const struct tiles *p = call->p;
    const bool outputs = kind == TILES_Y || kind == TILES_GY, backward = p->grid.branches_out;
    struct tiles_array array = {.call = call,
                                .kind = kind,
                                .outputs = outputs,
                                .taps = kind == TILES_TAPS || kind == TILES_GW,
                                .data = (char *)(kind == TILES_GY ? call->gy : call->x),
                                .spectra = call->spectra.x,
                                .bin = p->x_bin,
                                .channels = outputs ? p->out : p->in,
                                .adjacent = p->lanes,
                                .positions = p->batch,
                                .valid = p->positions - call->first,
                                .lines = size_max(tiles_staged(p), 2),
                                .strides = shape_strides(&call->plan->shape, outputs != backward)};
    if (kind == TILES_Y || kind == TILES_GX || kind == TILES_GW) {
        array.data = call->to;
        array.spectra = call->spectra.y;
        array.bin = p->y_bin;
    }
    array.first = kind == TILES_Y ? call->oc_first : 0;
    array.n = array.padded = kind == TILES_Y ? call->oc_n : array.channels;
    array.half = !array.taps && call->plan->shape.half;
    array.bytes = array.half ? call->plan->shape.sample_bytes : p->grid.scalar_bytes;
    if (array.taps) {
        array.positions = size_round_up(p->out, p->lanes);
        array.valid = p->out;
        array.lines = 2;
        if (kind == TILES_GW) array.adjacent = array.positions;
    } else if (kind == TILES_GY || kind == TILES_GX ||
               (outputs && p->product == TILES_TRANSPOSED)) {
        array.adjacent = 1;
        array.padded = size_round_up(array.n, p->lanes);
        array.positions = size_min(array.positions, array.valid);
    } else if (p->product == TILES_TRANSPOSED) array.adjacent = TILE_ROWS;
    array.im = array.positions;
    array.position = 1;
    array.channel = 2 * array.im;
    if (kind != TILES_GY && kind != TILES_GX) return array;
    array.im = array.padded;
    array.channel = 1;
    array.position = 2 * array.im;
    if (kind == TILES_GX) return array;
    array.spectra = call->spectra.gy;
    array.bin = p->gy_bin;
    if (p->product == TILES_TRANSPOSED) { // line after line of channels
        array.im = p->lanes;
        array.bin = 2 * p->positions * p->lanes;
        array.channel = 2 * p->positions * p->bins;
    }
    array.position = 2 * array.im;
    return array;
}

struct lane tiles_lane(const struct tiles_array *array, size_t at)
{
    const size_t group = at / (array->padded * array->adjacent) * array->adjacent;
    const size_t left = group < array->positions ? array->positions - group : array->adjacent;
    const size_t rows = size_min(array->adjacent, left), within = at - group * array->padded;
    return (struct lane){within / rows, group + within % rows, group, rows};
}

void tiles_next_lane(const struct tiles_array *array, struct lane *lane)
{
    if (++lane->position < lane->group + lane->rows) return;
    lane->position = lane->group;
    if (++lane->channel == array->padded)
        *lane = tiles_lane(array, (lane->group + lane->rows) * array->padded);
}

// Sets the samples of lane l along an axis.
static void set_axis(struct line *line, size_t l, int a, ptrdiff_t at, struct tile_range range)
{
    line->at[l][a] = at;
    line->range[l][a] = range;
    if (a == 2) {
        line->all.begin = size_max(line->all.begin, range.begin);
        line->all.end = size_min(line->all.end, range.end);
    }
    if (range.begin >= range.end) return;
    line->any[a].begin = size_min(line->any[a].begin, range.begin);
    line->any[a].end = size_max(line->any[a].end, range.end);
}

static void locate_samples(const struct tiles_array *array, struct line *line, size_t l,
                           const struct lane *lane)
{
    const struct tiles_call *call = array->call;
    const struct tile_grid *grid = &call->p->grid;
    const struct tiles_position *at = &call->spectra.position[lane->position];
    const size_t branches = tiles_branches(array), channel = array->first + lane->channel;
    const size_t plane =
        at->item * array->strides.item +
        (call->group * (array->channels / branches) + channel / branches) * array->strides.channel;
    size_t branch[3] = {0};
    if (branches > 1) tile_grid_branch(grid, channel % branches, branch);
    line->plane[l] = array->data + plane * array->bytes;
    for (int a = 0; a < 3; a++) {
        const struct tile_axis *axis = &grid->axis[a];
        const struct tile_side *side = tile_side(axis, array->outputs);
        const ptrdiff_t q = tile_position(axis, array->outputs, at->tile[a]);
        const size_t n = array->outputs ? axis->tile : axis->extent;
        set_axis(line, l, a, tile_sample(side, at->image[a], branch[a], q),
                 tile_within(side, at->image[a], branch[a], q, n));
    }
}

// The taps of the caller's path for an input and an output channel, one of which has the branch.
static void locate_taps(const struct tiles_array *array, struct line *line, size_t l,
                        const struct lane *lane)
{
    const struct tile_grid *grid = &array->call->p->grid;
    size_t in = lane->channel, out = lane->position, branch[3] = {0};
    if (grid->branches > 1) {
        size_t *branched = grid->branches_out ? &out : &in;
        tile_grid_branch(grid, *branched % grid->branches, branch);
        *branched /= grid->branches;
    }
    const size_t path = tile_grid_path(grid, array->call->group, out, in);
    line->plane[l] =
        array->data + path * line->size[0] * line->size[1] * line->size[2] * grid->scalar_bytes;
    for (int a = 0; a < 3; a++) {
        const struct tile_axis *axis = &grid->axis[a];
        const size_t n = ceil_div(axis->kernel - branch[a], axis->period), absent = axis->taps - n;
        const size_t first = branch[a] + (axis->reversed ? axis->period * (axis->taps - 1) : 0);
        const ptrdiff_t flipped = (ptrdiff_t)axis->kernel - 1 - (ptrdiff_t)first;
        set_axis(line, l, a, grid->flip ? flipped : (ptrdiff_t)first,
                 axis->reversed ? (struct tile_range){absent, axis->taps}
                                : (struct tile_range){0, n});
    }
}

// All lanes of a line of taps. They have one branch, unless branches are output channels.
static void open_taps(const struct tiles_array *array, struct line *line, struct lane lane)
{
    const struct tile_grid *grid = &array->call->p->grid;
    const size_t kernel = line->size[0] * line->size[1] * line->size[2];
    const size_t apart = (grid->branches_out ? 1 : grid->in) * kernel * grid->scalar_bytes;
    const size_t n = size_min(array->call->p->lanes, array->valid - lane.position);
    locate_taps(array, line, 0, &lane);
    for (size_t l = 1; l < n; l++) {
        lane.position++;
        if (grid->branches > 1 && grid->branches_out) {
            locate_taps(array, line, l, &lane);
            continue;
        }
        line->plane[l] = line->plane[l - 1] + apart;
        memcpy(line->at[l], line->at[0], sizeof line->at[l]);
        memcpy(line->range[l], line->range[0], sizeof line->range[l]);
    }
}

void tiles_open_line(const struct tiles_array *array, size_t index, struct line *line)
{
    const struct tiles *p = array->call->p;
    struct lane lane = tiles_lane(array, index * p->lanes);
    for (int a = 0; a < 3; a++) {
        const struct tile_axis *axis = &p->grid.axis[a];
        const struct tile_side *side = tile_side(axis, array->outputs);
        const ptrdiff_t period = (ptrdiff_t)axis->period;
        line->size[a] = array->taps ? axis->kernel : side->size;
        line->step[a] = (ptrdiff_t)side->step;
        if (array->taps) line->step[a] = axis->reversed == p->grid.flip ? period : -period;
        line->any[a] = (struct tile_range){SIZE_MAX, 0};
    }
    line->all = (struct tile_range){0, SIZE_MAX};
    line->position = array->taps ? 1 : array->strides.position;
    memset(line->plane, 0, sizeof line->plane);
    memset(line->range, 0, sizeof line->range);
    if (array->taps) open_taps(array, line, lane);
    for (size_t l = 0; l < p->lanes && !array->taps; l++, tiles_next_lane(array, &lane))
        if (lane.channel < array->n && lane.position < array->valid)
            locate_samples(array, line, l, &lane);
}

struct tile_spectrum tiles_line_spectrum(const struct tiles_array *array, size_t line)
{
    const struct tiles *p = array->call->p;
    const struct lane first = tiles_lane(array, line * p->lanes);
    const bool transposed = p->product == TILES_TRANSPOSED;
    if (transposed && array->kind == TILES_Y)
        return tiles_sums(p, array->spectra, first.position, first.channel);
    if (transposed && array->kind == TILES_X)
        return (struct tile_spectrum){array->spectra + line * TILE_LINE_BYTES, array->bin,
                                      p->x_scalars};
    const size_t at = first.channel * array->channel + first.position * array->position;
    return (struct tile_spectrum){array->spectra + at * p->grid.scalar_bytes, array->bin,
                                  array->im};
}
