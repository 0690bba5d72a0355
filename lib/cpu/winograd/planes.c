// SPDX-License-Identifier: MIT
// Planes of samples as tiles of cpu/winograd, and back: kernels read and write the rows of an array
// where scalars of a row are adjacent, or of a copy in f32 if whole rows of 16 bits are; others,
// with a stride or with channels last, pass through windows. Samples are transformed along the rows
// as they are read, so that tiles lie side by side and a row that two rows of tiles share is
// transformed once.
#include <assert.h>
#include <string.h>

#include "cpu/conv/finish.h"
#include "geometry/samples.h"
#include "winograd.h"

struct winograd_window winograd_window(const struct winograd *p, const struct winograd_batch *batch,
                                       bool outputs)
{
    const size_t lanes = winograd_lanes(p);
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const size_t high = outputs ? down->tile : down->extent;
    const size_t wide = outputs ? along->tile : along->extent;
    struct winograd_window ret = {.rows = (batch->rows - 1) * down->tile + high,
                                  .width = ((wide - 1) / along->tile + batch->cols) * along->tile};
    // An odd number of blocks, so that channels do not fall into the same sets of the cache.
    ret.channel = (ceil_div(ret.rows * ret.width, lanes) | 1) * lanes;
    return ret;
}

char *winograd_samples(const struct winograd_task *task, bool outputs, size_t map, size_t channel)
{
    const struct tile_grid *grid = &task->p->grid;
    const struct sample_strides *strides = &task->p->strides[outputs];
    const size_t channels = outputs ? grid->out : grid->in; // without branches
    const size_t at = map / (grid->axis[0].tiles * grid->images) * strides->item +
                      (task->group * channels + channel % channels) * strides->channel;
    return (outputs ? task->call->y : (char *)task->call->x) +
           at * task->call->plan->shape.sample_bytes;
}

// A plane of one channel of one map and branch, of the array of inputs or of outputs, and its
// window, of which rows and samples of a row exist in `within`.
struct plane {
    struct winograd_window window;
    struct tile_range within[WINOGRAD_ALL_AXES];
    size_t step[WINOGRAD_ALL_AXES]; // samples from one row to the next, and from one sample of it
    bool in_place;                  // rows of the array are used, not of the window
    bool whole;                     // of 16 bits: rows that exist are used, converted in one piece
    char *samples;                  // the first that exists
    char *rows;                     // of the window or in f32; NULL: not used
    ptrdiff_t ahead;                // scalars to the next channel; 0: it is another branch's
};

// Plane d of those that a tile reads or writes.
static struct plane find_plane(const struct winograd_task *task, bool outputs, size_t map,
                               size_t channel, size_t d)
{
    const struct winograd *p = task->p;
    const struct tile_grid *grid = &p->grid;
    const struct shape *shape = &task->call->plan->shape;
    const size_t position = p->strides[outputs].position, bytes = shape->sample_bytes;
    const size_t channels = outputs ? grid->out : grid->in, next = channel % channels + 1;
    struct plane plane = {.samples = winograd_samples(task, outputs, map, channel),
                          .ahead = next < channels ? (ptrdiff_t)p->strides[outputs].channel : 0,
                          .window = winograd_window(p, &task->index.batch, outputs)};
    const size_t n[] = {plane.window.rows, plane.window.width, 1};
    const size_t row = tile_side(winograd_axis(p, 1), outputs)->size * position;
    const size_t pitch[] = {row, position, tile_side(winograd_axis(p, 0), outputs)->size * row};
    const size_t tile[] = {task->index.at[0], task->index.at[1], map % grid->axis[0].tiles};
    size_t image[3], branch[3];
    tile_grid_image(grid, map / grid->axis[0].tiles % grid->images, image);
    tile_grid_branch(grid, channel / channels, branch);
    for (int a = 0; a < (shape->rank < 3 ? WINOGRAD_AXES : WINOGRAD_ALL_AXES); a++) {
        const struct tile_axis *axis = winograd_axis(p, a);
        const struct tile_side *side = tile_side(axis, outputs);
        const size_t i = image[axis - grid->axis], j = branch[axis - grid->axis];
        const ptrdiff_t first =
            tile_position(axis, outputs, tile[a]) + (ptrdiff_t)(a == WINOGRAD_DEPTH ? d : 0);
        const struct tile_range in = tile_within(side, i, j, first, n[a]);
        const ptrdiff_t sample = tile_sample(side, i, j, first + (ptrdiff_t)in.begin);
        plane.within[a] = in;
        plane.step[a] = side->step * pitch[a];
        if (in.begin < in.end) plane.samples += (size_t)sample * pitch[a] * bytes;
        else plane.within[0] = (struct tile_range){0, 0};
    }
    const bool adjacent = plane.step[1] == 1 && grid->axis[0].extent == 1;
    plane.in_place = adjacent && !shape->half;
    plane.whole =
        adjacent && plane.within[1].end - plane.within[1].begin == plane.step[0] && !plane.in_place;
    return plane;
}

