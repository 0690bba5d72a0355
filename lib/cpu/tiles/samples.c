// SPDX-License-Identifier: MIT
// Lines of samples or taps into spectra, and spectra into lines of results or of the gradient. Two
// lines, of adjacent channels as a rule, are the real and the imaginary part of one transform. A
// task has a few lines. Where channels come last, it first moves the samples of all of them to rows
// of each lane, or at last from these rows. Windows of gx overlap: a task adds all those of a pair
// of lines of channels and of an item of the batch, one after the other.
#include <assert.h>
#include <string.h>

#include "base/scalar.h"
#include "cpu/conv/finish.h"
#include "geometry/samples.h"
#include "lines.h"

// The columns in which the samples of lanes begin and end, as lines of reals.
struct limits {
    _Alignas(TILE_LINE_BYTES) char begin[TILE_LINE_BYTES], end[TILE_LINE_BYTES];
};

struct task {
    const struct tiles_array *array;
    size_t first, lines;
    struct tiles_worker worker;
    char *spectra; // of two lines of taps
    // Two of the lines, from line `at` of the task on: their number, samples and spectra; of inputs
    // the limits of their samples, of results their bias and activation.
    size_t at, n;
    struct line line[2];
    struct tile_spectrum spectrum[2];
    struct limits limits[2];
    struct conv_finish finish[2];
    _Alignas(TILE_LINE_BYTES) char bias[2][TILE_LINE_BYTES];
};

static size_t row_bytes(const struct tiles *p)
{
    return p->n[2] * p->grid.scalar_bytes;
}

static bool is_staged(const struct tiles_array *array)
{
    return tiles_staged(array->call->p) && !array->taps;
}

// Row (d, h) of a lane of the task in its staged rows.
static char *staged_row(const struct task *task, size_t lane, size_t d, size_t h)
{
    const struct tiles *p = task->array->call->p;
    return task->worker.staged + lane * tiles_lane_pitch(p) * p->grid.scalar_bytes +
           (d * p->n[1] + h) * row_bytes(p);
}

static void open_task(const struct tiles_array *array, size_t index, int worker, struct task *ret)
{
    const struct tiles_call *call = array->call;
    struct arena arena = tiles_worker_arena(call, worker);
    ret->array = array;
    ret->first = index * array->lines;
    ret->lines = size_min(array->lines, tiles_line_count(array) - ret->first);
    ret->worker = tiles_layout_worker(call->p, &arena);
    ret->spectra = arena.base + arena.used;
    assert(arena.used <= call->worker_bytes);
}

// The lines from line `at` of a task on.
static void open_pair(struct task *task, size_t at)
{
    task->at = at;
    task->n = size_min(2, task->lines - at);
    task->spectrum[1].re = NULL;
    for (size_t i = 0; i < task->n; i++) {
        tiles_open_line(task->array, task->first + at + i, &task->line[i]);
        task->spectrum[i] = tiles_line_spectrum(task->array, task->first + at + i);
    }
}

// Moves the samples of n channels at one position to the staged rows or back: the first one is lane
// l of a line, and they are lane `lane` of the task and each `step` lanes after it. What is outside
// their range is not moved.
static void move_channels(const struct task *task, const struct line *line, size_t lane,
                          size_t step, size_t n, bool store)
{
    const struct tiles *p = task->array->call->p;
    const struct partita_plan *plan = task->array->call->plan;
    const size_t l = lane % p->lanes, bytes = task->array->bytes;
    const size_t pitch = step * tiles_lane_pitch(p);
    const size_t apart = (size_t)line->step[2] * line->position;
    const size_t next = (size_t)line->step[1] * line->size[2] * line->position * bytes; // row
    const struct tile_range *range = line->range[l];
    const size_t end[3] = {size_min(range[0].end, p->n[0]), size_min(range[1].end, p->n[1]),
                           size_min(range[2].end, p->n[2])};
    if (range[2].begin >= end[2]) return;
    const size_t count = end[2] - range[2].begin;
    for (size_t d = range[0].begin; d < end[0]; d++)
        for (size_t h = range[1].begin; h < end[1]; h++) {
            const size_t at = (size_t)element_at(line, l, d, h, range[2].begin);
            char *array = line->plane[l] + at * line->position * bytes;
            char *staged = staged_row(task, lane, d, h) + range[2].begin * p->grid.scalar_bytes;
            const struct sample_rows rows = {staged, n, pitch, apart, count};
            if (h + 1 < end[1]) samples_prefetch(array + next, apart * bytes, count, store);
            samples_move(plan, &rows, array, store);
        }
}

