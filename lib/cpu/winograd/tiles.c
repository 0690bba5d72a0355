// SPDX-License-Identifier: MIT
// Tiles of cpu/winograd: batches of them, their samples transformed along the rows as they are
// read, so that tiles lie side by side, and the nesting of two transforms along one axis into one
// along both (Lavin & Gray, eq. 8).
#include <assert.h>
#include <string.h>

#include "cpu/conv/finish.h"
#include "geometry/samples.h"
#include "winograd.h"

struct winograd_transform winograd_transform_of(const struct winograd *p,
                                                const struct kernels *kernels,
                                                enum winograd_operand operand)
{
    const bool inverse = operand == WINOGRAD_OUTPUT || operand == WINOGRAD_TAP_SUMS;
    struct winograd_transform ret = {0};
    for (int a = 0; a < WINOGRAD_AXES; a++) {
        const struct tile_axis *axis = winograd_axis(p, a);
        const bool taps = operand == WINOGRAD_TAPS || operand == WINOGRAD_TAP_SUMS;
        size_t count = taps ? axis->taps : axis->tile; // of the matrix; input has none
        if (operand == WINOGRAD_INPUT) count = 0;
        const size_t samples = operand == WINOGRAD_INPUT ? axis->extent : count;
        ret.extent[a] = axis->extent;
        ret.count[a] = count;
        ret.from[a] = inverse ? axis->extent : samples;
        ret.to[a] = inverse ? samples : axis->extent;
    }
    if (!kernels) return ret;
    if (inverse) ret.kernel = kernels->winograd_output;
    else ret.kernel = operand == WINOGRAD_INPUT ? kernels->winograd_input : kernels->winograd_taps;
    return ret;
}

void winograd_transform_tiles(const struct winograd_transform *transform, char *y, const char *x,
                              char *stage)
{
    const size_t *from = transform->from, *to = transform->to, n = transform->n;
    const bool first = transform->extent[0] > 1, second = transform->extent[1] > 1;
    size_t column[WINOGRAD_EXTENT];
    struct winograd_rows lines = {.n = n,
                                  .rows = from[1],
                                  .x_row_stride = transform->x_column,
                                  .y_row_stride = n,
                                  .y_stride = second ? from[1] * n : transform->y_plane,
                                  .offset = transform->x_row};
    if (first)
        transform->kernel(second ? stage : y, x, transform->extent[0], transform->count[0], &lines);
    if (!second) return;
    for (size_t j = 0; j < from[1]; j++)
        column[j] = first ? j * n : transform->x_row[0] + j * transform->x_column;
    lines = (struct winograd_rows){.n = n,
                                   .rows = to[0],
                                   .x_row_stride = from[1] * n,
                                   .y_row_stride = to[1] * transform->y_plane,
                                   .y_stride = transform->y_plane,
                                   .offset = column};
    transform->kernel(y, first ? stage : x, transform->extent[1], transform->count[1], &lines);
}

struct winograd_index winograd_index(const struct winograd *p, size_t batch)
{
    const struct winograd_batch *max = &p->batch;
    size_t at[3];
    size_unravel(batch, p->batches, at);
    struct winograd_index index = {.map = at[0] * max->maps,
                                   .at = {at[1] * max->rows, at[2] * max->cols}};
    index.batch.maps = size_min(max->maps, p->maps - index.map);
    index.batch.rows = size_min(max->rows, winograd_axis(p, 0)->tiles - index.at[0]);
    index.batch.cols = size_min(max->cols, winograd_axis(p, 1)->tiles - index.at[1]);
    index.tiles = index.batch.maps * index.batch.rows * index.batch.cols;
    assert(index.tiles > 0 && index.tiles <= p->positions);
    return index;
}

struct winograd_task winograd_task(const struct winograd_call *call, size_t batch, size_t group,
                                   int worker)
{
    const struct winograd *p = call->plan->state;
    struct arena memory = {.base = call->workers + (size_t)worker * p->worker};
    struct arena shared = {0};
    struct winograd_task task = {.call = call,
                                 .p = p,
                                 .kernels = call->plan->kernels,
                                 .group = group,
                                 .n_in = p->in,
                                 .n_out = p->out,
                                 .index = winograd_index(p, batch),
                                 .scratch = winograd_layout_worker(p, &memory)};
    if (!p->shared_inputs && !p->shared_panels) return task;
    const size_t i = p->weight ? group - call->first : batch * p->grid.groups + group;
    winograd_layout_shared(p, &shared);
    shared = (struct arena){.base = call->shared + i * shared.used};
    const struct winograd_scratch common = winograd_layout_shared(p, &shared);
    task.scratch.in_panel = common.in_panel;
    if (p->shared_inputs) task.scratch.in = common.in;
    else task.scratch.out_panel = common.out_panel;
    if (p->shared_panels && !p->single_batch) task.scratch.sums = common.sums;
    return task;
}