size_t winograd_together(const struct winograd_task *task, bool outputs, size_t channel, size_t end)
{
    const size_t channels = outputs ? task->p->grid.out : task->p->grid.in;
    if (task->p->strides[outputs].position == 1) return 1;
    return size_min(size_min(winograd_lanes(task->p), end - channel),
                    channels - channel % channels);
}

// Moves n adjacent channels, of which `plane` is the first, to their windows or, `write`, from
// there to the array. The row that comes next is prefetched.
static void move_windows(const struct winograd_task *task, const struct plane *plane, size_t n,
                         bool write)
{
    const struct tile_range *down = &plane->within[0], *along = &plane->within[1];
    const struct partita_plan *plan = task->call->plan;
    const size_t bytes = plan->shape.scalar_bytes, sample = plan->shape.sample_bytes;
    const size_t channel = plane->window.channel, step = plane->step[1];
    const size_t width = plane->window.width;
    const size_t count = along->end - along->begin;
    assert(channel >= plane->window.rows * width);
    char *samples = plane->samples, *row = plane->rows;
    const struct sample_rows whole = {row, 1, 0, 1, (down->end - down->begin) * count};
    if (plane->whole) samples_move(plan, &whole, samples, write);
    for (size_t i = 0; i < plane->window.rows && !plane->whole; i++, row += width * bytes) {
        const bool exists = i >= down->begin && i < down->end;
        const size_t begin = exists ? along->begin : width, end = exists ? along->end : width;
        for (size_t c = 0; c < n && !write && (begin > 0 || end < width); c++) {
            memset(row + c * channel * bytes, 0, begin * bytes);
            memset(row + (c * channel + end) * bytes, 0, (width - end) * bytes);
        }
        if (!exists) continue;
        char *next = samples + plane->step[0] * sample;
        const struct sample_rows window = {row + begin * bytes, n, channel, step, count};
        if (i + 1 < down->end) samples_prefetch(next, step * sample, count, write);
        samples_move(plan, &window, samples, write);
        samples = next;
    }
}

// Which rows of a plane, and samples of them, are in the array or the window, where samples follow
// one another; returns the first of them.
static char *plane_lines(const struct plane *plane, struct winograd_lines *lines)
{
    if (plane->rows && !plane->whole) { // the memory of a window goes on behind its last tiles
        lines->pitch = plane->window.width;
        lines->last_row = plane->window.rows;
        lines->last = PTRDIFF_MAX;
        return plane->rows;
    }
    lines->pitch = plane->step[0];
    lines->ahead = plane->whole ? 0 : plane->ahead;
    lines->first_row = plane->within[0].begin;
    lines->last_row = plane->within[0].end;
    lines->first = plane->within[1].begin;
    lines->last = plane->within[1].end;
    return plane->whole ? plane->rows : plane->samples;
}

void winograd_raise_peak(const struct winograd_task *task, const char *samples, size_t n)
{
    // Other splits of the output channels read the same samples.
    if (!task->call->peak || task->out > 0) return;
    operands_raise_peak(task->call->peak, task->kernels->peak(samples, n));
}

// Takes the peak of the samples read of a plane, which are still in a near cache. Between rows
// there are only samples of the array.
static void raise_plane_peak(const struct winograd_task *task, const struct plane *plane)
{
    const struct winograd_window *window = &plane->window;
    struct winograd_lines lines = {0};
    if (!task->call->peak) return;
    const char *from = plane_lines(plane, &lines);
    if (lines.first_row >= lines.last_row) return;
    const size_t rows = lines.last_row - lines.first_row;
    const size_t n = lines.last == PTRDIFF_MAX ? window->width : lines.last - lines.first;
    const size_t pitch = lines.pitch * task->p->grid.scalar_bytes;
    if (lines.pitch < 2 * n) winograd_raise_peak(task, from, (rows - 1) * lines.pitch + n);
    for (size_t i = 0; i < rows && lines.pitch >= 2 * n; i++)
        winograd_raise_peak(task, from + i * pitch, n);
}

