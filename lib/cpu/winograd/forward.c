// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/winograd: tiles of a batch are transformed, for each frequency
// output channels are sums of input channels times transformed taps (kernels->conv, an input
// channel being a term and tiles positions), and the sums are transformed back, with bias and
// activation on the way into their rows (Lavin & Gray, algorithm 1, batch by batch). Batches and
// splits of the output channels are tasks, by shape alone. If there are splits and memory for it,
// inputs are transformed once for all of them, before the first.
#include <string.h>

#include "base/thread.h"
#include "cpu/conv/passes.h"
#include "product/product.h"
#include "winograd.h"

// The taps of a frequency from scalar `at` of its plane on, see winograd_taps_at.
static const char *forward_taps(const struct winograd_task *task, size_t f, size_t at)
{
    const struct winograd *p = task->p;
    const size_t plane = (task->group * p->frequencies + f) * p->filter_plane;
    return (const char *)task->call->filter->state + (plane + at) * p->grid.scalar_bytes;
}

// Adds the task's n_in transformed input channels, `inputs`, to all its output channels, segment by
// segment.
static void multiply_tiles(const struct winograd_task *task, const char *inputs)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, pitch = p->positions;
    const size_t segment = size_min(p->segment, task->n_in);
    for (size_t f = 0; f < p->frequencies; f++)
        for (size_t c = 0; c < task->n_in; c += segment) {
            const size_t n = size_min(segment, task->n_in - c);
            const size_t taps = winograd_taps_at(p, task->in + c, task->out, 0);
            const char *plane = inputs + f * p->in_plane * bytes;
            product_run(&(struct product){
                .plan = task->call->plan,
                .rows = task->n_out,
                .columns = winograd_vectors(p, task->index.tiles),
                .terms = n,
                .a = {.at = forward_taps(task, f, taps),
                      .block = CONV_CHANNELS,
                      .pitch = CONV_CHANNELS * n},
                .b = {.at = plane + c * pitch * bytes, .term = pitch, .offset = p->offset},
                .c = task->scratch.out + f * p->out_plane * bytes,
                .c_step = pitch,
                .add = task->in + c > 0,
                .segment = product_segment(task->call->plan, WINOGRAD_TERMS),
                .next_b = c + n < task->n_in ? plane + (c + n) * pitch * bytes
                                             : plane + p->in_plane * bytes});
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
    const char *tiles = task->scratch.in + f * p->in_plane * p->grid.scalar_bytes;
    const struct product_matrix from = {.at = tiles, .term = p->positions};
    product_pack_rows(task->call->plan, &from, p->in, task->index.tiles, panel_at(task, f));
}

// Transposed products of all input channels, output channels being the positions: sums
// [tile][output channel], then transposed.
static void multiply_transposed(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const struct winograd_scratch *scratch = &task->scratch;
    const size_t bytes = p->grid.scalar_bytes, pitch = p->oc_split;
    const size_t lanes = winograd_lanes(p), tiles = task->index.tiles;
    for (size_t f = 0; f < p->frequencies; f++) {
        if (!p->shared_inputs) make_panel(task, f);
        // The lanes that are no tiles.
        memset(scratch->out_panel + tiles * pitch * bytes, 0,
               (winograd_vectors(p, tiles) - tiles) * pitch * bytes);
        product_run(&(struct product){
            .plan = task->call->plan,
            .rows = tiles,
            .columns = size_round_up(task->n_out, p->oc_block),
            .terms = p->in,
            .a = {.at = panel_at(task, f), .block = CONV_CHANNELS, .pitch = CONV_CHANNELS * p->in},
            .b = {.at = forward_taps(task, f, task->out * p->in),
                  .block = p->oc_block,
                  .pitch = p->oc_block * p->in},
            .c = scratch->out_panel,
            .c_pitch = p->oc_block,
            .c_step = pitch,
            .segment = product_segment(task->call->plan, WINOGRAD_TERMS),
            .next_b = forward_taps(task, f + 1, task->out * p->in)});
        for (size_t t = 0; t < tiles; t += lanes)
            task->kernels->interleave(scratch->out + (f * p->out_plane + t) * bytes, p->positions,
                                      scratch->out_panel + t * pitch * bytes, (ptrdiff_t)pitch,
                                      lanes, task->n_out);
    }
}

// The transform of the sums of an output channel, as far as their rows; the last step stores them.
struct output {
    struct winograd_transform transform;
    struct winograd_stores stores;
};

static struct output forward_output(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const size_t tiles = task->index.batch.rows * task->index.batch.cols;
    struct output ret = {.transform = winograd_transform_of(p, task->kernels, WINOGRAD_OUTPUT)};
    struct winograd_transform *t = &ret.transform;
    t->n = winograd_vectors(p, tiles);
    t->x_column = p->out_plane;
    t->ahead = p->positions; // the next channel's
    for (size_t i = 0; i < t->from[0]; i++) t->x_row[i] = i * t->from[1] * p->out_plane;
    ret.stores = (struct winograd_stores){.rows = t->to[0],
                                          .x_row = t->from[1] * t->n,
                                          .x_stride = t->extent[0] > 1 ? t->n : p->out_plane,
                                          .tiles = tiles,
                                          .cols = task->index.batch.cols};
    return ret;
}

