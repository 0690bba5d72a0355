// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/winograd: tiles of a batch are transformed, for each frequency
// output channels are sums of input channels times transformed taps (kernels->conv, an input
// channel being a term and tiles positions), and the sums are transformed back, with bias and
// activation on the way into their rows (Lavin & Gray, algorithm 1, batch by batch). Batches and
// splits of the output channels are tasks, by shape alone. If there are splits and memory for it,
// inputs are transformed once for all of them, before the first.
#include <string.h>

#include "base/thread.h"
#include "winograd.h"

// Taps of a frequency and block of output channels.
static const char *forward_taps(const struct winograd_task *task, size_t f, size_t k)
{
    const struct winograd *p = task->p;
    const size_t plane = (task->group * p->frequencies + f) * p->filter_plane;
    return (const char *)task->call->filter->state + (plane + k * p->in) * p->grid.scalar_bytes;
}

// Adds the task's n_in transformed input channels, `inputs`, to all its output channels.
static void multiply_tiles(const struct winograd_task *task, const char *inputs)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, pitch = p->positions;
    const size_t positions = winograd_vectors(p, task->index.tiles);
    for (size_t f = 0; f < p->frequencies; f++)
        for (size_t k = 0; k < task->n_out; k += CONV_CHANNELS) {
            const size_t channels = size_min(task->n_out - k, CONV_CHANNELS);
            char *sums = task->scratch.out + (f * p->out_plane + k * pitch) * bytes;
            if (task->in == 0) memset(sums, 0, channels * pitch * bytes);
            task->kernels->conv(sums, pitch, inputs + f * p->in_plane * bytes, p->offset,
                                task->n_in,
                                forward_taps(task, f, task->out + k) + task->in * channels * bytes,
                                channels, positions, 0);
        }
}

// The same with taps that are transformed here, those of a few output channels at a time.
static void multiply_call_taps(const struct winograd_task *task, const char *inputs)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, pitch = p->positions;
    const size_t positions = winograd_vectors(p, task->index.tiles);
    for (size_t first = 0; first < task->n_out; first += WINOGRAD.call_channels) {
        const size_t end = size_min(task->n_out, first + WINOGRAD.call_channels);
        winograd_transform_call_taps(task, task->out + first, end - first);
        for (size_t f = 0; f < p->frequencies; f++)
            for (size_t k = first; k < end; k += CONV_CHANNELS) {
                const size_t channels = size_min(end - k, CONV_CHANNELS);
                const size_t taps = f * p->taps_plane + (k - first) * task->n_in;
                char *sums = task->scratch.out + (f * p->out_plane + k * pitch) * bytes;
                if (task->in == 0) memset(sums, 0, channels * pitch * bytes);
                task->kernels->conv(sums, pitch, inputs + f * p->in_plane * bytes, p->offset,
                                    task->n_in, task->scratch.taps + taps * bytes, channels,
                                    positions, 0);
            }
    }
}

// Transposed: the panel of a frequency; there is only one unless the task's are shared.
static char *panel_at(const struct winograd_task *task, size_t f)
{
    const struct winograd *p = task->p;
    const size_t panel = mem_round(p->in_panel * p->grid.scalar_bytes);
    return task->scratch.in_panel + (p->shared_inputs ? f * panel : 0);
}

static void make_panel(const struct winograd_task *task, size_t f)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, tiles = task->index.tiles;
    for (size_t t = 0; t < tiles; t += CONV_CHANNELS)
        task->kernels->conv_rows(panel_at(task, f) + t * p->in * bytes,
                                 task->scratch.in + (f * p->in_plane + t) * bytes, p->positions,
                                 p->in, size_min(tiles - t, CONV_CHANNELS));
}