// Moves the samples of all lanes of a task.
static void move_staged(const struct task *task, bool store)
{
    const struct tiles_array *array = task->array;
    const size_t lanes = array->call->p->lanes, all = task->lines * lanes;
    const size_t branches = tiles_branches(array);
    struct lane lane = tiles_lane(array, task->first * lanes);
    size_t open = SIZE_MAX;
    struct line line;
    for (size_t i = 0; i < all; i++, tiles_next_lane(array, &lane)) {
        const size_t step = lane.rows * branches; // to the next channel at this position
        const bool moved = i >= step && lane.channel >= branches;
        if (moved || lane.channel >= array->n || lane.position >= array->valid) continue;
        if (open != i / lanes) tiles_open_line(array, task->first + i / lanes, &line);
        open = i / lanes;
        const size_t channels = ceil_div(array->n - lane.channel, branches);
        move_channels(task, &line, i, step, size_min(channels, ceil_div(all - i, step)), store);
    }
}

// Reads n elements of a row of lane l, of which element 0 is at `from`, as far as they exist.
static void read_row(const struct tiles_array *array, const struct line *line, size_t l,
                     const char *from, char *row, size_t n)
{
    const size_t bytes = array->bytes;
    const struct tile_range in = {line->range[l][2].begin, size_min(line->range[l][2].end, n)};
    const ptrdiff_t step = line->step[2] * (ptrdiff_t)line->position * (ptrdiff_t)bytes;
    if (in.begin >= in.end) return;
    const size_t count = in.end - in.begin;
    from += step * (ptrdiff_t)in.begin;
    row += in.begin * array->call->p->grid.scalar_bytes;
    if (array->half)
        samples_move(array->call->plan,
                     &(struct sample_rows){row, 1, 0, (size_t)step / bytes, count}, from, false);
    else if (step > 0) samples_copy(row, 1, from, (size_t)step / bytes, count, bytes);
    else
        samples_reverse(row, 1, from + step * (ptrdiff_t)(count - 1), (size_t)-step / bytes, count,
                        bytes);
}

// Elements of an array's tile along an axis: those of its samples, or of the taps.
static size_t tile_extent(const struct tiles_array *array, int axis)
{
    const struct tiles *p = array->call->p;
    const struct tile_axis *a = &p->grid.axis[axis];
    if (array->taps) return a->taps;
    return size_min(array->outputs ? a->tile : a->extent, p->n[axis]);
}

// Row (d, h) of line i of a pair into z: n samples of every lane. Those of gx alone are read.
static void gather_row(const struct task *task, size_t i, char *z, size_t d, size_t h, size_t n)
{
    const struct line *line = &task->line[i];
    const struct tiles *p = task->array->call->p;
    const size_t bytes = task->array->bytes;
    const bool spread = is_spread(line) || task->array->half;
    const ptrdiff_t plane = (ptrdiff_t)(line->size[0] * line->size[1] * line->size[2]);
    const void *from[TILE_MAX_LANES];
    for (size_t l = 0; l < p->lanes; l++) {
        const struct tile_range *range = line->range[l];
        from[l] = task->worker.rows; // zeros
        if (!in_range(&range[0], d) || !in_range(&range[1], h) || range[2].begin >= range[2].end)
            continue;
        const ptrdiff_t first = element_at(line, l, d, h, 0);
        const char *sample = line->plane[l] + first * (ptrdiff_t)(line->position * bytes);
        if (is_staged(task->array)) {
            from[l] = staged_row(task, (task->at + i) * p->lanes + l, d, h);
        } else if (!spread && first >= 0 && first + (ptrdiff_t)n <= plane &&
                   (task->array->kind != TILES_GX || range[2].end - range[2].begin >= n)) {
            from[l] = sample;
        } else {
            char *row = task->worker.rows + (l + 1) * row_bytes(p);
            read_row(task->array, line, l, sample, row, n);
            from[l] = row;
        }
    }
    task->array->call->kernels->lanes_read(z, 2, from, 1, n);
}

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
    kernels->tile_clip(z, 2, limits->begin, limits->end, 0, begin);
    kernels->tile_clip(z, 2, limits->begin, limits->end, end, n);
}

