// SPDX-License-Identifier: MIT
// Tiles of samples into spectra and spectra into tiles of samples. A task is two lines of positions, of neighbouring
// channels as a rule, as the real and the imaginary part of one transform.
#include <string.h>

#include "../sizes.h"
#include "../thread.h"
#include "samples.h"
#include "tiles.h"

// One line of tiles of one channel: where each lane's samples are.
struct line {
    char *plane[TILE_MOST_LANES];
    size_t size[3], step[3];
    ptrdiff_t at[TILE_MOST_LANES][3];            // sample of element 0 along each axis; may lie outside
    struct tile_range range[TILE_MOST_LANES][3]; // elements whose samples exist
    struct tile_range any[3], all;               // elements that any lane has; along the last axis, that every one has
};

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static const struct tile_side *side_of(const struct tile_axis *axis, bool outputs)
{
    return outputs ? &axis->out : &axis->in;
}

// Lane l of a line: what of its tile exists.
static void place_lane(const struct tiles *tiles, const struct tiles_place *place, const struct tiles_array *array,
                       const size_t phase[3], struct line *line, size_t l)
{
    for (int a = 0; a < 3; a++) {
        const struct tile_axis *axis = &tiles->grid.axis[a];
        const struct tile_side *side = side_of(axis, array->outputs);
        const ptrdiff_t q = array->outputs ? tile_output(axis, place->tile[a]) : tile_input(axis, place->tile[a]);
        line->at[l][a] = tile_sample(side, place->image[a], phase[a], q);
        line->range[l][a] = tile_within(side, place->image[a], phase[a], q, array->outputs ? axis->tile : axis->extent);
        if (line->range[l][a].begin >= line->range[l][a].end) continue;
        line->any[a].begin = lesser(line->any[a].begin, line->range[l][a].begin);
        line->any[a].end = most(line->any[a].end, line->range[l][a].end);
    }
    line->all.begin = most(line->all.begin, line->range[l][2].begin);
    line->all.end = lesser(line->all.end, line->range[l][2].end);
}

// Unit `unit` of a block's lines and channels: channels run fastest.
static void open_line(const struct tiles_call *call, const struct tiles_array *array, size_t unit, struct line *line)
{
    const struct tiles *tiles = call->tiles;
    const struct tile_grid *grid = &tiles->grid;
    const bool phased = array->outputs == grid->phases_out;
    const size_t channel = array->first + unit % array->n, first = unit / array->n * tiles->lanes;
    const size_t phases = phased ? grid->phases : 1;
    size_t phase[3] = {0}, plane = grid->scalar_bytes;
    if (phased) tile_grid_phase(grid, channel % phases, phase);
    for (int a = 0; a < 3; a++) {
        const struct tile_side *side = side_of(&grid->axis[a], array->outputs);
        line->size[a] = side->size;
        line->step[a] = side->step;
        line->any[a] = (struct tile_range){SIZE_MAX, 0};
        plane *= side->size;
    }
    line->all = (struct tile_range){0, SIZE_MAX};
    const size_t all = array->channels / phases * grid->groups;
    for (size_t l = 0; l < tiles->lanes; l++) {
        const struct tiles_place *place = &call->place[first + l];
        if (call->first + first + l >= tiles->positions) {
            memset(line->range[l], 0, sizeof line->range[l]);
            continue;
        }
        line->plane[l] = (char *)array->data +
                         (place->item * all + call->group * (array->channels / phases) + channel / phases) * plane;
        place_lane(tiles, place, array, phase, line, l);
    }
}

static bool in_range(const struct tile_range *range, size_t i)
{
    return range->begin <= i && i < range->end;
}

// Sample of element (d, h, 0) of a lane, from the beginning of its plane.
static ptrdiff_t row_at(const struct line *line, size_t l, size_t d, size_t h)
{
    const ptrdiff_t at_d = line->at[l][0] + (ptrdiff_t)(line->step[0] * d),
                    at_h = line->at[l][1] + (ptrdiff_t)(line->step[1] * h);
    return (at_d * (ptrdiff_t)line->size[1] + at_h) * (ptrdiff_t)line->size[2];
}

