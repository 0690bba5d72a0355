// SPDX-License-Identifier: MIT
// Tiles of samples into spectra and spectra into tiles of samples. A pair of lines of
// tiles, of adjacent channels as a rule, is the real and the imaginary part of one transform. A
// task is one pair, or with staged channels all pairs of these.
#include <assert.h>
#include <string.h>

#include "base/scalar.h"
#include "cpu/conv/finish.h"
#include "geometry/samples.h"
#include "lines.h"

// Two lines of a task, and the memory of its worker.
struct pair {
    const struct tiles_call *call;
    int n;
    struct line line[2];
    struct tiles_worker worker;
    char *staged; // rows of the first line's channel; NULL: channels are not staged
};

// Row (d, h) of a lane of line i of a pair, in the staged rows.
static char *staged_row(const struct pair *pair, size_t i, size_t l, size_t d, size_t h)
{
    const struct tiles *p = pair->call->p;
    const size_t row = ((l * p->n[0] + d) * p->n[1] + h) * p->n[2];
    return pair->staged + (i * tiles_staged_pitch(p) + row) * p->grid.scalar_bytes;
}

// The lines of a task: two, or with staged channels those of adjacent channels.
struct task_lines {
    size_t first, n;
};

static struct task_lines task_lines(const struct tiles_array *array, size_t task)
{
    const size_t staged = tiles_staged(array->call->p);
    const size_t lines = tiles_line_count(array);
    if (!staged) return (struct task_lines){2 * task, size_min(2, lines - 2 * task)};
    const size_t blocks = ceil_div(array->n, staged), channel = task % blocks * staged;
    return (struct task_lines){task / blocks * array->n + channel,
                               size_min(staged, array->n - channel)};
}

static size_t task_count(const struct tiles_array *array)
{
    const struct tiles *p = array->call->p;
    const size_t staged = tiles_staged(p);
    return staged ? p->batch / p->lanes * ceil_div(array->n, staged)
                  : ceil_div(tiles_line_count(array), 2);
}

// Lines i and i + 1 of a task, if it has both.
static void open_pair(const struct tiles_array *array, const struct task_lines *lines, size_t i,
                      int worker, struct pair *ret)
{
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    struct arena arena = tiles_worker_arena(call, worker);
    ret->call = call;
    ret->n = lines->n - i > 1 ? 2 : 1;
    ret->worker = tiles_layout_worker(p, &arena);
    assert(arena.used <= call->worker_bytes);
    const size_t bytes = tiles_staged_pitch(p) * p->grid.scalar_bytes; // of a channel
    ret->staged = tiles_staged(p) ? ret->worker.staged + i * bytes : NULL;
    for (int k = 0; k < ret->n; k++)
        tiles_open_line(array, lines->first + i + (size_t)k, &ret->line[k]);
}

// Moves rows of all lanes of adjacent channels, of which the pair's first line is the first, to
// the staged rows or back, if there are any. What is outside a lane's range is not moved.
static void move_staged(const struct pair *pair, size_t channels, bool store)
{
    const struct tiles *p = pair->call->p;
    const struct line *line = &pair->line[0];
    const size_t bytes = p->grid.scalar_bytes, pitch = tiles_staged_pitch(p);
    const size_t step = line->step[2] * line->position;
    const size_t next = line->step[1] * line->size[2] * line->position * bytes; // row
    for (size_t l = 0; pair->staged && l < p->lanes; l++) {
        const struct tile_range *range = line->range[l];
        if (range[2].begin >= size_min(range[2].end, p->n[2])) continue;
        const size_t n = size_min(range[2].end, p->n[2]) - range[2].begin;
        for (size_t d = range[0].begin; d < range[0].end && d < p->n[0]; d++)
            for (size_t h = range[1].begin; h < range[1].end && h < p->n[1]; h++) {
                const ptrdiff_t at = row_at(line, l, d, h) + line->at[l][2] +
                                     (ptrdiff_t)(line->step[2] * range[2].begin);
                char *array = line->plane[l] + (size_t)at * line->position * bytes;
                char *staged = staged_row(pair, 0, l, d, h) + range[2].begin * bytes;
                if (h + 1 < size_min(range[1].end, p->n[1]))
                    samples_prefetch(array + next, step * bytes, n, store);
                if (store) pair->call->kernels->transpose(array, step, staged, pitch, channels, n);
                else pair->call->kernels->transpose(staged, pitch, array, step, n, channels);
            }
    }
}