// Transforms the sums of output channel k of the task and of map m of the batch, and stores them
// as the output says.
static void store_sums(const struct winograd_task *task, const struct output *output, size_t k,
                       size_t m, char *to)
{
    const struct winograd *p = task->p;
    const struct winograd_transform *t = &output->transform;
    const size_t tiles = task->index.batch.rows * task->index.batch.cols;
    const char *sums = task->scratch.out + (k * p->positions + m * tiles) * p->grid.scalar_bytes;
    const struct winograd_rows rows = {.n = t->n,
                                       .rows = t->from[1],
                                       .x_row_stride = t->x_column,
                                       .y_row_stride = t->n,
                                       .y_stride = t->from[1] * t->n,
                                       .offset = t->x_row,
                                       .ahead = t->ahead};
    const bool down = t->extent[0] > 1;
    if (down) t->kernel(task->scratch.stage, sums, t->extent[0], t->count[0], &rows);
    task->kernels->winograd_store(to, down ? task->scratch.stage : sums, t->extent[1], t->to[1],
                                  &output->stores);
}

// The window of an output channel holds all its rows.
static void output_to_window(struct output *output, const struct winograd_window *window)
{
    output->stores.pitch = window->width;
    output->stores.last_row = window->rows;
    output->stores.last = window->width;
}

// Stores the outputs of map m of the batch and channel k of the task in their rows.
static void store_rows(const struct winograd_task *task, struct output *output, size_t k, size_t m)
{
    const struct winograd *p = task->p;
    const struct tile_grid *grid = &p->grid;
    const struct winograd_index *index = &task->index;
    struct winograd_plane plane = winograd_plane(task, true, index->map + m, task->out + k);
    const bool next = k + 1 < task->n_out && (task->out + k) % grid->out + 1 < grid->out;
    if (next) plane.ahead = (ptrdiff_t)(p->strides[1].channel * grid->scalar_bytes);
    const struct conv_finish finish = winograd_finish(task, task->out + k);
    output->stores.finish = &finish;
    plane.window = winograd_window(p, &index->batch, output->transform.to);
    if (plane.side[1]->step == 1) {
        struct winograd_lines lines = {0};
        char *to = winograd_plane_lines(task, &plane, &lines);
        output->stores.pitch = lines.pitch;
        output->stores.ahead = lines.ahead;
        output->stores.first_row = lines.first_row;
        output->stores.last_row = lines.last_row;
        output->stores.first = lines.first;
        output->stores.last = lines.last;
        store_sums(task, output, k, m, to);
        return;
    }
    plane.rows = task->scratch.rows;
    output_to_window(output, &plane.window);
    store_sums(task, output, k, m, plane.rows);
    winograd_write_windows(task, &plane, 1);
}

// Channels last: the outputs of adjacent channels by way of their windows.
static void store_adjacent(const struct winograd_task *task, struct output *output)
{
    const struct winograd *p = task->p;
    const struct winograd_window window =
        winograd_window(p, &task->index.batch, output->transform.to);
    const size_t end = task->out + task->n_out, bytes = p->grid.scalar_bytes;
    output_to_window(output, &window);
    for (size_t k = task->out, count; k < end; k += count) {
        count = winograd_together(task, true, k, end);
        for (size_t m = 0; m < task->index.batch.maps; m++) {
            struct winograd_plane plane = winograd_plane(task, true, task->index.map + m, k);
            for (size_t c = 0; c < count; c++) {
                const struct conv_finish finish = winograd_finish(task, k + c);
                output->stores.finish = &finish;
                store_sums(task, output, k + c - task->out, m,
                           task->scratch.windows + c * window.channel * bytes);
            }
            plane.window = window;
            plane.rows = task->scratch.windows;
            winograd_write_windows(task, &plane, count);
        }
    }
}

static void transform_outputs(const struct winograd_task *task)
{
    struct output output = forward_output(task);
    if (task->p->channels_last) {
        store_adjacent(task, &output);
        return;
    }
    for (size_t k = 0; k < task->n_out; k++)
        for (size_t m = 0; m < task->index.batch.maps; m++) store_rows(task, &output, k, m);
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
        else multiply_tiles(&task, inputs);
    }
    if (p->map_lanes) winograd_store_maps(&task);
    else transform_outputs(&task);
}

void winograd_forward(struct winograd_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct winograd *p = plan->state;
    const size_t batches = winograd_batches(p) * p->grid.groups;
    if (!p->grid.covers)
        memset(call->y, 0, shape_samples(&plan->shape, false) * plan->shape.scalar_bytes);
    if (p->shared_inputs)
        thread_loop(plan->threads, batches * ceil_div(p->in, WINOGRAD.input_channels),
                    run_shared_inputs, call);
    if (p->shared_inputs && p->transposed)
        thread_loop(plan->threads, batches * p->frequencies, run_shared_panel, call);
    thread_loop(plan->threads, batches * p->oc_splits, run_forward_task, call);
}
