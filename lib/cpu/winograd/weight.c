// SPDX-License-Identifier: MIT
// Backward weight of cpu/winograd: tiles of x and of gy are transformed, for each frequency their
// products are summed over all tiles (kernels->conv on panels, tiles being the terms), and the sums
// are transformed to taps: F(r x r, m x m), gy being the taps and the taps the outputs (Lavin &
// Gray, 4.1). Channels are turned over into panels a vector at a time, while their transforms are
// near. Sums are kept in one of three ways: - by runs, with few channels: a task has sums of its
// own of a run of blocks, and makes taps of them; runs are added. - together, with many: block by
// block a task makes one piece of the panels that all threads share; when all are made, a
//   task adds the products of one frequency and 256 x 256 channels to sums that are shared as well;
//   last come taps.
// - once, where one block has all tiles: with shared panels a task makes the sums of a strip of
// input channels and four
//   blocks of output channels, for all frequencies, and at once their taps.
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/run_sums.h"
#include "geometry/samples.h"
#include "winograd.h"

struct call {
    const struct partita_plan *plan;
    char *shared, *workers;
    struct run_sums sums;
    const char *x, *gy;
    size_t first, groups, block; // that threads are at together
};

// One task: channels of x and of gy of a group, counted with phases, and the block they are at.
struct task {
    const struct call *call;
    const struct winograd *winograd;
    size_t group, in, n_in, out, n_out, run;
    struct winograd_place place;
    struct winograd_scratch at;
};

static size_t tiles_of(const struct task *task)
{
    return task->place.block.maps * task->place.block.rows * task->place.block.cols;
}

// Input channel c of the task, of one frequency: [tile][strip], c standing first in a strip or a
// vector of it.
static char *in_panel(const struct task *task, size_t c, size_t f)
{
    const struct winograd *winograd = task->winograd;
    const size_t strip = winograd->strip, plane = c / strip * winograd->frequencies + f;
    return task->at.in_panel +
           (plane * winograd->positions * strip + c % strip) * winograd->grid.scalar_bytes;
}

// The block of output channels k of the task: [tile][channel of the block].
static char *out_panel(const struct task *task, size_t k, size_t f)
{
    const struct winograd *winograd = task->winograd;
    const size_t plane = k / CONV_CHANNELS * winograd->frequencies + f;
    return task->at.out_panel +
           plane * winograd->positions * CONV_CHANNELS * winograd->grid.scalar_bytes;
}

// Sums of one frequency: [strip][block of output channels][channel of the block][channel of the
// strip]; of all strips, or of the one at hand.
static size_t sums_plane(const struct winograd *winograd)
{
    const size_t strips = winograd->once ? 1 : ceil_div(winograd->chunk, winograd->strip);
    return strips * winograd->held * CONV_CHANNELS * winograd->strip;
}

static char *sums_of(const struct task *task, size_t c, size_t k, size_t f)
{
    const struct winograd *winograd = task->winograd;
    const size_t strip = winograd->once ? 0 : c / winograd->strip;
    const size_t block = strip * winograd->held + k / CONV_CHANNELS % winograd->held;
    return task->at.sums + (f * sums_plane(winograd) + block * CONV_CHANNELS * winograd->strip) *
                               winograd->grid.scalar_bytes;
}

// Panels of a vector of input channels from c on, or of a block of output channels.
static void make_panels(const struct task *task, bool outputs, size_t c)
{
    const struct winograd *winograd = task->winograd;
    const struct call *call = task->call;
    const size_t bytes = winograd->grid.scalar_bytes, tiles = tiles_of(task);
    const size_t count = outputs ? CONV_CHANNELS : CONV_BLOCK_BYTES / bytes;
    const size_t plane = (outputs ? winograd->out_plane : winograd->in_plane) * bytes;
    const struct winograd_inputs inputs = {.winograd = winograd,
                                           .kernels = call->plan->kernels,
                                           .outputs = outputs,
                                           .group = task->group,
                                           .place = task->place,
                                           .from = outputs ? call->gy : call->x,
                                           .to = task->at.in,
                                           .at = &task->at};
    if (outputs)
        winograd_transform_inputs(&inputs, task->out + c, size_min(count, task->n_out - c));
    else winograd_transform_inputs(&inputs, task->in + c, size_min(count, task->n_in - c));
    for (size_t f = 0; f < winograd->frequencies; f++)
        call->plan->kernels->interleave(outputs ? out_panel(task, c, f) : in_panel(task, c, f),
                                     outputs ? CONV_CHANNELS : winograd->strip,
                                     inputs.to + f * plane, (ptrdiff_t)winograd->positions, count,
                                     tiles);
}