// Samples of the run that begins at lane l, from a row at `base` on, to the rows of
// its lanes. What is outside the row is not written: it is clipped.
static void gather_run(const struct pair *pair, const struct line *line, size_t l, ptrdiff_t base,
                       size_t n)
{
    const struct tiles *p = pair->call->p;
    const size_t bytes = p->grid.scalar_bytes, step = line->step[2];
    const struct inside in = samples_inside(line->size[2], line->at[l][2], step, n);
    const ptrdiff_t first = base + line->at[l][2] + (ptrdiff_t)(in.begin * step);
    char *rows = pair->worker.rows + ((l + 1) * p->n[2] + in.begin) * bytes;
    const char *from = line->plane[l] + (size_t)first * line->position * bytes;
    if (line->run[l].n == 1) samples_copy(rows, 1, from, step * line->position, in.count, bytes);
    else if (line->run[l].n)
        pair->call->kernels->transpose(rows, line->run[l].pace * p->n[2], from,
                                       step * line->position, in.count, line->run[l].n);
}

// Row (d, h) of line i of a pair into z: n samples of every lane.
static void gather_row(const struct pair *pair, int i, char *z, size_t d, size_t h, size_t n)
{
    const struct line *line = &pair->line[i];
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
        if (pair->staged) {
            from[l] = staged_row(pair, (size_t)i, l, d, h);
            continue;
        }
        const ptrdiff_t base = row_at(line, l, d, h), first = base + line->at[l][2];
        if (line->step[2] * line->position == 1 && first >= 0 && first + (ptrdiff_t)n <= plane) {
            from[l] = line->plane[l] + (size_t)first * bytes;
            continue;
        }
        char *copy = rows + (l + 1) * row;
        from[l] = copy;
        if (is_spread(line)) gather_run(pair, line, l, base, n);
        else
            samples_window(copy, line->plane[l] + (size_t)base * bytes, line->size[2],
                           line->at[l][2], 1, n, bytes);
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
        scalar_put(p->grid.scalar_bytes == 8, limits.begin, l, (double)range->begin);
        scalar_put(p->grid.scalar_bytes == 8, limits.end, l, (double)range->end);
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
    uint64_t peak = 0;
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
                gather_row(pair, i, z, d, h, columns);
                clip_row(kernels, &pair->line[i], &limits[i], z, columns);
            }
            if (pair->call->peak) {
                const uint64_t of_row = kernels->peak(row, columns * 2 * p->lanes);
                peak = of_row > peak ? of_row : peak;
            }
            tiles_transform_row(&p->tables, kernels->tile.forward, row);
        }
    if (peak) operands_raise_peak(pair->call->peak, peak);
}

static void load_pair(const struct tiles_array *array, size_t line, struct pair *pair)
{
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    struct tile_spectrum to[2] = {{0}};
    for (int i = 0; i < pair->n; i++) to[i] = tiles_line_spectrum(array, line + (size_t)i);
    memset(pair->worker.rows, 0, p->n[2] * p->grid.scalar_bytes);
    load_rows(pair, array->outputs);
    tiles_transform_columns(&p->tables, call->kernels, pair->worker.z);
    call->kernels->tile.split(&to[0], &to[1], pair->worker.z, p->tables.pair, p->bins);
}

// One task: a pair of lines, or with staged channels all pairs of some adjacent ones.
static void load_lines(void *context, size_t task, int worker)
{
    const struct tiles_array *array = context;
    const struct task_lines lines = task_lines(array, task);
    struct pair pair;
    for (size_t i = 0; i < lines.n; i += 2) {
        open_pair(array, &lines, i, worker, &pair);
        if (i == 0) move_staged(&pair, lines.n, false);
        load_pair(array, lines.first + i, &pair);
    }
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
    array.strides =
        shape_strides(&call->plan->shape, gy || call->plan->direction == PARTITA_BACKWARD_DATA);
    thread_loop(call->plan->threads, task_count(&array), load_lines, &array);
}

