// SPDX-License-Identifier: MIT
#include "lines.h"

#include <string.h>

// Lane l of a line is one channel at one position of the batch: where its plane is, and which part
// of its tile exists.
static void locate_lane(const struct tiles_array *array, struct line *line, size_t l,
                        size_t channel, size_t position)
{
    const struct tiles_call *call = array->call;
    const struct tile_grid *grid = &call->p->grid;
    const struct tiles_position *at = &call->spectra.position[position];
    const size_t branches = array->outputs == grid->branches_out ? grid->branches : 1;
    const size_t channels = array->channels / branches;
    const size_t plane = at->item * array->strides.item +
                         (call->group * channels + channel / branches) * array->strides.channel;
    size_t branch[3] = {0};
    if (branches > 1) tile_grid_branch(grid, channel % branches, branch);
    line->plane[l] = (char *)array->data + plane * grid->scalar_bytes;
    for (int a = 0; a < 3; a++) {
        const struct tile_axis *axis = &grid->axis[a];
        const struct tile_side *side = tile_side(axis, array->outputs);
        const ptrdiff_t q = tile_position(axis, array->outputs, at->tile[a]);
        const size_t n = array->outputs ? axis->tile : axis->extent;
        const struct tile_range range = tile_within(side, at->image[a], branch[a], q, n);
        line->at[l][a] = tile_sample(side, at->image[a], branch[a], q);
        line->range[l][a] = range;
        if (range.begin >= range.end) continue;
        line->any[a].begin = size_min(line->any[a].begin, range.begin);
        line->any[a].end = size_max(line->any[a].end, range.end);
    }
    line->all.begin = size_max(line->all.begin, line->range[l][2].begin);
    line->all.end = size_min(line->all.end, line->range[l][2].end);
}

size_t tiles_line_count(const struct tiles_array *array)
{
    const struct tiles *p = array->call->p;
    if (array->order == TILES_INTERLEAVED) return p->x_scalars / p->lanes;
    if (array->order == TILES_CHANNELS) return ceil_div(array->n, p->lanes) * p->positions;
    return array->n * (p->batch / p->lanes);
}

struct lane tiles_lane(const struct tiles_array *array, size_t line, size_t lane)
{
    const struct tiles *p = array->call->p;
    if (array->order == TILES_POSITIONS)
        return (struct lane){line % array->n, line / array->n * p->lanes + lane};
    if (array->order == TILES_CHANNELS) {
        const size_t lines = ceil_div(array->n, p->lanes);
        return (struct lane){line % lines * p->lanes + lane, line / lines};
    }
    const size_t at = line * p->lanes + lane, group = at / (p->in * TILE_ROWS) * TILE_ROWS;
    if (group >= p->positions) return (struct lane){0, p->positions};
    const size_t rows = size_min(TILE_ROWS, p->positions - group), within = at - group * p->in;
    if (within / rows >= p->in) return (struct lane){0, p->positions};
    return (struct lane){within / rows, group + within % rows};
}

struct tile_spectrum tiles_line_spectrum(const struct tiles_array *array, size_t line)
{
    const struct tiles *p = array->call->p;
    const struct lane first = tiles_lane(array, line, 0);
    const size_t bin = array->bin;
    char *spectra = array->spectra;
    if (array->order == TILES_INTERLEAVED)
        return (struct tile_spectrum){spectra + line * TILE_LINE_BYTES, bin, p->x_scalars};
    if (array->order == TILES_POSITIONS) {
        const size_t at = first.channel * 2 * p->batch + first.position;
        return (struct tile_spectrum){spectra + at * p->grid.scalar_bytes, bin, p->batch};
    }
    if (p->weight) return tiles_line_of_gy(p, spectra, first.position, first.channel);
    return tiles_sums(p, spectra, first.position, first.channel);
}

// Whether a lane has samples, those of the position of lane l, `channels` channels later.
static bool lane_follows(const struct line *line, size_t l, size_t lane, size_t channels,
                         size_t bytes)
{
    const struct tile_range *range = line->range[lane];
    return range[2].begin < range[2].end &&
           line->plane[lane] == line->plane[l] + channels * bytes &&
           memcmp(line->at[lane], line->at[l], sizeof line->at[l]) == 0;
}

static void find_runs(struct line *line, size_t lanes, size_t bytes)
{
    bool taken[TILE_MAX_LANES] = {false};
    for (size_t l = 0; l < lanes; l++) {
        struct lane_run run = {.n = 1, .pace = 1};
        line->run[l].n = 0;
        if (taken[l] || line->range[l][2].begin >= line->range[l][2].end) continue;
        while (l + run.pace < lanes && !lane_follows(line, l, l + run.pace, 1, bytes)) run.pace++;
        for (size_t k = l; k < lanes; k += run.pace) {
            if (k > l && !lane_follows(line, l, k, run.n, bytes)) break;
            taken[k] = true;
            run.n += k > l;
        }
        line->run[l] = run;
    }
}

void tiles_open_line(const struct tiles_array *array, size_t index, struct line *line)
{
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    for (int a = 0; a < 3; a++) {
        const struct tile_side *side = tile_side(&p->grid.axis[a], array->outputs);
        line->size[a] = side->size;
        line->step[a] = side->step;
        line->any[a] = (struct tile_range){SIZE_MAX, 0};
    }
    line->all = (struct tile_range){0, SIZE_MAX};
    line->position = array->strides.position;
    for (size_t l = 0; l < p->lanes; l++) {
        const struct lane at = tiles_lane(array, index, l);
        if (at.channel < array->n && call->first + at.position < p->positions)
            locate_lane(array, line, l, array->first + at.channel, at.position);
        else memset(line->range[l], 0, sizeof line->range[l]);
    }
    if (is_spread(line)) find_runs(line, p->lanes, p->grid.scalar_bytes);
}