// The share of the block in the sums of a frequency, of input channels first .. last-1, whole
// strips, and of output channels k .. end-1; `fresh`: they begin with it. Terms are tiles,
// positions input channels.
static void multiply(const struct task *task, size_t f, size_t first, size_t last, size_t k,
                     size_t end, bool fresh)
{
    const struct winograd *winograd = task->winograd;
    const size_t bytes = winograd->grid.scalar_bytes, strip = winograd->strip,
                 tiles = tiles_of(task);
    for (size_t c = first; c < last; c += strip)
        for (size_t i = k; i < end; i += CONV_CHANNELS) {
            char *sums = sums_of(task, c, i, f);
            if (fresh) memset(sums, 0, CONV_CHANNELS * strip * bytes);
            task->call->plan->kernels->conv(
                sums, strip, in_panel(task, c, f), winograd->offset, tiles, out_panel(task, i, f),
                CONV_CHANNELS, winograd_positions(winograd, size_min(last - c, strip)), 0);
        }
}

// Taps of output channel k of the task and the strip of input channels from first on; tap (i, j) of
// channel c is at (i * columns + j) * n + c.
static void store_taps(const struct task *task, size_t first, size_t k, const char *taps, size_t n)
{
    const struct winograd *winograd = task->winograd;
    const struct kernels *kernels = task->call->plan->kernels;
    const struct tile_grid *grid = &winograd->grid;
    const size_t bytes = grid->scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes;
    const size_t taps_of_cell = shape_taps(&task->call->plan->shape);
    const size_t columns = winograd_axis(winograd, 1)->taps,
                 all = winograd_axis(winograd, 0)->taps * columns;
    const size_t channels = size_min(task->n_in - first, winograd->strip);
    char *gw = run_sums_of(&task->call->sums, task->run);
    for (size_t c = 0, n_c; c < channels; c += n_c) { // of one phase
        const size_t in = task->in + first + c,
                     cell = tile_grid_cell(grid, task->group, task->out + k, in % grid->in);
        char *to = gw + cell * taps_of_cell * bytes;
        size_t phase[3];
        n_c = size_min(channels - c, grid->in - in % grid->in);
        tile_grid_phase(grid, in / grid->in, phase);
        // Whole vectors of channels whose taps follow one another in gw, or would backwards.
        const size_t whole = grid->phases == 1 ? n_c / lanes * lanes : 0;
        const char *first_tap = taps + (c + (grid->flip ? (all - 1) * n : 0)) * bytes;
        kernels->interleave(to, all, first_tap, grid->flip ? -(ptrdiff_t)n : (ptrdiff_t)n, all, whole);
        for (size_t at = 0; at < all && whole < n_c; at++) {
            const size_t tap =
                tile_grid_tap(grid, phase, (const size_t[]){0, at / columns, at % columns});
            if (tap != SIZE_MAX)
                samples_copy(to + (whole * taps_of_cell + tap) * bytes, taps_of_cell,
                             taps + (at * n + c + whole) * bytes, 1, n_c - whole, bytes);
        }
    }
}