// Row (d, h) of a line of tiles into z: n samples of every lane. `rows` is a row of zeros and one for each lane.
static void gather_row(const struct tiles *tiles, const struct kernels *kernels, const struct line *line, char *z,
                       size_t d, size_t h, size_t n, char *rows)
{
    const size_t bytes = tiles->grid.scalar_bytes, lanes = tiles->lanes, row = tiles->transform.n[2] * bytes;
    const void *from[TILE_MOST_LANES];
    const ptrdiff_t plane = (ptrdiff_t)(line->size[0] * line->size[1] * line->size[2]);
    for (size_t l = 0; l < lanes; l++) {
        const struct tile_range *range = line->range[l];
        from[l] = rows;
        if (!in_range(&range[0], d) || !in_range(&range[1], h) || range[2].begin >= range[2].end) continue;
        const ptrdiff_t base = row_at(line, l, d, h), first = base + line->at[l][2];
        if (line->step[2] == 1 && first >= 0 && first + (ptrdiff_t)n <= plane) {
            from[l] = line->plane[l] + (size_t)first * bytes;
            continue;
        }
        char *copy = rows + (l + 1) * row;
        samples_window(copy, line->plane[l] + (size_t)base * bytes, line->size[2], line->at[l][2], line->step[2], n,
                       bytes);
        from[l] = copy;
    }
    kernels->tile.gather(z, 2, from, n);
}

// Limits of the lanes' rows as lines of reals, for clipping.
struct limits {
    _Alignas(TILE_LINE_BYTES) char begin[TILE_LINE_BYTES], end[TILE_LINE_BYTES];
};

static struct limits limits_of(const struct tiles *tiles, const struct line *line)
{
    struct limits limits = {{0}, {0}};
    for (size_t l = 0; l < tiles->lanes; l++)
        if (tiles->grid.scalar_bytes == 8) {
            ((double *)limits.begin)[l] = (double)line->range[l][2].begin;
            ((double *)limits.end)[l] = (double)line->range[l][2].end;
        } else {
            ((float *)limits.begin)[l] = (float)line->range[l][2].begin;
            ((float *)limits.end)[l] = (float)line->range[l][2].end;
        }
    return limits;
}

static void clip_row(const struct kernels *kernels, const struct line *line, const struct limits *limits, char *z,
                     size_t n)
{
    const size_t begin = lesser(line->all.begin, n), end = most(begin, lesser(line->all.end, n));
    kernels->tile.clip(z, 2, limits->begin, limits->end, 0, begin);
    kernels->tile.clip(z, 2, limits->begin, limits->end, end, n);
}

static char *row_of(const struct tiles *tiles, char *z, size_t d, size_t h)
{
    const size_t *step = tiles->transform.step;
    return z + (d * step[0] + h * step[1]) * 2 * TILE_LINE_BYTES;
}

struct load {
    const struct tiles_call *call;
    const struct tiles_array *array;
    char *spectra;
    size_t bin;
};

// The samples of two lines of tiles, rows transformed.
static void load_rows(const struct load *load, const struct line *line, int n_lines, char *z, char *rows)
{
    const struct tiles *tiles = load->call->tiles;
    const struct kernels *kernels = load->call->plan->kernels;
    const size_t *n = tiles->transform.n;
    const struct tile_axis *axis = &tiles->grid.axis[2];
    const size_t columns = lesser(load->array->outputs ? axis->tile : axis->extent, n[2]);
    struct limits limits[2];
    for (int i = 0; i < n_lines; i++) limits[i] = limits_of(tiles, &line[i]);
    for (size_t d = 0; d < n[0]; d++)
        for (size_t h = 0; h < n[1]; h++) {
            char *row = row_of(tiles, z, d, h);
            bool any = false;
            for (int i = 0; i < n_lines; i++)
                any = any || (in_range(&line[i].any[0], d) && in_range(&line[i].any[1], h));
            if (!any || n_lines == 1) memset(row, 0, n[2] * 2 * TILE_LINE_BYTES);
            else memset(row + columns * 2 * TILE_LINE_BYTES, 0, (n[2] - columns) * 2 * TILE_LINE_BYTES);
            if (!any) continue;
            for (int i = 0; i < n_lines; i++) {
                gather_row(tiles, kernels, &line[i], row + i * TILE_LINE_BYTES, d, h, columns, rows);
                clip_row(kernels, &line[i], &limits[i], row + i * TILE_LINE_BYTES, columns);
            }
            tile_row(&tiles->transform, kernels, row);
        }
}

static void load_pair(void *context, size_t task, int worker)
{
    const struct load *load = context;
    const struct tiles_call *call = load->call;
    const struct tiles *tiles = call->tiles;
    const size_t channels = load->array->n, units = channels * tiles_lines(tiles);
    char *rows = tiles_scratch(call, worker), *z = rows + tiles_rows_bytes(tiles, tiles->transform.n);
    const int n_lines = 2 * task + 1 < units ? 2 : 1;
    struct line line[2];
    struct tile_spectrum to[2] = {{0}};
    memset(rows, 0, tiles->transform.n[2] * tiles->grid.scalar_bytes);
    for (int i = 0; i < n_lines; i++) {
        const size_t unit = 2 * task + (size_t)i;
        open_line(call, load->array, unit, &line[i]);
        to[i] = tiles_spectrum(tiles, load->spectra, load->bin, tiles->block, unit % channels, unit / channels);
    }
    load_rows(load, line, n_lines, z, rows);
    tile_columns(&tiles->transform, call->plan->kernels, z);
    call->plan->kernels->tile.split(&to[0], &to[1], z, tiles->transform.pair, tiles->transform.bins);
}