// Transposed products of all input channels, output channels being the positions: sums
// [tile][output channel], then transposed.
static void multiply_transposed(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const struct winograd_scratch *scratch = &task->scratch;
    const size_t bytes = p->grid.scalar_bytes, in = p->in, pitch = p->oc_split;
    const size_t lanes = winograd_lanes(p), tiles = task->index.tiles;
    for (size_t f = 0; f < p->frequencies; f++) {
        const char *panel = panel_at(task, f);
        if (!p->shared_inputs) make_panel(task, f);
        memset(scratch->out_panel, 0, winograd_vectors(p, tiles) * pitch * bytes);
        for (size_t k = 0; k < task->n_out; k += p->oc_block)
            for (size_t t = 0; t < tiles; t += CONV_CHANNELS)
                for (size_t c = 0; c < in; c += WINOGRAD_TERMS) {
                    const size_t n = size_min(tiles - t, CONV_CHANNELS);
                    const char *taps = forward_taps(task, f, task->out + k);
                    task->kernels->conv(
                        scratch->out_panel + (t * pitch + k) * bytes, pitch,
                        taps + c * p->oc_block * bytes, p->offset, size_min(in - c, WINOGRAD_TERMS),
                        panel + (t * in + c * n) * bytes, n, p->oc_block, t ? 0 : CONV_AHEAD_BYTES);
                }
        for (size_t t = 0; t < tiles; t += lanes)
            task->kernels->interleave(scratch->out + (f * p->out_plane + t) * bytes, p->positions,
                                      scratch->out_panel + t * pitch * bytes, (ptrdiff_t)pitch,
                                      lanes, task->n_out);
    }
}

// Stores the rows of outputs of one output channel in its window; element (i, j) is at (i * columns
// + j) * n.
static void store_window(const struct winograd_task *task, const struct winograd_plane *plane,
                         size_t k, const char *tiles, size_t n)
{
    const struct winograd *p = task->p;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const size_t bytes = p->grid.scalar_bytes, rows = task->index.batch.rows;
    const size_t width = plane->window.width, cols = task->index.batch.cols;
    const struct conv_finish finish = winograd_finish(task, k);
    for (size_t i = 0; i < down->tile; i++) {
        task->kernels->interleave(task->scratch.rows, along->tile,
                                  tiles + i * along->tile * n * bytes, (ptrdiff_t)n, along->tile,
                                  rows * cols);
        for (size_t r = 0; r < rows; r++)
            task->kernels->conv_store(plane->rows + (r * down->tile + i) * width * bytes, 1,
                                      task->scratch.rows + r * width * bytes, width, &finish);
    }
}

// Stores the rows of outputs of one map and output channel from their tiles, as store_window.
static void store_rows(const struct winograd_task *task, size_t map, size_t k, const char *tiles,
                       size_t n)
{
    const struct winograd *p = task->p;
    const struct tile_grid *grid = &p->grid;
    const struct winograd_index *index = &task->index;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const size_t bytes = grid->scalar_bytes, cols = index->batch.cols;
    const struct conv_finish finish = winograd_finish(task, k);
    const struct winograd_plane plane = winograd_plane(task, true, map, k);
    if (k + 1 < task->out + task->n_out && k % grid->out + 1 < grid->out &&
        index->batch.maps == 1) {
        struct winograd_plane next = plane;
        next.samples += p->strides[1].channel * bytes;
        winograd_prefetch(task, &next, true, true);
    }
    const ptrdiff_t q = tile_output(along, index->at[1]);
    const struct tile_range range =
        tile_within(&along->out, plane.image[2], plane.branch[2], q, cols * along->tile);
    if (range.begin == range.end) return;
    const ptrdiff_t column =
        tile_sample(&along->out, plane.image[2], plane.branch[2], q + (ptrdiff_t)range.begin);
    for (size_t i = 0; i < down->tile; i++) {
        task->kernels->interleave(task->scratch.rows, along->tile,
                                  tiles + i * along->tile * n * bytes, (ptrdiff_t)n, along->tile,
                                  index->batch.rows * cols);
        for (size_t r = 0; r < index->batch.rows; r++) {
            const ptrdiff_t row = tile_sample(&down->out, plane.image[1], plane.branch[1],
                                              tile_output(down, index->at[0] + r) + (ptrdiff_t)i);
            if (!tile_inside(&down->out, row)) continue;
            task->kernels->conv_store(
                plane.samples + ((size_t)row * along->out.size + (size_t)column) * bytes,
                along->out.step,
                task->scratch.rows + (r * cols * along->tile + range.begin) * bytes,
                range.end - range.begin, &finish);
        }
    }
}

// Transforms the sums of output channel k of the task and of map m of the batch.
static void transform_sums(const struct winograd_task *task,
                           const struct winograd_transform *transform, size_t k, size_t m)
{
    const struct winograd *p = task->p;
    const size_t tiles = task->index.batch.rows * task->index.batch.cols;
    const size_t at = k * p->positions + m * tiles;
    winograd_transform_tiles(transform, task->scratch.samples,
                             task->scratch.out + at * p->grid.scalar_bytes, task->scratch.stage);
}

