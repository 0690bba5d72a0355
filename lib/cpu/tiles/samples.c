// SPDX-License-Identifier: MIT
// Tiles of samples into spectra and spectra into tiles of samples. A task is two lines of tiles, of
// adjacent channels as a rule, as the real and the imaginary part of one transform.
#include <assert.h>
#include <string.h>

#include "geometry/samples.h"
#include "tiles.h"

size_t tiles_transform_bytes(const size_t n[3])
{
    return size_mul(tile_tables_elements(n), 2 * (size_t)TILE_LINE_BYTES);
}

void tiles_transform_row(const struct tile_tables *tables, tile_dft_fn *kernel, char *row)
{
    if (tables->n[2] > 1) kernel(row, &tables->dft[2], 1, 1, 0);
}

// All columns along axis 0 or 1.
static void transform_axis(const struct tile_tables *tables, tile_dft_fn *kernel, char *z, int axis)
{
    const int other = 1 - axis;
    if (tables->n[axis] == 1) return;
    for (size_t i = 0; i < tables->n[other]; i++)
        kernel(z + i * tables->step[other] * 2 * TILE_LINE_BYTES, &tables->dft[axis],
               tables->step[axis], tables->n[2], 1);
}

void tiles_transform_columns(const struct tile_tables *tables, const struct kernels *kernels,
                             char *z)
{
    transform_axis(tables, kernels->tile.forward, z, 1);
    transform_axis(tables, kernels->tile.forward, z, 0);
}

void tiles_transform_columns_inverse(const struct tile_tables *tables,
                                     const struct kernels *kernels, char *z)
{
    transform_axis(tables, kernels->tile.inverse, z, 0);
    transform_axis(tables, kernels->tile.inverse, z, 1);
}

// The lanes of a line: positions of one channel; a few positions of each of several channels;
// channels at one position.
enum tiles_order { TILES_POSITIONS, TILES_INTERLEAVED, TILES_CHANNELS };

// One array that is split into tiles and transformed, or written after the inverse transform.
struct tiles_array {
    const struct tiles_call *call;
    const char *data;
    char *spectra;
    size_t bin;      // from one bin of the spectra to the next
    bool outputs;    // the grid's outputs, else its inputs
    size_t channels; // of a group, branches included
    size_t first, n; // the selected channels
    enum tiles_order order;
};

// One line of tiles: where each lane's samples are.
struct line {
    char *plane[TILE_MAX_LANES];
    size_t size[3], step[3];
    ptrdiff_t at[TILE_MAX_LANES][3]; // sample of element 0 along each axis; may lie outside
    struct tile_range range[TILE_MAX_LANES][3]; // elements whose samples exist
    struct tile_range any[3];                   // elements that any lane has
    struct tile_range all;                      // elements along the last axis that every lane has
};

static const struct tile_side *side_of(const struct tile_axis *axis, bool outputs)
{
    return outputs ? &axis->out : &axis->in;
}