struct winograd_plane winograd_plane(const struct winograd_task *task, bool outputs, size_t map,
                                     size_t channel)
{
    const struct winograd_call *call = task->call;
    const struct tile_grid *grid = &task->p->grid;
    const struct sample_strides *strides = &task->p->strides[outputs];
    const size_t channels = outputs ? grid->out : grid->in; // without branches
    struct winograd_plane plane = {.position = strides->position};
    for (int a = 0; a < WINOGRAD_AXES; a++) {
        plane.side[a] = tile_side(winograd_axis(task->p, a), outputs);
        plane.first[a] = tile_position(winograd_axis(task->p, a), outputs, task->index.at[a]);
    }
    tile_grid_image(grid, map % grid->images, plane.image);
    tile_grid_branch(grid, channel / channels, plane.branch);
    const size_t at = map / grid->images * strides->item +
                      (task->group * channels + channel % channels) * strides->channel;
    plane.samples = (outputs ? call->y : (char *)call->x) + at * grid->scalar_bytes;
    return plane;
}

size_t winograd_together(const struct winograd_task *task, bool outputs, size_t channel, size_t end)
{
    const size_t channels = outputs ? task->p->grid.out : task->p->grid.in;
    return size_min(size_min(winograd_lanes(task->p), end - channel),
                    channels - channel % channels);
}

// The part of n elements of a window along an axis that is in the array, and its first sample
// there.
struct window_part {
    struct tile_range within;
    ptrdiff_t sample;
};

static struct window_part window_part(const struct winograd_plane *plane, int axis, size_t n)
{
    const struct tile_side *side = plane->side[axis];
    const size_t image = plane->image[1 + axis], branch = plane->branch[1 + axis];
    const struct tile_range within = tile_within(side, image, branch, plane->first[axis], n);
    return (struct window_part){
        within, tile_sample(side, image, branch, plane->first[axis] + (ptrdiff_t)within.begin)};
}

// A row of a window: the part of it that is in the array, and the index of its first sample there,
// counted from the plane's.
struct window_row {
    struct tile_range within;
    size_t sample;
};

static struct window_row window_row(const struct winograd_plane *plane, size_t i)
{
    const ptrdiff_t at = tile_sample(plane->side[0], plane->image[1], plane->branch[1],
                                     plane->first[0] + (ptrdiff_t)i);
    if (!tile_inside(plane->side[0], at)) return (struct window_row){{0, 0}, 0};
    const struct window_part part = window_part(plane, 1, plane->window.width);
    struct window_row ret = {part.within, 0};
    if (part.within.begin < part.within.end)
        ret.sample = ((size_t)at * plane->side[1]->size + (size_t)part.sample) * plane->position;
    return ret;
}

// Prefetches the rows of a plane that a batch reads.
static void prefetch_plane(const struct winograd_plane *plane, size_t bytes)
{
    const struct window_part rows = window_part(plane, 0, plane->window.rows);
    const size_t n = rows.within.end - rows.within.begin, row = plane->side[1]->size * bytes;
    if (n == 0) return;
    const char *from = plane->samples + (size_t)rows.sample * row;
    const char *end = from + ((n - 1) * plane->side[0]->step + 1) * row;
    for (; from < end; from += MEM_ALIGN) __builtin_prefetch(from, 0);
}

// Copies the samples of a plane to its window, with zeros where there are none.
static void read_window(const struct winograd_plane *plane, size_t bytes)
{
    const size_t width = plane->window.width;
    char *to = plane->rows;
    for (size_t i = 0; i < plane->window.rows; i++, to += width * bytes) {
        const struct window_row row = window_row(plane, i);
        const size_t begin = row.within.begin, end = row.within.end;
        memset(to, 0, begin * bytes);
        if (begin < end)
            samples_copy(to + begin * bytes, 1, plane->samples + row.sample * bytes,
                         plane->side[1]->step, end - begin, bytes);
        memset(to + end * bytes, 0, (width - end) * bytes);
    }
}

// Prefetches the positions of a row of adjacent channels.
static void prefetch_window_row(const struct winograd_plane *plane, size_t i, size_t bytes,
                                bool write)
{
    if (i >= plane->window.rows) return;
    const struct window_row row = window_row(plane, i);
    samples_prefetch(plane->samples + row.sample * bytes,
                     plane->side[1]->step * plane->position * bytes,
                     row.within.end - row.within.begin, write);
}

