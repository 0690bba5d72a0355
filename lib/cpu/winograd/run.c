// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/winograd: tiles of a block are transformed, for each frequency
// output channels are sums of input channels times transformed taps (kernels->conv, an input
// channel being a term and tiles positions), and the sums are transformed back, with bias and
// activation on the way into their rows (Lavin & Gray, algorithm 1, block by block). Blocks and
// parts of the output channels are tasks, cut by shape alone. Where there are parts, and room for
// it, inputs are transformed once for all of them, before the first.
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "geometry/samples.h"
#include "winograd.h"

enum { SHARED_CHANNELS = 16 }; // transformed by one task, where parts share them

// Taps of `n` output channels from `first` on of one group: ret[row][column][in][n]. Zeros for
// channels there are not.
static void gather_taps(const struct winograd *winograd, char *ret, const char *taps,
                        size_t taps_of_cell, size_t group, size_t first, size_t n)
{
    const struct tile_grid *grid = &winograd->grid;
    const size_t bytes = grid->scalar_bytes, columns = winograd_axis(winograd, 1)->taps;
    const size_t all = winograd_axis(winograd, 0)->taps * columns;
    const size_t next = tile_grid_cell(grid, 0, 0, 1) * taps_of_cell; // input channel
    memset(ret, 0, all * winograd->in * n * bytes);
    for (size_t at = 0; at < all; at++)
        for (size_t c = 0; c < winograd->in; c += grid->in)
            for (size_t k = 0; k < n && first + k < winograd->out; k++) {
                size_t phase[3];
                tile_grid_phase(grid, grid->phases_out ? (first + k) / grid->out : c / grid->in,
                                phase);
                const size_t tap =
                    tile_grid_tap(grid, phase, (const size_t[]){0, at / columns, at % columns});
                const size_t cell = tile_grid_cell(grid, group, (first + k) % grid->out, 0);
                if (tap != SIZE_MAX)
                    samples_copy(ret + ((at * winograd->in + c) * n + k) * bytes, n,
                                 taps + (cell * taps_of_cell + tap) * bytes, next, grid->in, bytes);
            }
}

// Transformed taps: [group][frequency][block of output channels][in][channels of the block], each
// frequency with room for the last vector of its last block. Turned, the last block is as wide as
// the others.
enum partita_status winograd_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct winograd *winograd = plan->state;
    const size_t bytes = plan->shape.scalar_bytes, frequencies = winograd->frequencies;
    const size_t gathered = winograd_positions(winograd, winograd->in * winograd->width);
    const size_t rows = winograd_axis(winograd, 0)->taps,
                 columns = winograd_axis(winograd, 1)->taps;
    struct winograd_both both = winograd_of_taps(winograd);
    both.y_plane = winograd->filter_plane;
    filter->state = mem_reserve(
        &plan->allocator,
        size_mul(size_mul(plan->shape.groups * frequencies, winograd->filter_plane), bytes));
    char *scratch =
        mem_allocate(&plan->allocator, size_mul(rows * columns + frequencies, gathered * bytes));
    if (!scratch || !filter->state) {
        mem_release(&plan->allocator, scratch);
        return PARTITA_ERR_NOMEM;
    }
    for (size_t group = 0; group < plan->shape.groups; group++)
        for (size_t first = 0; first < winograd->out; first += winograd->width) {
            const size_t left = winograd->out - first,
                         n = winograd->turned ? winograd->width : size_min(left, winograd->width);
            char *to =
                (char *)filter->state +
                (group * frequencies * winograd->filter_plane + first * winograd->in) * bytes;
            gather_taps(winograd, scratch, taps, shape_taps(&plan->shape), group, first, n);
            both.n = winograd_positions(winograd, winograd->in * n);
            both.x_column = winograd->in * n;
            for (size_t i = 0; i < rows; i++) both.x_row[i] = i * columns * both.x_column;
            winograd_transform(plan->kernels->winograd_taps, &both, to, scratch,
                               scratch + rows * columns * gathered * bytes);
        }
    mem_release(&plan->allocator, scratch);
    return PARTITA_OK;
}