// Taps of output channels k .. end-1 and of the strip of input channels c, from their sums.
static void finish(const struct task *task, size_t c, size_t k, size_t end)
{
    const struct winograd *winograd = task->winograd;
    const size_t strip = winograd->strip;
    struct winograd_both both = winograd_of_tap_sums(winograd);
    both.n = both.y_plane = CONV_CHANNELS * strip;
    both.x_column = sums_plane(winograd);
    for (size_t i = 0; i < both.from[0]; i++) both.x_row[i] = i * both.from[1] * both.x_column;
    // Tiles are done with.
    char *between = task->at.in + both.to[0] * both.to[1] * both.n * winograd->grid.scalar_bytes;
    for (; k < end; k += CONV_CHANNELS) {
        winograd_transform(task->call->plan->kernels->winograd_output, &both, task->at.in,
                           sums_of(task, c, k, 0), between);
        for (size_t i = 0; i < CONV_CHANNELS && k + i < task->n_out; i++)
            store_taps(task, c, k + i, task->at.in + i * strip * winograd->grid.scalar_bytes,
                       both.n);
    }
}

// A task of all channels of a group, at the first block.
static struct task task_of(const struct call *call, size_t group, int worker)
{
    const struct winograd *winograd = call->plan->state;
    struct task task = {.call = call,
                        .winograd = winograd,
                        .group = group,
                        .n_in = winograd->in,
                        .n_out = winograd->out,
                        .place = winograd_place(winograd, 0)};
    task.at = winograd_scratch(winograd, call->workers + (size_t)worker * winograd->worker);
    return task;
}

// One task by itself: its channels through a run of blocks, then their taps.
static void run_task(void *context, size_t index, int worker)
{
    const struct call *call = context;
    const struct winograd *winograd = call->plan->state;
    const size_t n_chunks = ceil_div(winograd->in, winograd->chunk),
                 lanes = CONV_BLOCK_BYTES / winograd->grid.scalar_bytes;
    struct task task =
        task_of(call, index / n_chunks / winograd->parts % winograd->grid.groups, worker);
    task.in = index % n_chunks * winograd->chunk;
    task.out = index / n_chunks % winograd->parts * winograd->part;
    task.run = index / n_chunks / winograd->parts / winograd->grid.groups;
    task.n_in = size_min(winograd->chunk, winograd->in - task.in);
    task.n_out = size_min(winograd->part, winograd->out - task.out);
    const size_t blocks = winograd_blocks(winograd);
    const size_t begin = task.run * blocks / winograd->runs,
                 end = (task.run + 1) * blocks / winograd->runs;
    for (size_t block = begin; block < end; block++) {
        task.place = winograd_place(winograd, block);
        for (size_t c = 0; c < task.n_in; c += lanes) make_panels(&task, false, c);
        for (size_t k = 0; k < task.n_out; k += CONV_CHANNELS) make_panels(&task, true, k);
        for (size_t f = 0; f < winograd->frequencies; f++)
            multiply(&task, f, 0, task.n_in, 0, task.n_out, block == begin);
    }
    for (size_t c = 0; c < task.n_in; c += winograd->strip) finish(&task, c, 0, task.n_out);
}

// Threads together: all channels of a group, counted from the call's first, at the call's block.
static struct task task_together(const struct call *call, size_t group, int worker)
{
    struct task task = task_of(call, call->first + group, worker);
    const struct winograd *winograd = task.winograd;
    task.place = winograd_place(winograd, call->block);
    task.at.in_panel = call->shared + group * winograd_together_bytes(winograd);
    task.at.out_panel =
        task.at.in_panel + mem_round(winograd->in_panel * winograd->grid.scalar_bytes);
    if (!winograd->once) task.at.sums = task.at.in_panel + winograd_panels_bytes(winograd);
    return task;
}

static size_t in_vectors(const struct winograd *winograd)
{
    return ceil_div(winograd->in, CONV_BLOCK_BYTES / winograd->grid.scalar_bytes);
}

// A vector of input channels, or a block of output channels.
static void run_panels(void *context, size_t index, int worker)
{
    const struct call *call = context;
    const struct winograd *winograd = call->plan->state;
    const size_t vectors = in_vectors(winograd),
                 pieces = vectors + ceil_div(winograd->out, CONV_CHANNELS);
    const struct task task = task_together(call, index / pieces, worker);
    const size_t piece = index % pieces;
    if (piece < vectors)
        make_panels(&task, false, piece * (CONV_BLOCK_BYTES / winograd->grid.scalar_bytes));
    else make_panels(&task, true, (piece - vectors) * CONV_CHANNELS);
}