// Channels last: the outputs of adjacent channels by way of their windows.
static void store_adjacent(const struct winograd_task *task,
                           const struct winograd_transform *transform)
{
    const struct winograd *p = task->p;
    const struct winograd_window window = winograd_window(p, &task->index.batch, transform->to);
    const size_t end = task->out + task->n_out, bytes = p->grid.scalar_bytes;
    for (size_t k = task->out, together; k < end; k += together) {
        together = winograd_together(task, true, k, end);
        for (size_t m = 0; m < task->index.batch.maps; m++) {
            struct winograd_plane plane = winograd_plane(task, true, task->index.map + m, k);
            plane.window = window;
            for (size_t c = 0; c < together; c++) {
                plane.rows = task->scratch.windows + c * window.channel * bytes;
                transform_sums(task, transform, k + c - task->out, m);
                store_window(task, &plane, k + c, task->scratch.samples, transform->n);
            }
            plane.rows = task->scratch.windows;
            winograd_write_windows(task, &plane, together);
        }
    }
}

static void transform_outputs(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const size_t tiles = task->index.batch.rows * task->index.batch.cols;
    struct winograd_transform transform = winograd_transform_of(p, task->kernels, WINOGRAD_OUTPUT);
    transform.n = transform.y_plane = winograd_vectors(p, tiles);
    transform.x_column = p->out_plane;
    for (size_t i = 0; i < transform.from[0]; i++)
        transform.x_row[i] = i * transform.from[1] * p->out_plane;
    if (p->channels_last) {
        store_adjacent(task, &transform);
        return;
    }
    for (size_t k = 0; k < task->n_out; k++)
        for (size_t m = 0; m < task->index.batch.maps; m++) {
            transform_sums(task, &transform, k, m);
            store_rows(task, task->index.map + m, task->out + k, task->scratch.samples,
                       transform.n);
        }
}

// Some input channels of a batch, for all splits.
static void run_shared_inputs(void *context, size_t index, int worker)
{
    const struct winograd_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t chunks = ceil_div(p->in, WINOGRAD.input_channels), groups = p->grid.groups;
    const size_t first = index % chunks * WINOGRAD.input_channels;
    const struct winograd_task task =
        winograd_task(call, index / chunks / groups, index / chunks % groups, worker);
    winograd_transform_channels(&task, false, first,
                                size_min(WINOGRAD.input_channels, p->in - first),
                                task.scratch.in + first * p->positions * p->grid.scalar_bytes);
}

// The panel of a frequency, for all splits.
static void run_shared_panel(void *context, size_t index, int worker)
{
    const struct winograd_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t groups = p->grid.groups, f = index % p->frequencies;
    index /= p->frequencies;
    const struct winograd_task task = winograd_task(call, index / groups, index % groups, worker);
    make_panel(&task, f);
}

static void run_forward_task(void *context, size_t index, int worker)
{
    const struct winograd_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t splits = p->oc_splits, groups = p->grid.groups;
    struct winograd_task task =
        winograd_task(call, index / splits / groups, index / splits % groups, worker);
    task.out = index % splits * p->oc_split;
    task.n_out = size_min(p->oc_split, p->out - task.out);
    for (; task.in < p->in; task.in += p->chunk) {
        const char *inputs = task.scratch.in;
        task.n_in = size_min(p->chunk, p->in - task.in);
        if (p->shared_inputs) inputs += task.in * p->positions * p->grid.scalar_bytes;
        else winograd_transform_channels(&task, false, task.in, task.n_in, task.scratch.in);
        if (p->transposed) multiply_transposed(&task);
        else if (p->call_taps) multiply_call_taps(&task, inputs);
        else multiply_tiles(&task, inputs);
    }
    if (p->map_lanes) winograd_store_maps(&task);
    else transform_outputs(&task);
}

void winograd_forward(struct winograd_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct winograd *p = plan->state;
    const struct shape *shape = &plan->shape;
    const size_t batches = winograd_batches(p) * p->grid.groups;
    if (!p->grid.covers)
        memset(call->y, 0,
               shape->batch * shape->in_channels * shape_inputs(shape) * shape->scalar_bytes);
    if (p->shared_inputs)
        thread_loop(plan->threads, batches * ceil_div(p->in, WINOGRAD.input_channels),
                    run_shared_inputs, call);
    if (p->shared_inputs && p->transposed)
        thread_loop(plan->threads, batches * p->frequencies, run_shared_panel, call);
    thread_loop(plan->threads, batches * p->oc_splits, run_forward_task, call);
}