// The rows of a pair, `columns` samples of each, transformed; returns the peak of its samples.
static uint64_t load_rows(struct task *task, size_t columns)
{
    const struct tiles_call *call = task->array->call;
    const struct tiles *p = call->p;
    const struct line *line = task->line;
    uint64_t peak = 0;
    for (size_t i = 0; i < task->n; i++) task->limits[i] = limits_of(p, &line[i]);
    for (size_t d = 0; d < p->n[0]; d++)
        for (size_t h = 0; h < p->n[1]; h++) {
            char *row = tiles_row(p, task->worker.z, d, h);
            bool any = false;
            for (size_t i = 0; i < task->n; i++)
                any = any || (in_range(&line[i].any[0], d) && in_range(&line[i].any[1], h));
            const size_t kept = any && task->n == 2 ? columns : 0;
            memset(row + kept * 2 * TILE_LINE_BYTES, 0, (p->n[2] - kept) * 2 * TILE_LINE_BYTES);
            if (!any) continue;
            for (size_t i = 0; i < task->n; i++) {
                char *z = row + i * TILE_LINE_BYTES;
                gather_row(task, i, z, d, h, columns);
                clip_row(call->kernels, &line[i], &task->limits[i], z, columns);
            }
            if (call->peak && !(p->weight && task->array->kind == TILES_X)) {
                const uint64_t of_row = call->kernels->peak(row, columns * 2 * p->lanes);
                peak = of_row > peak ? of_row : peak;
            }
            tiles_transform_row(&p->tables, call->kernels->tile_forward, row);
        }
    return peak;
}

static void load_lines(void *context, size_t index, int worker)
{
    const struct tiles_array *array = context;
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    struct task task;
    open_task(array, index, worker, &task);
    memset(task.worker.rows, 0, row_bytes(p));
    if (is_staged(array)) move_staged(&task, false);
    for (size_t at = 0; at < task.lines; at += 2) {
        open_pair(&task, at);
        for (size_t i = 0; i < task.n && array->taps; i++)
            task.spectrum[i] = (struct tile_spectrum){task.spectra + 2 * i * TILE_LINE_BYTES,
                                                      4 * p->lanes, p->lanes};
        const uint64_t peak = load_rows(&task, tile_extent(array, 2));
        if (peak) operands_raise_peak(call->peak, peak);
        tiles_transform_columns(&p->tables, call->kernels->tile_forward, task.worker.z, false);
        call->kernels->tile_split(&task.spectrum[0], &task.spectrum[1], task.worker.z,
                                  p->tables.pair, p->bins);
        if (array->taps) tiles_store_factors(array, task.first + at, task.n, task.spectra);
    }
}

// Row (d, h) of line i of a pair to where it belongs.
static void scatter_row(const struct task *task, size_t i, const char *z, size_t d, size_t h)
{
    const struct line *line = &task->line[i];
    const struct tiles *p = task->array->call->p;
    const size_t scalar = p->grid.scalar_bytes, bytes = task->array->bytes;
    const size_t n = tile_extent(task->array, 2);
    const bool staged = is_staged(task->array), half = task->array->half;
    const bool spread = !staged && (is_spread(line) || half);
    struct tile_rows to = {{0}, {0}, {0}};
    char *sample[TILE_MAX_LANES];
    for (size_t l = 0; l < p->lanes; l++) {
        const struct tile_range *range = line->range[l];
        if (!in_range(&range[0], d) || !in_range(&range[1], h)) continue;
        sample[l] =
            line->plane[l] + element_at(line, l, d, h, 0) * (ptrdiff_t)(line->position * bytes);
        to.row[l] = spread ? task->worker.rows + (l + 1) * row_bytes(p) : sample[l];
        if (staged) to.row[l] = staged_row(task, (task->at + i) * p->lanes + l, d, h);
        to.begin[l] = range[2].begin;
        to.end[l] = size_min(range[2].end, n);
    }
    task->array->call->kernels->tile_scatter(&to, z, 2, n, &task->finish[i]);
    for (size_t l = 0; l < p->lanes && spread; l++) {
        const size_t begin = to.begin[l], step = (size_t)line->step[2] * line->position;
        if (begin >= to.end[l]) continue;
        const struct sample_rows row = {(char *)to.row[l] + begin * scalar, 1, 0, step,
                                        to.end[l] - begin};
        char *samples = sample[l] + begin * step * bytes;
        if (half) samples_move(task->array->call->plan, &row, samples, true);
        else samples_copy(samples, step, row.rows, 1, row.n, bytes);
    }
}