void tiles_load(const struct tiles_call *call, const struct tiles_array *array, char *spectra, size_t bin)
{
    struct load load = {call, array, spectra, bin};
    thread_loop(call->plan->threads, (array->n * tiles_lines(call->tiles) + 1) / 2, load_pair, &load);
}

// Row (d, h) of a line of tiles to where it belongs.
static void scatter_row(const struct tiles_call *call, const struct line *line, const char *z, size_t d, size_t h,
                        char *rows, const struct conv_finish *finish)
{
    const struct tiles *tiles = call->tiles;
    const struct kernels *kernels = call->plan->kernels;
    const size_t bytes = tiles->grid.scalar_bytes, n = tiles->grid.axis[2].tile;
    const bool spread = line->step[2] != 1;
    struct tile_rows to = {{0}, {0}, {0}};
    for (size_t l = 0; l < tiles->lanes; l++) {
        const struct tile_range *range = line->range[l];
        if (!in_range(&range[0], d) || !in_range(&range[1], h)) continue;
        to.row[l] = spread ? rows + l * n * bytes
                           : line->plane[l] + (row_at(line, l, d, h) + line->at[l][2]) * (ptrdiff_t)bytes;
        to.begin[l] = range[2].begin;
        to.end[l] = range[2].end;
    }
    if (!spread) {
        kernels->tile.scatter(&to, z, 2, n, finish);
        return;
    }
    kernels->tile.scatter(&to, z, 2, n, &(struct conv_finish){.bias = NULL});
    for (size_t l = 0; l < tiles->lanes; l++) {
        if (to.begin[l] >= to.end[l]) continue;
        const ptrdiff_t first = row_at(line, l, d, h) + line->at[l][2] + (ptrdiff_t)(line->step[2] * to.begin[l]);
        kernels->conv_store(line->plane[l] + (size_t)first * bytes, line->step[2],
                            (const char *)to.row[l] + to.begin[l] * bytes, to.end[l] - to.begin[l], finish);
    }
}

static void store_pair(void *context, size_t task, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *tiles = call->tiles;
    const struct kernels *kernels = call->plan->kernels;
    const struct shape *shape = &call->plan->shape;
    const size_t channels = call->part_n, units = channels * tiles_lines(tiles), *n = tiles->transform.n;
    const struct tiles_array array = {call->to, true, tiles->out, call->part_first, channels};
    char *rows = tiles_scratch(call, worker), *z = rows + tiles_rows_bytes(tiles, n);
    const int n_lines = 2 * task + 1 < units ? 2 : 1;
    struct line line[2];
    struct tile_spectrum from[2] = {{0}};
    struct conv_finish finish[2] = {{0}};
    for (int i = 0; i < n_lines; i++) {
        const size_t unit = 2 * task + (size_t)i, channel = unit % channels;
        open_line(call, &array, unit, &line[i]);
        from[i] = tiles_spectrum(tiles, call->y, tiles->y_bin, tiles->block, channel, unit / channels);
        if (tiles->direction != PARTITA_FORWARD) continue;
        const char *bias = call->filter->bias;
        finish[i].bias =
            bias ? bias + (call->group * tiles->out + call->part_first + channel) * shape->scalar_bytes : NULL;
        finish[i].relu = shape->relu;
    }
    kernels->tile.join(z, tiles->transform.pair, tiles->transform.bins, &from[0], &from[1],
                       0.25 / (double)(n[0] * n[1] * n[2]));
    tile_columns_inverse(&tiles->transform, kernels, z);
    for (size_t d = 0; d < tiles->grid.axis[0].tile; d++)
        for (size_t h = 0; h < tiles->grid.axis[1].tile; h++) {
            char *row = row_of(tiles, z, d, h);
            tile_row_inverse(&tiles->transform, kernels, row);
            for (int i = 0; i < n_lines; i++)
                scatter_row(call, &line[i], row + i * TILE_LINE_BYTES, d, h, rows, &finish[i]);
        }
}

void tiles_store(const struct tiles_call *call)
{
    thread_loop(call->plan->threads, (call->part_n * tiles_lines(call->tiles) + 1) / 2, store_pair, (void *)call);
}