struct call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    char *to;
    const char *from;
    char *workspace;
};

// One task: a block of tiles, some output channels of a group, and the scratch of the thread that
// does it.
struct task {
    const struct call *call;
    const struct winograd *winograd;
    struct winograd_place place;
    size_t block;
    size_t group, first, end; // output channels of the group, phases counted
    size_t n;                 // positions of the block
    const char *in;           // transformed inputs of the chunk at hand
    struct winograd_scratch at;
};

// The share of n transformed input channels from `first` on in all output channels of the task.
static void multiply(const struct task *task, size_t first, size_t n)
{
    const struct winograd *winograd = task->winograd;
    const size_t bytes = winograd->grid.scalar_bytes, pitch = winograd->positions;
    const char *filter = task->call->filter->state;
    for (size_t f = 0; f < winograd->frequencies; f++)
        for (size_t k = task->first; k < task->end; k += CONV_CHANNELS) {
            const size_t channels = size_min(task->end - k, CONV_CHANNELS);
            const size_t plane = (task->group * winograd->frequencies + f) * winograd->filter_plane;
            char *sums =
                task->at.out + (f * winograd->out_plane + (k - task->first) * pitch) * bytes;
            if (first == 0) memset(sums, 0, channels * pitch * bytes);
            task->call->plan->kernels->conv(
                sums, pitch, task->in + f * winograd->in_plane * bytes, winograd->offset, n,
                filter + (plane + k * winograd->in + first * channels) * bytes, channels, task->n,
                0);
        }
}

static size_t tiles_of(const struct task *task)
{
    return task->place.block.maps * task->place.block.rows * task->place.block.cols;
}

// Where the inputs of the task's block and group are, that all parts share; and, turned, their
// panel of a frequency.
static char *shared_inputs(const struct task *task)
{
    const struct winograd *winograd = task->winograd;
    return task->call->workspace +
           (task->block * winograd->grid.groups + task->group) * winograd_shared_bytes(winograd);
}

static char *shared_panel(const struct task *task, size_t f)
{
    const struct winograd *winograd = task->winograd;
    return shared_inputs(task) + winograd_inputs_bytes(winograd) +
           f * mem_round(winograd->in_panel * winograd->grid.scalar_bytes);
}

// Turned: the panel of a frequency.
static char *make_panel(const struct task *task, size_t f)
{
    const struct winograd *winograd = task->winograd;
    const size_t bytes = winograd->grid.scalar_bytes, in = winograd->in, tiles = tiles_of(task);
    char *panel = task->at.in_panel;
    for (size_t t = 0; t < tiles; t += CONV_CHANNELS)
        task->call->plan->kernels->conv_rows(
            panel + t * in * bytes, task->at.in + (f * winograd->in_plane + t) * bytes,
            winograd->positions, in, size_min(tiles - t, CONV_CHANNELS));
    return panel;
}

// The same with output channels as positions, for all input channels: sums [tile][output channel],
// then turned back.
static void multiply_turned(const struct task *task)
{
    const struct winograd *winograd = task->winograd;
    const struct kernels *kernels = task->call->plan->kernels;
    const size_t bytes = winograd->grid.scalar_bytes, in = winograd->in, pitch = winograd->part;
    const size_t lanes = CONV_BLOCK_BYTES / bytes;
    const size_t tiles = tiles_of(task);
    const char *filter = task->call->filter->state;
    for (size_t f = 0; f < winograd->frequencies; f++) {
        const char *panel = winograd->shares ? shared_panel(task, f) : make_panel(task, f);
        memset(task->at.out_panel, 0, task->n * pitch * bytes);
        for (size_t k = task->first; k < task->end; k += winograd->width) {
            const char *taps =
                filter +
                ((task->group * winograd->frequencies + f) * winograd->filter_plane + k * in) *
                    bytes;
            for (size_t t = 0; t < tiles; t += CONV_CHANNELS)
                for (size_t c = 0; c < in; c += WINOGRAD_TERMS) {
                    const size_t n = size_min(tiles - t, CONV_CHANNELS);
                    kernels->conv(task->at.out_panel + (t * pitch + k - task->first) * bytes, pitch,
                                  taps + c * winograd->width * bytes, winograd->offset,
                                  size_min(in - c, WINOGRAD_TERMS),
                                  panel + (t * in + c * n) * bytes, n, winograd->width,
                                  t ? 0 : CONV_AHEAD_BYTES);
                }
        }
        for (size_t t = 0; t < tiles; t += lanes)
            kernels->interleave(task->at.out + (f * winograd->out_plane + t) * bytes,
                             winograd->positions, task->at.out_panel + t * pitch * bytes,
                             (ptrdiff_t)pitch, lanes, task->end - task->first);
    }
}