// Bias and activation of forward, lane by lane.
static void find_finish(struct task *task, size_t i)
{
    const struct tiles_array *array = task->array;
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    const size_t bytes = p->grid.scalar_bytes;
    struct lane lane = tiles_lane(array, (task->first + task->at + i) * p->lanes);
    task->finish[i] = array->outputs ? filter_finish(call->filter, 0) : (struct conv_finish){0};
    const char *bias = task->finish[i].bias;
    if (!bias) return;
    task->finish[i].bias = task->bias[i];
    for (size_t l = 0; l < p->lanes; l++, tiles_next_lane(array, &lane)) {
        const size_t channel = array->first + size_min(lane.channel, array->n - 1);
        memcpy(task->bias[i] + l * bytes, bias + (call->group * p->out + channel) * bytes, bytes);
    }
}

// The lines from line `at` of a task on.
static void store_pair(struct task *task, size_t at)
{
    const struct tiles_array *array = task->array;
    const struct tiles_call *call = array->call;
    const struct tiles *p = call->p;
    const size_t n = tile_extent(array, 2);
    char *z = task->worker.z;
    open_pair(task, at);
    for (size_t i = 0; i < task->n && !array->taps; i++) find_finish(task, i);
    call->kernels->tile_join(z, p->tables.pair, p->bins, &task->spectrum[0], &task->spectrum[1],
                             tiles_scale(p));
    tiles_transform_columns(&p->tables, call->kernels->tile_inverse, z, true);
    for (size_t d = 0; d < tile_extent(array, 0); d++)
        for (size_t h = 0; h < tile_extent(array, 1); h++) {
            char *row = tiles_row(p, z, d, h);
            tiles_transform_row(&p->tables, call->kernels->tile_inverse, row);
            for (size_t i = 0; i < task->n && array->kind == TILES_GX; i++)
                gather_row(task, i, task->worker.sum + i * TILE_LINE_BYTES, d, h, n);
            if (array->kind == TILES_GX)
                call->kernels->add(row, task->worker.sum, 2 * p->lanes * n);
            for (size_t i = 0; i < task->n && !array->taps; i++)
                scatter_row(task, i, row + i * TILE_LINE_BYTES, d, h);
        }
    for (size_t i = 0; i < task->n && array->taps; i++)
        tiles_write_taps(call, &task->line[i], task->worker.taps, z + i * TILE_LINE_BYTES,
                         p->tables.step);
}

static void store_lines(void *context, size_t index, int worker)
{
    const struct tiles_array *array = context;
    struct task task;
    open_task(array, index, worker, &task);
    for (size_t at = 0; at < task.lines; at += 2) store_pair(&task, at);
    if (is_staged(array)) move_staged(&task, true);
}

// All windows of an item, as far as the batch has them, and of two lines of channels.
static void add_windows(void *context, size_t index, int worker)
{
    const struct tiles_array *array = context;
    const struct tiles *p = array->call->p;
    const size_t lines = array->padded / p->lanes, positions = p->grid.images * p->grid.tiles;
    const size_t pairs = ceil_div(lines, 2), first = array->call->first;
    const size_t begin = size_max(first, index / pairs * positions);
    const size_t end = size_min(first + array->positions, (index / pairs + 1) * positions);
    struct task task;
    open_task(array, 0, worker, &task);
    memset(task.worker.rows, 0, row_bytes(p));
    task.lines = size_min(2, lines - index % pairs * 2);
    for (size_t i = begin; i < end; i++) {
        task.first = (i - first) * lines + index % pairs * 2;
        if (is_staged(array)) move_staged(&task, false);
        store_pair(&task, 0);
        if (is_staged(array)) move_staged(&task, true);
    }
}

void tiles_move(const struct tiles_call *call, enum tiles_kind kind)
{
    static task_fn *const tasks[] = {
        [TILES_X] = load_lines,  [TILES_GY] = load_lines,  [TILES_TAPS] = load_lines,
        [TILES_Y] = store_lines, [TILES_GX] = add_windows, [TILES_GW] = store_lines};
    struct tiles_array array = tiles_array_of(call, kind);
    size_t n = ceil_div(tiles_line_count(&array), array.lines);
    if (kind == TILES_GX) n = call->p->grid.batch * ceil_div(array.padded / call->p->lanes, 2);
    thread_loop(call->threads, n, tasks[kind], &array);
}
