// SPDX-License-Identifier: MIT
// Tiles of samples into spectra and spectra into tiles of samples. A task is two lines of
// positions, of neighbouring channels as a rule, as the real and the imaginary part of one
// transform.
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "geometry/samples.h"
#include "tiles.h"

// One line of tiles of one channel: where each lane's samples are.
struct line {
    char *plane[TILE_MAX_LANES];
    size_t size[3], step[3];
    ptrdiff_t at[TILE_MAX_LANES][3]; // sample of element 0 along each axis; may lie outside
    struct tile_range range[TILE_MAX_LANES][3]; // elements whose samples exist
    struct tile_range any[3],
        all; // elements that any lane has; along the last axis, that every one has
};

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static const struct tile_side *side_of(const struct tile_axis *axis, bool outputs)
{
    return outputs ? &axis->out : &axis->in;
}

// Lane l of a line is one channel at one position of the block: where its plane is, what of its
// tile exists.
static void place_lane(const struct tiles_call *call, const struct tiles_array *array,
                       struct line *line, size_t l, size_t channel, size_t position)
{
    const struct tiles *tiles = call->tiles;
    const struct tile_grid *grid = &tiles->grid;
    const struct tiles_place *place = &call->place[position];
    const size_t phases = array->outputs == grid->phases_out ? grid->phases : 1,
                 channels = array->channels / phases;
    size_t phase[3] = {0};
    if (phases > 1) tile_grid_phase(grid, channel % phases, phase);
    line->plane[l] = (char *)array->data +
                     ((place->item * grid->groups + call->group) * channels + channel / phases) *
                         line->size[0] * line->size[1] * line->size[2] * grid->scalar_bytes;
    for (int a = 0; a < 3; a++) {
        const struct tile_axis *axis = &tiles->grid.axis[a];
        const struct tile_side *side = side_of(axis, array->outputs);
        const ptrdiff_t q =
            array->outputs ? tile_output(axis, place->tile[a]) : tile_input(axis, place->tile[a]);
        line->at[l][a] = tile_sample(side, place->image[a], phase[a], q);
        line->range[l][a] = tile_within(side, place->image[a], phase[a], q,
                                        array->outputs ? axis->tile : axis->extent);
        if (line->range[l][a].begin >= line->range[l][a].end) continue;
        line->any[a].begin = size_min(line->any[a].begin, line->range[l][a].begin);
        line->any[a].end = most(line->any[a].end, line->range[l][a].end);
    }
    line->all.begin = most(line->all.begin, line->range[l][2].begin);
    line->all.end = size_min(line->all.end, line->range[l][2].end);
}

// Lines of an array.
static size_t units_of(const struct tiles *tiles, const struct tiles_array *array)
{
    switch (array->order) {
    case TILES_CELLS:
        return tiles->cells / tiles->lanes;
    case TILES_CHANNELS:
        return ceil_div(array->n, tiles->lanes) * tiles->positions;
    default:
        return array->n * tiles_lines(tiles);
    }
}

// A unit's channel, counted from the array's first on, and position of the block; of order
// TILES_CELLS those of one cell.
struct unit {
    size_t channel, position;
};

static struct unit unit_of(const struct tiles *tiles, const struct tiles_array *array, size_t unit,
                           size_t lane)
{
    if (array->order == TILES_POSITIONS)
        return (struct unit){unit % array->n, unit / array->n * tiles->lanes + lane};
    if (array->order == TILES_CHANNELS) {
        const size_t lines = ceil_div(array->n, tiles->lanes);
        return (struct unit){unit % lines * tiles->lanes + lane, unit / lines};
    }
    const size_t cell = unit * tiles->lanes + lane,
                 group = cell / (tiles->in * TILES_ROWS) * TILES_ROWS;
    if (group >= tiles->positions) return (struct unit){0, tiles->positions};
    const size_t rows = size_min(TILES_ROWS, tiles->positions - group),
                 own = cell - group * tiles->in;
    return own / rows < tiles->in ? (struct unit){own / rows, group + own % rows}
                                  : (struct unit){0, tiles->positions};
}

// Where a unit's spectrum is.
static struct tile_spectrum spectrum_of(const struct tiles_call *call,
                                        const struct tiles_array *array, char *spectra, size_t bin,
                                        size_t unit)
{
    const struct tiles *tiles = call->tiles;
    const struct unit at = unit_of(tiles, array, unit, 0);
    if (array->order == TILES_CELLS)
        return (struct tile_spectrum){spectra + unit * TILE_LINE_BYTES, bin, tiles->cells};
    if (array->order == TILES_POSITIONS)
        return tiles_spectrum(tiles, spectra, bin, tiles->block, at.channel,
                              at.position / tiles->lanes);
    if (tiles->direction == PARTITA_BACKWARD_WEIGHT)
        return tiles_factors(tiles, spectra, bin, tiles->positions, at.position, at.channel);
    return tiles_sums(tiles, spectra, tiles->positions, at.position, at.channel);
}