// Moves n adjacent channels, of which `plane` is the first, to their windows.
static void read_windows(const struct winograd_task *task, const struct winograd_plane *plane,
                         size_t n)
{
    const size_t bytes = task->p->grid.scalar_bytes, width = plane->window.width;
    const size_t channel = plane->window.channel;
    for (size_t i = 0; i < plane->window.rows; i++) {
        const struct window_row row = window_row(plane, i);
        const struct tile_range *within = &row.within;
        char *to = plane->rows + i * width * bytes;
        prefetch_window_row(plane, i + 1, bytes, false);
        for (size_t c = 0; c < n && within->end - within->begin < width; c++) {
            memset(to + c * channel * bytes, 0, within->begin * bytes);
            memset(to + (c * channel + within->end) * bytes, 0, (width - within->end) * bytes);
        }
        task->kernels->transpose(
            to + within->begin * bytes, channel, plane->samples + row.sample * bytes,
            plane->side[1]->step * plane->position, within->end - within->begin, n);
    }
}

void winograd_write_windows(const struct winograd_task *task, const struct winograd_plane *plane,
                            size_t n)
{
    const size_t bytes = task->p->grid.scalar_bytes;
    for (size_t i = 0; i < plane->window.rows; i++) {
        const struct window_row row = window_row(plane, i);
        const size_t from = i * plane->window.width + row.within.begin;
        prefetch_window_row(plane, i + 1, bytes, true);
        task->kernels->transpose(plane->samples + row.sample * bytes,
                                 plane->side[1]->step * plane->position, plane->rows + from * bytes,
                                 plane->window.channel, n, row.within.end - row.within.begin);
    }
}

char *winograd_plane_lines(const struct winograd_task *task, const struct winograd_plane *plane,
                           struct winograd_lines *lines)
{
    const size_t bytes = task->p->grid.scalar_bytes, row = plane->side[1]->size;
    const struct window_part down = window_part(plane, 0, plane->window.rows);
    const struct window_part along = window_part(plane, 1, plane->window.width);
    lines->pitch = plane->side[0]->step * row;
    lines->ahead = plane->ahead / (ptrdiff_t)bytes;
    lines->first_row = down.within.begin;
    lines->last_row = along.within.begin < along.within.end ? down.within.end : down.within.begin;
    lines->first = along.within.begin;
    lines->last = along.within.end;
    if (lines->first_row >= lines->last_row) return plane->samples;
    return plane->samples + ((size_t)down.sample * row + (size_t)along.sample) * bytes;
}

void winograd_raise_peak(const struct winograd_task *task, const char *samples, size_t n)
{
    // Other splits of the output channels read the same samples.
    if (!task->call->peak || task->out > 0) return;
    operands_raise_peak(task->call->peak, task->kernels->peak(samples, n));
}

// Takes the peak of the samples read of a plane, which are still in a near cache. Between rows
// there are only samples of the array.
static void raise_plane_peak(const struct winograd_task *task, const struct winograd_plane *plane)
{
    const struct winograd_window *window = &plane->window;
    if (!task->call->peak) return;
    if (plane->rows) {
        winograd_raise_peak(task, plane->rows, window->rows * window->width);
        return;
    }
    struct winograd_lines lines;
    const char *from = winograd_plane_lines(task, plane, &lines);
    if (lines.first_row >= lines.last_row) return;
    const size_t rows = lines.last_row - lines.first_row, n = lines.last - lines.first;
    const size_t pitch = lines.pitch * task->p->grid.scalar_bytes;
    if (lines.pitch < 2 * n) winograd_raise_peak(task, from, (rows - 1) * lines.pitch + n);
    for (size_t i = 0; i < rows && lines.pitch >= 2 * n; i++)
        winograd_raise_peak(task, from + i * pitch, n);
}