// Row (d, h) of line i of a pair to where it belongs.
static void scatter_row(const struct pair *pair, int i, const char *z, size_t d, size_t h,
                        const struct conv_finish *finish)
{
    const struct line *line = &pair->line[i];
    const struct tiles *p = pair->call->p;
    const struct kernels *kernels = pair->call->kernels;
    const size_t bytes = p->grid.scalar_bytes, n = p->grid.axis[2].tile;
    const bool spread = is_spread(line) && !pair->staged;
    struct tile_rows to = {{0}, {0}, {0}};
    for (size_t l = 0; l < p->lanes; l++) {
        const struct tile_range *range = line->range[l];
        if (!in_range(&range[0], d) || !in_range(&range[1], h)) continue;
        const ptrdiff_t first = row_at(line, l, d, h) + line->at[l][2];
        to.row[l] =
            spread ? pair->worker.rows + l * n * bytes : line->plane[l] + first * (ptrdiff_t)bytes;
        if (pair->staged) to.row[l] = staged_row(pair, (size_t)i, l, d, h);
        to.begin[l] = range[2].begin;
        to.end[l] = range[2].end;
    }
    kernels->tile.scatter(&to, z, 2, n, finish);
    for (size_t l = 0; l < p->lanes && spread; l++) {
        if (!line->run[l].n || to.begin[l] >= to.end[l]) continue;
        const ptrdiff_t first =
            row_at(line, l, d, h) + line->at[l][2] + (ptrdiff_t)(line->step[2] * to.begin[l]);
        char *y = line->plane[l] + (size_t)first * line->position * bytes;
        const char *row = (const char *)to.row[l] + to.begin[l] * bytes;
        const size_t step = line->step[2] * line->position, count = to.end[l] - to.begin[l];
        if (line->run[l].n == 1) samples_copy(y, step, row, 1, count, bytes);
        else kernels->transpose(y, step, row, line->run[l].pace * n, line->run[l].n, count);
    }
}

// Bias and activation of forward, lane by lane.
static struct conv_finish line_finish(const struct tiles_array *array, size_t line,
                                      char bias[TILE_LINE_BYTES])
{
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes;
    struct conv_finish finish = filter_finish(call->filter, 0);
    const char *from = finish.bias;
    for (size_t l = 0; from && l < p->lanes; l++) {
        const size_t channel = size_min(tiles_lane(array, line, l).channel, array->n - 1);
        memcpy(bias + l * bytes, from + (call->group * p->out + array->first + channel) * bytes,
               bytes);
    }
    if (from) finish.bias = bias;
    return finish;
}

static void store_pair(const struct tiles_array *array, size_t first, struct pair *pair)
{
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    const struct kernels *kernels = call->kernels;
    struct tile_spectrum from[2] = {{0}};
    struct conv_finish finish[2] = {{0}};
    _Alignas(TILE_LINE_BYTES) char bias[2][TILE_LINE_BYTES];
    for (int i = 0; i < 2 && i < pair->n; i++) {
        const size_t line = first + (size_t)i;
        from[i] = tiles_line_spectrum(array, line);
        finish[i] = line_finish(array, line, bias[i]);
    }
    kernels->tile.join(pair->worker.z, p->tables.pair, p->bins, &from[0], &from[1],
                       0.25 / (double)(p->n[0] * p->n[1] * p->n[2]));
    tiles_transform_columns_inverse(&p->tables, kernels, pair->worker.z);
    for (size_t d = 0; d < p->grid.axis[0].tile; d++)
        for (size_t h = 0; h < p->grid.axis[1].tile; h++) {
            char *row = tiles_row(p, pair->worker.z, d, h);
            tiles_transform_row(&p->tables, kernels->tile.inverse, row);
            for (int i = 0; i < pair->n; i++)
                scatter_row(pair, i, row + i * TILE_LINE_BYTES, d, h, &finish[i]);
        }
}

static void store_lines(void *context, size_t task, int worker)
{
    const struct tiles_array *array = context;
    const struct task_lines lines = task_lines(array, task);
    struct pair pair;
    for (size_t i = 0; i < lines.n; i += 2) {
        open_pair(array, &lines, i, worker, &pair);
        store_pair(array, lines.first + i, &pair);
    }
    open_pair(array, &lines, 0, worker, &pair);
    move_staged(&pair, lines.n, true);
}

void tiles_store(const struct tiles_call *call)
{
    const bool transposed = call->p->product == TILES_TRANSPOSED;
    struct tiles_array array = {
        .call = call,
        .data = call->to,
        .spectra = call->spectra.y,
        .bin = call->p->y_bin,
        .outputs = true,
        .channels = call->p->out,
        .first = call->oc_first,
        .n = call->oc_n,
        .strides = shape_strides(&call->plan->shape, call->plan->direction == PARTITA_FORWARD),
        .order = transposed ? TILES_CHANNELS : TILES_POSITIONS};
    thread_loop(call->plan->threads, task_count(&array), store_lines, &array);
}