// A frequency of at most 256 input and 256 output channels, whose panels and sums stay near.
static void run_frequency(void *context, size_t index, int worker)
{
    const struct call *call = context;
    const struct winograd *winograd = call->plan->state;
    const size_t n_in = ceil_div(winograd->in, WINOGRAD_WEIGHT_CHANNELS),
                 n_out = ceil_div(winograd->out, WINOGRAD_WEIGHT_CHANNELS),
                 f = index / n_out / n_in;
    const struct task task = task_together(call, f / winograd->frequencies, worker);
    const size_t c = index / n_out % n_in * WINOGRAD_WEIGHT_CHANNELS,
                 k = index % n_out * WINOGRAD_WEIGHT_CHANNELS;
    multiply(&task, f % winograd->frequencies, c,
             size_min(c + WINOGRAD_WEIGHT_CHANNELS, winograd->in), k,
             size_min(k + WINOGRAD_WEIGHT_CHANNELS, winograd->out), call->block == 0);
}

// The taps of a strip by WINOGRAD_HELD blocks of output channels; once: their products first.
static void run_taps(void *context, size_t index, int worker)
{
    const struct call *call = context;
    const struct winograd *winograd = call->plan->state;
    const size_t channels = WINOGRAD_HELD * CONV_CHANNELS,
                 pieces = ceil_div(winograd->out, channels),
                 strips = ceil_div(winograd->in, winograd->strip);
    const struct task task = task_together(call, index / pieces / strips, worker);
    const size_t c = index / pieces % strips * winograd->strip, k = index % pieces * channels,
                 end = size_min(k + channels, winograd->out);
    for (size_t f = 0; f < winograd->frequencies && winograd->once; f++)
        multiply(&task, f, c, size_min(c + winograd->strip, task.n_in), k, end, true);
    finish(&task, c, k, end);
}

// Some groups: panels and products block by block, then taps.
static void run_groups(struct call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct winograd *winograd = plan->state;
    const size_t panels = in_vectors(winograd) + ceil_div(winograd->out, CONV_CHANNELS),
                 products = winograd->frequencies *
                            ceil_div(winograd->in, WINOGRAD_WEIGHT_CHANNELS) *
                            ceil_div(winograd->out, WINOGRAD_WEIGHT_CHANNELS),
                 taps = ceil_div(winograd->in, winograd->strip) *
                        ceil_div(winograd->out, WINOGRAD_HELD * CONV_CHANNELS);
    for (call->block = 0; call->block < winograd_blocks(winograd); call->block++) {
        thread_loop(plan->threads, call->groups * panels, run_panels, call);
        if (!winograd->once)
            thread_loop(plan->threads, call->groups * products, run_frequency, call);
    }
    call->block = 0; // once: the only block
    thread_loop(plan->threads, call->groups * taps, run_taps, call);
}

static void run_together(struct call *call)
{
    const struct winograd *winograd = call->plan->state;
    for (; call->first < winograd->grid.groups; call->first += winograd->at_once) {
        call->groups = size_min(winograd->at_once, winograd->grid.groups - call->first);
        run_groups(call);
    }
}

void winograd_backward_weight(const struct partita_plan *plan, void *gw, const void *x,
                              const void *gy, void *workspace)
{
    const struct winograd *winograd = plan->state;
    // What threads share lies where runs would have their sums: together there is one run.
    struct call call = {plan,
                        workspace,
                        (char *)workspace + plan->choice.shared,
                        {plan, gw, workspace, winograd->runs, winograd->run_bytes},
                        x,
                        gy,
                        0,
                        0,
                        0};
    if (winograd->together) {
        run_together(&call);
        return;
    }
    thread_loop(plan->threads,
                winograd->runs * ceil_div(winograd->in, winograd->chunk) * winograd->parts *
                    winograd->grid.groups,
                run_task, &call);
    run_sums_add(&call.sums);
}