// Transforms the tiles of a plane: along the rows, whose results fall into residues modulo the
// tile, so that tiles of adjacent rows are adjacent; then down the columns.
static void load_plane(const struct winograd_task *task, bool outputs, const struct plane *plane,
                       const struct winograd_transform *transform, char *y)
{
    const struct winograd_window *window = &plane->window;
    const struct winograd *p = task->p;
    const size_t tile = winograd_axis(p, 0)->tile, cols = task->index.batch.cols;
    const size_t *extent = transform->extent;
    size_t offset[WINOGRAD_EXTENT];
    const bool down = extent[0] > 1;
    const size_t residue = cols * ceil_div(window->rows, tile) + winograd_lanes(p);
    struct winograd_lines lines = {.rows = window->rows,
                                   .tiles = cols,
                                   .residues = tile,
                                   .y_residue = residue,
                                   .y_stride = down ? tile * residue : transform->y_plane};
    winograd_lines_fn *along =
        outputs ? task->kernels->winograd_taps_lines : task->kernels->winograd_input_lines;
    assert(!down || extent[1] * lines.y_stride <= p->samples);
    const char *x = plane_lines(plane, &lines);
    along(down ? task->scratch.samples : y, x, extent[1], winograd_axis(p, 1)->tile, &lines);
    if (!down) return;
    for (size_t i = 0; i < transform->from[0]; i++)
        offset[i] = i % tile * residue + i / tile * cols;
    const struct winograd_rows columns = {.n = transform->n,
                                          .rows = extent[1],
                                          .x_row_stride = lines.y_stride,
                                          .y_row_stride = transform->y_plane,
                                          .y_stride = transform->y_row,
                                          .offset = offset,
                                          .ahead = p->weight ? 0 : p->positions};
    transform->kernel(y, task->scratch.samples, extent[0], transform->count[0], &columns);
}

void winograd_load_planes(const struct winograd_task *task, bool outputs, size_t first, size_t n,
                          char *to, size_t frequency)
{
    const struct winograd *p = task->p;
    const size_t maps = task->index.batch.maps, map = task->index.map;
    const size_t tiles = task->index.batch.rows * task->index.batch.cols;
    const size_t bytes = p->grid.scalar_bytes;
    struct winograd_transform transform =
        winograd_transform_of(p, task->kernels, outputs ? WINOGRAD_GRADIENT : WINOGRAD_INPUT);
    const size_t planes = transform.from[WINOGRAD_DEPTH];
    const size_t elements = p->frequencies / transform.to[WINOGRAD_DEPTH];
    const size_t results = planes > 1 ? transform.to[WINOGRAD_DEPTH] : 0; // windows before all
    winograd_transform_strides(&transform, winograd_vectors(p, tiles), 0, frequency);
    for (size_t c = 0, count; c < n; c += count) {
        count = winograd_together(task, outputs, first + c, first + n);
        // Windows are filled map by map, and read channel by channel.
        for (size_t k = 0, m = 0, d = 0; k < count; d = d + 1 < planes ? d + 1 : 0) {
            struct plane plane = find_plane(task, outputs, map + m, first + c + k, d);
            const bool rows = plane.in_place;
            const size_t at = (c + k) * p->positions + m * tiles;
            const size_t scalars = plane.window.channel, window = scalars * bytes;
            if (!rows)
                plane.rows = task->scratch.windows + (results + (m * planes + d) * count) * window;
            if (!rows && k == 0) move_windows(task, &plane, count, false);
            if (!rows) plane.rows += k * window;
            if (planes == 1) load_plane(task, outputs, &plane, &transform, to + at * bytes);
            raise_plane_peak(task, &plane);
            if (d + 1 < planes) continue;
            if (++m == maps) m = 0, k++;
            if (planes == 1) continue;
            const char *raw = plane.rows - d * count * window;
            plane.rows = task->scratch.windows;
            winograd_transform_depth(
                &transform, plane.rows, raw, count * scalars,
                (struct winograd_rows){.n = scalars, .rows = 1, .y_stride = scalars});
            for (size_t f = 0; f < results; f++, plane.rows += window)
                load_plane(task, outputs, &plane, &transform,
                           to + (at + f * elements * frequency) * bytes);
        }
    }
}