// Transforms the tiles of rows of samples, of the window or, rows being NULL, of the array: along
// the rows, whose results fall into residues modulo the tile, so that tiles of adjacent rows are
// adjacent; then down the columns.
static void transform_rows(const struct winograd_task *task, bool outputs,
                           const struct winograd_plane *plane,
                           const struct winograd_transform *transform, char *y)
{
    const struct winograd_window *window = &plane->window;
    const struct winograd *p = task->p;
    const size_t tile = winograd_axis(p, 0)->tile, cols = task->index.batch.cols;
    const size_t *extent = transform->extent;
    size_t offset[WINOGRAD_EXTENT];
    const bool down = extent[0] > 1;
    const size_t residue = cols * ceil_div(window->rows, tile) + winograd_lanes(p);
    // The memory of a window goes on behind its last tiles.
    struct winograd_lines lines = {.rows = window->rows,
                                   .pitch = window->width,
                                   .last_row = window->rows,
                                   .last = PTRDIFF_MAX,
                                   .tiles = cols,
                                   .residues = tile,
                                   .y_residue = residue,
                                   .y_stride = down ? tile * residue : transform->y_plane};
    winograd_lines_fn *along =
        outputs ? task->kernels->winograd_taps_lines : task->kernels->winograd_input_lines;
    assert(!down || extent[1] * lines.y_stride <= p->samples);
    const char *x = plane->rows ? plane->rows : winograd_plane_lines(task, plane, &lines);
    along(down ? task->scratch.samples : y, x, extent[1], winograd_axis(p, 1)->tile, &lines);
    if (!down) return;
    for (size_t i = 0; i < transform->from[0]; i++)
        offset[i] = i % tile * residue + i / tile * cols;
    const struct winograd_rows columns = {.n = transform->n,
                                          .rows = extent[1],
                                          .x_row_stride = lines.y_stride,
                                          .y_row_stride = transform->y_plane,
                                          .y_stride = extent[1] * transform->y_plane,
                                          .offset = offset,
                                          .ahead = transform->ahead};
    transform->kernel(y, task->scratch.samples, extent[0], transform->count[0], &columns);
}

// The same as winograd_transform_planes, with channels last.
static void transform_adjacent(const struct winograd_task *task, bool outputs, size_t first,
                               size_t n, const struct winograd_transform *transform, char *to)
{
    const struct winograd *p = task->p;
    const size_t tiles = task->index.batch.rows * task->index.batch.cols;
    const size_t bytes = p->grid.scalar_bytes;
    const struct winograd_window window = winograd_window(p, &task->index.batch, transform->from);
    // The vectors of a channel's last map reach into the next channel, whose maps come later.
    const size_t maps = task->index.batch.maps, pitch = winograd_lanes(p) * window.channel;
    struct winograd_plane plane = {.window = window};
    for (size_t c = 0, n_read; c < n; c += n_read) {
        n_read = winograd_together(task, outputs, first + c, first + n);
        for (size_t m = 0; m < maps; m++) {
            plane = winograd_plane(task, outputs, task->index.map + m, first + c);
            plane.window = window;
            plane.rows = task->scratch.windows + m * pitch * bytes;
            read_windows(task, &plane, n_read);
        }
        for (size_t i = 0; i < n_read * maps; i++) {
            const size_t k = i / maps, m = i % maps;
            const size_t at = (c + k) * p->positions + m * tiles;
            plane.rows = task->scratch.windows + (m * pitch + k * window.channel) * bytes;
            transform_rows(task, outputs, &plane, transform, to + at * bytes);
            raise_plane_peak(task, &plane);
        }
    }
}

struct conv_finish winograd_finish(const struct winograd_task *task, size_t k)
{
    return filter_finish(task->call->filter, task->group * task->p->grid.out + k);
}

void winograd_transform_planes(const struct winograd_task *task, bool outputs, size_t first,
                               size_t n, char *to)
{
    const struct winograd *p = task->p;
    const size_t maps = task->index.batch.maps, map = task->index.map;
    const size_t tiles = task->index.batch.rows * task->index.batch.cols;
    struct winograd_transform transform =
        winograd_transform_of(p, task->kernels, outputs ? WINOGRAD_GRADIENT : WINOGRAD_INPUT);
    transform.n = winograd_vectors(p, tiles);
    transform.y_plane = outputs ? p->out_plane : p->in_plane;
    if (p->channels_last) {
        transform_adjacent(task, outputs, first, n, &transform, to);
        return;
    }
    if (!p->weight) transform.ahead = p->positions; // the next channel's
    const struct winograd_window window = winograd_window(p, &task->index.batch, transform.from);
    struct winograd_plane next = winograd_plane(task, outputs, map, first);
    const bool adjacent = next.side[1]->step == 1;
    for (size_t i = 0; i < n * maps; i++) {
        struct winograd_plane plane = next;
        const size_t at = i / maps * p->positions + i % maps * tiles;
        plane.window = window;
        if (i + 1 < n * maps) {
            next = winograd_plane(task, outputs, map + (i + 1) % maps, first + (i + 1) / maps);
            next.window = window;
            if (!adjacent) prefetch_plane(&next, p->grid.scalar_bytes);
        }
        plane.rows = adjacent ? NULL : task->scratch.rows;
        plane.ahead = next.samples - plane.samples;
        if (!adjacent) read_window(&plane, p->grid.scalar_bytes);
        transform_rows(task, outputs, &plane, &transform, to + at * p->grid.scalar_bytes);
        raise_plane_peak(task, &plane);
    }
}