// Rows of outputs of one map and output channel from their tiles; element (i, j) is at (i * columns
// + j) * n.
static void store_rows(const struct task *task, const struct winograd_map *map, size_t k,
                       const char *tiles, size_t n)
{
    const struct call *call = task->call;
    const struct winograd *winograd = task->winograd;
    const struct tile_grid *grid = &winograd->grid;
    const struct tile_axis *down = winograd_axis(winograd, 0), *along = winograd_axis(winograd, 1);
    const size_t bytes = grid->scalar_bytes, cols = task->place.block.cols;
    const size_t channel = task->group * grid->out + k % grid->out;
    const bool forward = !grid->phases_out;
    const char *bias = forward ? call->filter->bias : NULL;
    const struct conv_finish finish = {.bias = bias ? bias + channel * bytes : NULL,
                                       .relu = forward && call->plan->shape.relu};
    char *plane = call->to + (map->item * grid->groups * grid->out + channel) * down->out.size *
                                 along->out.size * bytes;
    size_t phase[3];
    tile_grid_phase(grid, forward ? 0 : k / grid->out, phase);
    if (k + 1 < task->end && k % grid->out + 1 < grid->out && task->place.block.maps == 1)
        winograd_fetch(winograd, true, &task->place, map, phase[1],
                       plane + down->out.size * along->out.size * bytes, true);
    const ptrdiff_t q = tile_output(along, task->place.at[1]);
    const struct tile_range range =
        tile_within(&along->out, map->image[2], phase[2], q, cols * along->tile);
    if (range.begin == range.end) return;
    const ptrdiff_t column =
        tile_sample(&along->out, map->image[2], phase[2], q + (ptrdiff_t)range.begin);
    for (size_t i = 0; i < down->tile; i++) {
        call->plan->kernels->interleave(task->at.joined, along->tile,
                                     tiles + i * along->tile * n * bytes, (ptrdiff_t)n, along->tile,
                                     task->place.block.rows * cols);
        for (size_t r = 0; r < task->place.block.rows; r++) {
            const ptrdiff_t line =
                tile_sample(&down->out, map->image[1], phase[1],
                            tile_output(down, task->place.at[0] + r) + (ptrdiff_t)i);
            if (!tile_inside(&down->out, line)) continue;
            call->plan->kernels->conv_store(
                plane + ((size_t)line * along->out.size + (size_t)column) * bytes, along->out.step,
                task->at.joined + (r * cols * along->tile + range.begin) * bytes,
                range.end - range.begin, &finish);
        }
    }
}

static void transform_outputs(const struct task *task)
{
    const struct winograd *winograd = task->winograd;
    const struct kernels *kernels = task->call->plan->kernels;
    const size_t bytes = winograd->grid.scalar_bytes,
                 tiles = task->place.block.rows * task->place.block.cols;
    struct winograd_both both = winograd_of_output(winograd);
    both.n = both.y_plane = winograd_positions(winograd, tiles);
    both.x_column = winograd->out_plane;
    for (size_t i = 0; i < both.from[0]; i++)
        both.x_row[i] = i * both.from[1] * winograd->out_plane;
    for (size_t k = task->first; k < task->end; k++)
        for (size_t m = 0; m < task->place.block.maps; m++) {
            const struct winograd_map map = winograd_map(winograd, task->place.map + m);
            const char *sums =
                task->at.out + ((k - task->first) * winograd->positions + m * tiles) * bytes;
            winograd_transform(kernels->winograd_output, &both, task->at.dealt, sums,
                               task->at.between);
            store_rows(task, &map, k, task->at.dealt, both.n);
        }
}