struct conv_finish winograd_finish(const struct winograd_task *task, size_t k)
{
    return filter_finish(task->call->filter, task->group * task->p->grid.out + k);
}

// Transforms the sums of one output channel and map down the columns; along the rows their results
// are stored as `stores` says.
static void store_plane(const struct winograd_task *task,
                        const struct winograd_transform *transform,
                        const struct winograd_stores *stores, const char *sums, char *to)
{
    const struct winograd *p = task->p;
    const bool down = transform->extent[0] > 1;
    const struct winograd_rows rows = {.n = transform->n,
                                       .rows = transform->from[1],
                                       .x_row_stride = transform->x_column,
                                       .y_row_stride = transform->n,
                                       .y_stride = transform->from[1] * transform->n,
                                       .offset = transform->x_row,
                                       .ahead = p->positions}; // the next channel's
    if (down)
        transform->kernel(task->scratch.stage, sums, transform->extent[0], transform->count[0],
                          &rows);
    task->kernels->winograd_store(to, down ? task->scratch.stage : sums, transform->extent[1],
                                  transform->to[1], stores);
}

// Where the rows of a plane's outputs are stored.
static char *find_stores(const struct plane *plane, struct winograd_stores *stores)
{
    struct winograd_lines lines = {0};
    char *to = plane_lines(plane, &lines);
    stores->pitch = lines.pitch;
    stores->ahead = lines.ahead;
    stores->first_row = lines.first_row;
    stores->last_row = lines.last_row;
    stores->first = lines.first;
    stores->last = lines.last;
    return to;
}

void winograd_store_planes(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const struct winograd_batch *batch = &task->index.batch;
    const size_t tiles = batch->rows * batch->cols, n = winograd_vectors(p, tiles);
    const size_t bytes = p->grid.scalar_bytes, end = task->out + task->n_out;
    struct winograd_transform transform = winograd_transform_of(p, task->kernels, WINOGRAD_OUTPUT);
    const size_t planes = transform.from[WINOGRAD_DEPTH], results = transform.to[WINOGRAD_DEPTH];
    const size_t elements = transform.from[0] * transform.from[1];
    winograd_transform_strides(&transform, n, p->sums_plane, 0);
    struct winograd_stores stores = {.rows = transform.to[0],
                                     .x_row = transform.from[1] * n,
                                     .x_stride = transform.extent[0] > 1 ? n : p->sums_plane,
                                     .tiles = tiles,
                                     .cols = batch->cols};
    for (size_t k = task->out, count; k < end; k += count) {
        count = winograd_together(task, true, k, end);
        for (size_t m = 0; m < batch->maps; m++) {
            struct plane plane = find_plane(task, true, task->index.map + m, k, 0);
            const bool rows = plane.in_place;
            const size_t scalars = plane.window.channel, window = scalars * bytes;
            if (!rows) plane.rows = task->scratch.windows;
            char *to = find_stores(&plane, &stores),
                 *windows = planes > 1 ? to + planes * window : to;
            for (size_t c = 0; c < count; c++) {
                const struct conv_finish finish = winograd_finish(task, k + c), none = {0};
                stores.finish = planes > 1 ? &none : &finish;
                for (size_t f = 0; f < planes; f++) {
                    const size_t at = (k + c - task->out) * p->positions + m * tiles;
                    store_plane(task, &transform, &stores,
                                task->scratch.sums + (at + f * elements * p->sums_plane) * bytes,
                                planes > 1 ? to + f * window : to + c * window);
                }
                if (planes == 1) continue;
                winograd_transform_depth(
                    &transform, windows + c * window, to, scalars,
                    (struct winograd_rows){.n = scalars, .rows = 1, .y_stride = count * scalars});
                for (size_t d = c; d < results * count && (finish.bias || finish.relu); d += count)
                    task->kernels->conv_store(windows + d * window, 1, windows + d * window,
                                              scalars, &finish);
            }
            for (size_t d = 0; d < results && !rows; d++) {
                plane = find_plane(task, true, task->index.map + m, k, d);
                plane.rows = windows + d * count * window;
                move_windows(task, &plane, count, true);
            }
        }
    }
}