// Lane l of a line is one channel at one position of the batch: where its plane is, and what of its
// tile exists.
static void locate_lane(const struct tiles_array *array, struct line *line, size_t l,
                        size_t channel, size_t position)
{
    const struct tiles_call *call = array->call;
    const struct tile_grid *grid = &call->p->grid;
    const struct tiles_position *at = &call->spectra.position[position];
    const size_t branches = array->outputs == grid->branches_out ? grid->branches : 1;
    const size_t channels = array->channels / branches;
    const size_t plane = (at->item * grid->groups + call->group) * channels + channel / branches;
    size_t branch[3] = {0};
    if (branches > 1) tile_grid_branch(grid, channel % branches, branch);
    line->plane[l] = (char *)array->data +
                     plane * line->size[0] * line->size[1] * line->size[2] * grid->scalar_bytes;
    for (int a = 0; a < 3; a++) {
        const struct tile_axis *axis = &grid->axis[a];
        const struct tile_side *side = side_of(axis, array->outputs);
        const ptrdiff_t q =
            array->outputs ? tile_output(axis, at->tile[a]) : tile_input(axis, at->tile[a]);
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

static size_t line_count(const struct tiles_array *array)
{
    const struct tiles *p = array->call->p;
    if (array->order == TILES_INTERLEAVED) return p->x_scalars / p->lanes;
    if (array->order == TILES_CHANNELS) return ceil_div(array->n, p->lanes) * p->positions;
    return array->n * (p->batch / p->lanes);
}

// A lane's channel, counted from the array's first, and position of the batch. Lanes of padding
// have a channel or position that there is not.
struct lane {
    size_t channel, position;
};

static struct lane lane_of(const struct tiles_array *array, size_t line, size_t lane)
{
    const struct tiles *p = array->call->p;
    if (array->order == TILES_POSITIONS)
        return (struct lane){line % array->n, line / array->n * p->lanes + lane};
    if (array->order == TILES_CHANNELS) {
        const size_t lines = ceil_div(array->n, p->lanes);
        return (struct lane){line % lines * p->lanes + lane, line / lines};
    }
    const size_t at = line * p->lanes + lane, group = at / (p->in * TILES_ROWS) * TILES_ROWS;
    if (group >= p->positions) return (struct lane){0, p->positions};
    const size_t rows = size_min(TILES_ROWS, p->positions - group), own = at - group * p->in;
    if (own / rows >= p->in) return (struct lane){0, p->positions};
    return (struct lane){own / rows, group + own % rows};
}

// Where a line's spectrum is.
static struct tile_spectrum line_spectrum(const struct tiles_array *array, size_t line)
{
    const struct tiles *p = array->call->p;
    const struct lane first = lane_of(array, line, 0);
    const size_t bin = array->bin;
    char *spectra = array->spectra;
    if (array->order == TILES_INTERLEAVED)
        return (struct tile_spectrum){spectra + line * TILE_LINE_BYTES, bin, p->x_scalars};
    if (array->order == TILES_POSITIONS) {
        const size_t at = first.channel * 2 * p->batch + first.position;
        return (struct tile_spectrum){spectra + at * p->grid.scalar_bytes, bin, p->batch};
    }
    if (p->weight)
        return tiles_factors(p, spectra, bin, p->positions, first.position, first.channel);
    return tiles_sums(p, spectra, p->positions, first.position, first.channel);
}

static void open_line(const struct tiles_array *array, size_t index, struct line *line)
{
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    for (int a = 0; a < 3; a++) {
        const struct tile_side *side = side_of(&p->grid.axis[a], array->outputs);
        line->size[a] = side->size;
        line->step[a] = side->step;
        line->any[a] = (struct tile_range){SIZE_MAX, 0};
    }
    line->all = (struct tile_range){0, SIZE_MAX};
    for (size_t l = 0; l < p->lanes; l++) {
        const struct lane at = lane_of(array, index, l);
        if (at.channel < array->n && call->first + at.position < p->positions)
            locate_lane(array, line, l, array->first + at.channel, at.position);
        else memset(line->range[l], 0, sizeof line->range[l]);
    }
}

static bool in_range(const struct tile_range *range, size_t i)
{
    return range->begin <= i && i < range->end;
}

// Sample of element (d, h, 0) of a lane, counted from its plane along the first two axes.
static ptrdiff_t row_at(const struct line *line, size_t l, size_t d, size_t h)
{
    const ptrdiff_t at_d = line->at[l][0] + (ptrdiff_t)(line->step[0] * d);
    const ptrdiff_t at_h = line->at[l][1] + (ptrdiff_t)(line->step[1] * h);
    return (at_d * (ptrdiff_t)line->size[1] + at_h) * (ptrdiff_t)line->size[2];
}

// Two lines of a task, and the memory of its worker.
struct pair {
    const struct tiles_call *call;
    int n;
    struct line line[2];
    struct tiles_worker worker;
};

static void open_pair(const struct tiles_array *array, size_t first, int worker, struct pair *ret)
{
    const struct tiles_call *call = array->call;
    struct arena arena = tiles_worker_arena(call, worker);
    ret->call = call;
    ret->n = first + 1 < line_count(array) ? 2 : 1;
    ret->worker = tiles_layout_worker(call->p, &arena);
    assert(arena.used <= call->worker_bytes);
    for (int i = 0; i < ret->n; i++) open_line(array, first + (size_t)i, &ret->line[i]);
}

// Row (d, h) of a line of tiles into z: n samples of every lane.
static void gather_row(const struct pair *pair, const struct line *line, char *z, size_t d,
                       size_t h, size_t n)
{
    const struct tiles *p = pair->call->p;
    const size_t bytes = p->grid.scalar_bytes, row = p->n[2] * bytes;
    const ptrdiff_t plane = (ptrdiff_t)(line->size[0] * line->size[1] * line->size[2]);
    char *rows = pair->worker.rows;
    const void *from[TILE_MAX_LANES];
    for (size_t l = 0; l < p->lanes; l++) {
        const struct tile_range *range = line->range[l];
        from[l] = rows; // zeros
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
    pair->call->kernels->tile.gather(z, 2, from, n);
}

// Limits of the lanes' rows as lines of reals, for clipping.
struct limits {
    _Alignas(TILE_LINE_BYTES) char begin[TILE_LINE_BYTES], end[TILE_LINE_BYTES];
};

static struct limits limits_of(const struct tiles *p, const struct line *line)
{
    struct limits limits = {{0}, {0}};
    for (size_t l = 0; l < p->lanes; l++) {
        const struct tile_range *range = &line->range[l][2];
        if (p->grid.scalar_bytes == 8) {
            ((double *)limits.begin)[l] = (double)range->begin;
            ((double *)limits.end)[l] = (double)range->end;
        } else {
            ((float *)limits.begin)[l] = (float)range->begin;
            ((float *)limits.end)[l] = (float)range->end;
        }
    }
    return limits;
}

static void clip_row(const struct kernels *kernels, const struct line *line,
                     const struct limits *limits, char *z, size_t n)
{
    const size_t begin = size_min(line->all.begin, n);
    const size_t end = size_max(begin, size_min(line->all.end, n));
    kernels->tile.clip(z, 2, limits->begin, limits->end, 0, begin);
    kernels->tile.clip(z, 2, limits->begin, limits->end, end, n);
}

// The samples of a pair, rows transformed.
static void load_rows(const struct pair *pair, bool outputs)
{
    const struct tiles *p = pair->call->p;
    const struct kernels *kernels = pair->call->kernels;
    const struct tile_axis *axis = &p->grid.axis[2];
    const size_t columns = size_min(outputs ? axis->tile : axis->extent, p->n[2]);
    struct limits limits[2];
    for (int i = 0; i < pair->n; i++) limits[i] = limits_of(p, &pair->line[i]);
    for (size_t d = 0; d < p->n[0]; d++)
        for (size_t h = 0; h < p->n[1]; h++) {
            char *row = tiles_row(p, pair->worker.z, d, h);
            bool any = false;
            for (int i = 0; i < pair->n; i++)
                any = any ||
                      (in_range(&pair->line[i].any[0], d) && in_range(&pair->line[i].any[1], h));
            const size_t kept = any && pair->n == 2 ? columns : 0;
            memset(row + kept * 2 * TILE_LINE_BYTES, 0, (p->n[2] - kept) * 2 * TILE_LINE_BYTES);
            if (!any) continue;
            for (int i = 0; i < pair->n; i++) {
                char *z = row + i * TILE_LINE_BYTES;
                gather_row(pair, &pair->line[i], z, d, h, columns);
                clip_row(kernels, &pair->line[i], &limits[i], z, columns);
            }
            tiles_transform_row(&p->tables, kernels->tile.forward, row);
        }
}

static void load_pair(void *context, size_t task, int worker)
{
    const struct tiles_array *array = context;
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    struct pair pair;
    struct tile_spectrum to[2] = {{0}};
    open_pair(array, 2 * task, worker, &pair);
    for (int i = 0; i < pair.n; i++) to[i] = line_spectrum(array, 2 * task + (size_t)i);
    memset(pair.worker.rows, 0, p->n[2] * p->grid.scalar_bytes);
    load_rows(&pair, array->outputs);
    tiles_transform_columns(&p->tables, call->kernels, pair.worker.z);
    call->kernels->tile.split(&to[0], &to[1], pair.worker.z, p->tables.pair, p->bins);
}

void tiles_load(const struct tiles_call *call, bool gy)
{
    const struct tiles *p = call->p;
    const enum tiles_order order = gy ? TILES_CHANNELS : TILES_INTERLEAVED;
    struct tiles_array array = {.call = call,
                                .data = gy ? call->gy : call->x,
                                .spectra = gy ? call->spectra.gy : call->spectra.x,
                                .bin = gy ? p->gy_bin : p->x_bin,
                                .outputs = gy,
                                .channels = gy ? p->out : p->in,
                                .order = p->product == TILES_TRANSPOSED ? order : TILES_POSITIONS};
    array.n = array.channels;
    thread_loop(call->plan->threads, ceil_div(line_count(&array), 2), load_pair, &array);
}

// Row (d, h) of a line of tiles to where it belongs.
static void scatter_row(const struct pair *pair, const struct line *line, const char *z, size_t d,
                        size_t h, const struct conv_finish *finish)
{
    const struct tiles *p = pair->call->p;
    const struct kernels *kernels = pair->call->kernels;
    const size_t bytes = p->grid.scalar_bytes, n = p->grid.axis[2].tile;
    const bool spread = line->step[2] != 1;
    struct tile_rows to = {{0}, {0}, {0}};
    for (size_t l = 0; l < p->lanes; l++) {
        const struct tile_range *range = line->range[l];
        if (!in_range(&range[0], d) || !in_range(&range[1], h)) continue;
        const ptrdiff_t first = row_at(line, l, d, h) + line->at[l][2];
        to.row[l] =
            spread ? pair->worker.rows + l * n * bytes : line->plane[l] + first * (ptrdiff_t)bytes;
        to.begin[l] = range[2].begin;
        to.end[l] = range[2].end;
    }
    kernels->tile.scatter(&to, z, 2, n, spread ? &(struct conv_finish){.bias = NULL} : finish);
    for (size_t l = 0; l < p->lanes && spread; l++) {
        if (to.begin[l] >= to.end[l]) continue;
        const char *bias = finish->bias;
        const struct conv_finish own = {.bias = bias ? bias + l * bytes : NULL,
                                        .relu = finish->relu};
        const ptrdiff_t first =
            row_at(line, l, d, h) + line->at[l][2] + (ptrdiff_t)(line->step[2] * to.begin[l]);
        kernels->conv_store(line->plane[l] + (size_t)first * bytes, line->step[2],
                            (const char *)to.row[l] + to.begin[l] * bytes, to.end[l] - to.begin[l],
                            &own);
    }
}

// Bias and activation of forward, lane by lane.
static struct conv_finish line_finish(const struct tiles_array *array, size_t line,
                                      char bias[TILE_LINE_BYTES])
{
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes;
    if (call->plan->direction != PARTITA_FORWARD) return (struct conv_finish){.bias = NULL};
    const char *from = call->filter->bias;
    for (size_t l = 0; from && l < p->lanes; l++) {
        const size_t channel = size_min(lane_of(array, line, l).channel, array->n - 1);
        memcpy(bias + l * bytes, from + (call->group * p->out + array->first + channel) * bytes,
               bytes);
    }
    return (struct conv_finish){.bias = from ? bias : NULL, .relu = call->plan->shape.relu};
}

static void store_pair(void *context, size_t task, int worker)
{
    const struct tiles_array *array = context;
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    const struct kernels *kernels = call->kernels;
    struct pair pair;
    struct tile_spectrum from[2] = {{0}};
    struct conv_finish finish[2] = {{0}};
    _Alignas(TILE_LINE_BYTES) char bias[2][TILE_LINE_BYTES];
    open_pair(array, 2 * task, worker, &pair);
    for (int i = 0; i < 2 && i < pair.n; i++) {
        const size_t line = 2 * task + (size_t)i;
        from[i] = line_spectrum(array, line);
        finish[i] = line_finish(array, line, bias[i]);
    }
    kernels->tile.join(pair.worker.z, p->tables.pair, p->bins, &from[0], &from[1],
                       0.25 / (double)(p->n[0] * p->n[1] * p->n[2]));
    tiles_transform_columns_inverse(&p->tables, kernels, pair.worker.z);
    for (size_t d = 0; d < p->grid.axis[0].tile; d++)
        for (size_t h = 0; h < p->grid.axis[1].tile; h++) {
            char *row = tiles_row(p, pair.worker.z, d, h);
            tiles_transform_row(&p->tables, kernels->tile.inverse, row);
            for (int i = 0; i < pair.n; i++)
                scatter_row(&pair, &pair.line[i], row + i * TILE_LINE_BYTES, d, h, &finish[i]);
        }
}

void tiles_store(const struct tiles_call *call)
{
    const bool transposed = call->p->product == TILES_TRANSPOSED;
    struct tiles_array array = {.call = call,
                                .data = call->to,
                                .spectra = call->spectra.y,
                                .bin = call->p->y_bin,
                                .outputs = true,
                                .channels = call->p->out,
                                .first = call->oc_first,
                                .n = call->oc_n,
                                .order = transposed ? TILES_CHANNELS : TILES_POSITIONS};
    thread_loop(call->plan->threads, ceil_div(line_count(&array), 2), store_pair, &array);
}