static struct task task_of(const struct call *call, size_t block, size_t group, int worker)
{
    const struct winograd *winograd = call->plan->state;
    struct task task = {.call = call, .winograd = winograd, .block = block, .group = group};
    task.place = winograd_place(winograd, block);
    task.n = winograd_positions(winograd, tiles_of(&task));
    task.at = winograd_scratch(winograd, call->workspace + call->plan->choice.shared +
                                             (size_t)worker * winograd->worker);
    if (winograd->shares) task.at.in = shared_inputs(&task);
    return task;
}

// Transforms n input channels from first on to where channel `at` of the block's inputs is.
static void transform_inputs(const struct task *task, size_t first, size_t n, size_t at)
{
    const struct winograd *winograd = task->winograd;
    const struct winograd_inputs inputs = {.winograd = winograd,
                                           .kernels = task->call->plan->kernels,
                                           .group = task->group,
                                           .place = task->place,
                                           .from = task->call->from,
                                           .to = task->at.in + at * winograd->positions *
                                                                   winograd->grid.scalar_bytes,
                                           .at = &task->at};
    winograd_transform_inputs(&inputs, first, n);
}

// Some input channels of a block, for all parts.
static void run_inputs(void *context, size_t index, int worker)
{
    const struct call *call = context;
    const struct winograd *winograd = call->plan->state;
    const size_t pieces = ceil_div(winograd->in, SHARED_CHANNELS), groups = winograd->grid.groups;
    const struct task task =
        task_of(call, index / pieces / groups, index / pieces % groups, worker);
    const size_t first = index % pieces * SHARED_CHANNELS;
    transform_inputs(&task, first, size_min(SHARED_CHANNELS, winograd->in - first), first);
}

// The panel of a frequency, for all parts.
static void run_panel(void *context, size_t index, int worker)
{
    const struct call *call = context;
    const struct winograd *winograd = call->plan->state;
    const size_t groups = winograd->grid.groups, frequencies = winograd->frequencies,
                 f = index % frequencies;
    struct task task =
        task_of(call, index / frequencies / groups, index / frequencies % groups, worker);
    task.at.in_panel = shared_panel(&task, f);
    make_panel(&task, f);
}

static void run_task(void *context, size_t index, int worker)
{
    const struct call *call = context;
    const struct winograd *winograd = call->plan->state;
    const size_t parts = winograd->parts, groups = winograd->grid.groups,
                 bytes = winograd->grid.scalar_bytes;
    struct task task = task_of(call, index / parts / groups, index / parts % groups, worker);
    task.first = index % parts * winograd->part;
    task.end = size_min(task.first + winograd->part, winograd->out);
    task.in = task.at.in;
    for (size_t first = 0; first < winograd->in; first += winograd->chunk) {
        const size_t n = size_min(winograd->chunk, winograd->in - first);
        if (winograd->shares) task.in = task.at.in + first * winograd->positions * bytes;
        else transform_inputs(&task, first, n, 0);
        if (winograd->turned) multiply_turned(&task);
        else multiply(&task, first, n);
    }
    transform_outputs(&task);
}

void winograd_forward(const struct partita_plan *plan, const struct partita_filter *filter, void *y,
                      const void *x, void *workspace)
{
    const struct winograd *winograd = plan->state;
    const size_t blocks =
        winograd->blocks[0] * winograd->blocks[1] * winograd->blocks[2] * winograd->grid.groups;
    struct call call = {plan, filter, y, x, workspace};
    if (!winograd->grid.covers) {
        const struct shape *shape = &plan->shape;
        memset(y, 0, shape->batch * shape->in_channels * shape_inputs(shape) * shape->scalar_bytes);
    }
    if (winograd->shares)
        thread_loop(plan->threads, blocks * ceil_div(winograd->in, SHARED_CHANNELS), run_inputs,
                    &call);
    if (winograd->shares && winograd->turned)
        thread_loop(plan->threads, blocks * winograd->frequencies, run_panel, &call);
    thread_loop(plan->threads, blocks * winograd->parts, run_task, &call);
}