// A unit of a block, see tiles_array: channels run fastest.
static void open_line(const struct tiles_call *call, const struct tiles_array *array, size_t unit,
                      struct line *line)
{
    const struct tiles *tiles = call->tiles;
    const struct tile_grid *grid = &tiles->grid;
    for (int a = 0; a < 3; a++) {
        const struct tile_side *side = side_of(&grid->axis[a], array->outputs);
        line->size[a] = side->size;
        line->step[a] = side->step;
        line->any[a] = (struct tile_range){SIZE_MAX, 0};
    }
    line->all = (struct tile_range){0, SIZE_MAX};
    for (size_t l = 0; l < tiles->lanes; l++) {
        const struct unit at = unit_of(tiles, array, unit, l);
        if (at.channel < array->n && call->first + at.position < tiles->positions)
            place_lane(call, array, line, l, array->first + at.channel, at.position);
        else memset(line->range[l], 0, sizeof line->range[l]);
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

// Row (d, h) of a line of tiles into z: n samples of every lane. `rows` is a row of zeros and one
// for each lane.
static void gather_row(const struct tiles *tiles, const struct kernels *kernels,
                       const struct line *line, char *z, size_t d, size_t h, size_t n, char *rows)
{
    const size_t bytes = tiles->grid.scalar_bytes, lanes = tiles->lanes,
                 row = tiles->transform.n[2] * bytes;
    const void *from[TILE_MAX_LANES];
    const ptrdiff_t plane = (ptrdiff_t)(line->size[0] * line->size[1] * line->size[2]);
    for (size_t l = 0; l < lanes; l++) {
        const struct tile_range *range = line->range[l];
        from[l] = rows;
        if (!in_range(&range[0], d) || !in_range(&range[1], h) || range[2].begin >= range[2].end)
            continue;
        const ptrdiff_t base = row_at(line, l, d, h), first = base + line->at[l][2];
        if (line->step[2] == 1 && first >= 0 && first + (ptrdiff_t)n <= plane) {
            from[l] = line->plane[l] + (size_t)first * bytes;
            continue;
        }
        char *copy = rows + (l + 1) * row;
        samples_window(copy, line->plane[l] + (size_t)base * bytes, line->size[2], line->at[l][2],
                       line->step[2], n, bytes);
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

static void clip_row(const struct kernels *kernels, const struct line *line,
                     const struct limits *limits, char *z, size_t n)
{
    const size_t begin = size_min(line->all.begin, n),
                 end = most(begin, size_min(line->all.end, n));
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
static void load_rows(const struct load *load, const struct line *line, int n_lines, char *z,
                      char *rows)
{
    const struct tiles *tiles = load->call->tiles;
    const struct kernels *kernels = load->call->plan->kernels;
    const size_t *n = tiles->transform.n;
    const struct tile_axis *axis = &tiles->grid.axis[2];
    const size_t columns = size_min(load->array->outputs ? axis->tile : axis->extent, n[2]);
    struct limits limits[2];
    for (int i = 0; i < n_lines; i++) limits[i] = limits_of(tiles, &line[i]);
    for (size_t d = 0; d < n[0]; d++)
        for (size_t h = 0; h < n[1]; h++) {
            char *row = row_of(tiles, z, d, h);
            bool any = false;
            for (int i = 0; i < n_lines; i++)
                any = any || (in_range(&line[i].any[0], d) && in_range(&line[i].any[1], h));
            if (!any || n_lines == 1) memset(row, 0, n[2] * 2 * TILE_LINE_BYTES);
            else
                memset(row + columns * 2 * TILE_LINE_BYTES, 0,
                       (n[2] - columns) * 2 * TILE_LINE_BYTES);
            if (!any) continue;
            for (int i = 0; i < n_lines; i++) {
                gather_row(tiles, kernels, &line[i], row + i * TILE_LINE_BYTES, d, h, columns,
                           rows);
                clip_row(kernels, &line[i], &limits[i], row + i * TILE_LINE_BYTES, columns);
            }
            tiles_transform_row(&tiles->transform, kernels, row);
        }
}

static void load_pair(void *context, size_t task, int worker)
{
    const struct load *load = context;
    const struct tiles_call *call = load->call;
    const struct tiles *tiles = call->tiles;
    const size_t units = units_of(tiles, load->array);
    char *rows = tiles_scratch(call, worker),
         *z = rows + tiles_rows_bytes(tiles, tiles->transform.n);
    const int n_lines = 2 * task + 1 < units ? 2 : 1;
    struct line line[2];
    struct tile_spectrum to[2] = {{0}};
    memset(rows, 0, tiles->transform.n[2] * tiles->grid.scalar_bytes);
    for (int i = 0; i < n_lines; i++) {
        const size_t unit = 2 * task + (size_t)i;
        open_line(call, load->array, unit, &line[i]);
        to[i] = spectrum_of(call, load->array, load->spectra, load->bin, unit);
    }
    load_rows(load, line, n_lines, z, rows);
    tiles_transform_columns(&tiles->transform, call->plan->kernels, z);
    call->plan->kernels->tile.split(&to[0], &to[1], z, tiles->transform.pair,
                                    tiles->transform.bins);
}

void tiles_load(const struct tiles_call *call, const struct tiles_array *array, char *spectra,
                size_t bin)
{
    struct load load = {call, array, spectra, bin};
    thread_loop(call->plan->threads, ceil_div(units_of(call->tiles, array), 2), load_pair, &load);
}

// Row (d, h) of a line of tiles to where it belongs.
static void scatter_row(const struct tiles_call *call, const struct line *line, const char *z,
                        size_t d, size_t h, char *rows, const struct conv_finish *finish)
{
    const struct tiles *tiles = call->tiles;
    const struct kernels *kernels = call->plan->kernels;
    const size_t bytes = tiles->grid.scalar_bytes, n = tiles->grid.axis[2].tile;
    const bool spread = line->step[2] != 1;
    struct tile_rows to = {{0}, {0}, {0}};
    for (size_t l = 0; l < tiles->lanes; l++) {
        const struct tile_range *range = line->range[l];
        if (!in_range(&range[0], d) || !in_range(&range[1], h)) continue;
        to.row[l] =
            spread ? rows + l * n * bytes
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
        const ptrdiff_t first =
            row_at(line, l, d, h) + line->at[l][2] + (ptrdiff_t)(line->step[2] * to.begin[l]);
        kernels->conv_store(
            line->plane[l] + (size_t)first * bytes, line->step[2],
            (const char *)to.row[l] + to.begin[l] * bytes, to.end[l] - to.begin[l],
            &(struct conv_finish){.bias =
                                      finish->bias ? (const char *)finish->bias + l * bytes : NULL,
                                  .relu = finish->relu});
    }
}

// What of forward's outputs is finished, lane by lane.
static struct conv_finish finish_of(const struct tiles_call *call, const struct tiles_array *array,
                                    size_t unit, char bias[TILE_LINE_BYTES])
{
    const struct tiles *tiles = call->tiles;
    const size_t bytes = tiles->grid.scalar_bytes;
    if (tiles->direction != PARTITA_FORWARD) return (struct conv_finish){.bias = NULL};
    const char *from = call->filter->bias;
    for (size_t l = 0; from && l < tiles->lanes; l++) {
        const size_t channel = size_min(unit_of(tiles, array, unit, l).channel, array->n - 1);
        memcpy(bias + l * bytes, from + (call->group * tiles->out + array->first + channel) * bytes,
               bytes);
    }
    return (struct conv_finish){.bias = from ? bias : NULL, .relu = call->plan->shape.relu};
}

static struct tiles_array stored(const struct tiles_call *call)
{
    const struct tiles *tiles = call->tiles;
    return (struct tiles_array){
        call->to,     true,
        tiles->out,   call->part_first,
        call->part_n, tiles->product == TILES_TURNED ? TILES_CHANNELS : TILES_POSITIONS};
}

static void store_pair(void *context, size_t task, int worker)
{
    const struct tiles_call *call = context;
    const struct tiles *tiles = call->tiles;
    const struct kernels *kernels = call->plan->kernels;
    const struct tiles_array array = stored(call);
    const size_t units = units_of(tiles, &array), *n = tiles->transform.n;
    char *rows = tiles_scratch(call, worker), *z = rows + tiles_rows_bytes(tiles, n);
    const int n_lines = 2 * task + 1 < units ? 2 : 1;
    struct line line[2];
    struct tile_spectrum from[2] = {{0}};
    struct conv_finish finish[2] = {{0}};
    _Alignas(TILE_LINE_BYTES) char bias[2][TILE_LINE_BYTES];
    for (int i = 0; i < n_lines; i++) {
        const size_t unit = 2 * task + (size_t)i;
        open_line(call, &array, unit, &line[i]);
        from[i] = spectrum_of(call, &array, call->y, tiles->y_bin, unit);
        finish[i] = finish_of(call, &array, unit, bias[i]);
    }
    kernels->tile.join(z, tiles->transform.pair, tiles->transform.bins, &from[0], &from[1],
                       0.25 / (double)(n[0] * n[1] * n[2]));
    tiles_transform_columns_inverse(&tiles->transform, kernels, z);
    for (size_t d = 0; d < tiles->grid.axis[0].tile; d++)
        for (size_t h = 0; h < tiles->grid.axis[1].tile; h++) {
            char *row = row_of(tiles, z, d, h);
            tiles_transform_row_inverse(&tiles->transform, kernels, row);
            for (int i = 0; i < n_lines; i++)
                scatter_row(call, &line[i], row + i * TILE_LINE_BYTES, d, h, rows, &finish[i]);
        }
}

void tiles_store(const struct tiles_call *call)
{
    const struct tiles_array array = stored(call);
    thread_loop(call->plan->threads, ceil_div(units_of(call->tiles, &array), 2), store_pair,
                (void *)call);
}
