// SPDX-License-Identifier: MIT
// Backward weight of cpu/winograd: tiles of x and of gy are transformed, for each frequency their products are summed
// over all tiles (kernels->conv on panels that were turned over, tiles being the terms), and the sums are transformed
// to taps: F(r x r, m x m), gy being the taps and the taps the outputs (Lavin & Gray, 4.1). A task is some channels of
// x, some of gy and a run of blocks.
#include <string.h>

#include "../sizes.h"
#include "../thread.h"
#include "run_sums.h"
#include "samples.h"
#include "winograd.h"

struct call {
    const struct partita_plan *plan;
    char *workers;
    struct run_sums sums;
    const char *x, *gy;
};

// One task: channels of x and of gy of a group, counted with phases, against one run of blocks.
struct task {
    const struct call *call;
    const struct winograd *winograd;
    size_t group, in, n_in, out, n_out, run;
    struct winograd_scratch at;
};

static size_t chunks(const struct winograd *winograd)
{
    return (winograd->in + winograd->chunk - 1) / winograd->chunk;
}

// The share of a block of so many tiles in all sums: terms are tiles, positions input channels.
static void multiply(const struct task *task, size_t tiles)
{
    const struct winograd *winograd = task->winograd;
    const struct kernels *kernels = task->call->plan->kernels;
    const size_t bytes = winograd->grid.scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes, pitch = winograd->chunk;
    const size_t n = winograd_positions(winograd, task->n_in);
    for (size_t f = 0; f < winograd->frequencies; f++) {
        for (size_t c = 0; c < task->n_in; c += lanes)
            kernels->collect(task->at.in_panel + c * bytes, pitch,
                             task->at.in + (f * winograd->in_plane + c * winograd->positions) * bytes,
                             winograd->positions, lanes, tiles);
        for (size_t k = 0; k < task->n_out; k += CONV_CHANNELS) {
            char *w = task->at.out_panel + k * winograd->positions * bytes;
            kernels->collect(w, CONV_CHANNELS,
                             task->at.out + (f * winograd->out_plane + k * winograd->positions) * bytes,
                             winograd->positions, CONV_CHANNELS, tiles);
            kernels->conv(task->at.sums + (f * winograd->part + k) * pitch * bytes, pitch, task->at.in_panel,
                          winograd->offset, tiles, w, CONV_CHANNELS, n);
        }
    }
}

static void add_block(const struct task *task, size_t block)
{
    const struct winograd *winograd = task->winograd;
    const struct call *call = task->call;
    const struct winograd_place place = winograd_place(winograd, block);
    struct winograd_inputs inputs = {.winograd = winograd,
                                     .kernels = call->plan->kernels,
                                     .group = task->group,
                                     .place = place,
                                     .from = call->x,
                                     .to = task->at.in,
                                     .at = &task->at};
    winograd_transform_inputs(&inputs, task->in, task->n_in);
    inputs.outputs = true;
    inputs.from = call->gy;
    inputs.to = task->at.out;
    winograd_transform_inputs(&inputs, task->out, task->n_out);
    multiply(task, place.block.maps * place.block.rows * place.block.cols);
}

// Taps of output channel k of the task from its sums; tap (i, j) of input channel c is at (i * columns + j) * n + c.
static void store_taps(const struct task *task, size_t k, const char *taps, size_t n)
{
    const struct winograd *winograd = task->winograd;
    const struct tile_grid *grid = &winograd->grid;
    const size_t bytes = grid->scalar_bytes, taps_of_cell = shape_taps(&task->call->plan->shape);
    const size_t rows = winograd_axis(winograd, 0)->taps, columns = winograd_axis(winograd, 1)->taps;
    char *gw = run_sums_of(&task->call->sums, task->run);
    for (size_t c = 0, n_c; c < task->n_in; c += n_c) { // of one phase
        const size_t in = task->in + c, cell = tile_grid_cell(grid, task->group, task->out + k, in % grid->in);
        size_t phase[3];
        n_c = lesser(task->n_in - c, grid->in - in % grid->in);
        tile_grid_phase(grid, in / grid->in, phase);
        for (size_t at = 0; at < rows * columns; at++) {
            const size_t tap = tile_grid_tap(grid, phase, (const size_t[]){0, at / columns, at % columns});
            if (tap != SIZE_MAX)
                samples_copy(gw + (cell * taps_of_cell + tap) * bytes, taps_of_cell, taps + (at * n + c) * bytes, 1,
                             n_c, bytes);
        }
    }
}

static void run_task(void *context, size_t index, int worker)
{
    const struct call *call = context;
    const struct winograd *winograd = call->plan->state;
    const size_t bytes = winograd->grid.scalar_bytes, n_chunks = chunks(winograd);
    struct task task = {.call = call, .winograd = winograd};
    task.in = index % n_chunks * winograd->chunk;
    task.out = index / n_chunks % winograd->parts * winograd->part;
    task.group = index / n_chunks / winograd->parts % winograd->grid.groups;
    task.run = index / n_chunks / winograd->parts / winograd->grid.groups;
    task.n_in = lesser(winograd->chunk, winograd->in - task.in);
    task.n_out = lesser(winograd->part, winograd->out - task.out);
    task.at = winograd_scratch(winograd, call->workers + (size_t)worker * winograd->worker);
    const size_t plane = winograd->part * winograd->chunk;
    const size_t blocks = winograd->blocks[0] * winograd->blocks[1] * winograd->blocks[2];
    memset(task.at.sums, 0, winograd->frequencies * plane * bytes);
    for (size_t block = task.run * blocks / winograd->runs; block < (task.run + 1) * blocks / winograd->runs; block++)
        add_block(&task, block);
    struct winograd_both both = winograd_of_tap_sums(winograd);
    both.n = both.y_plane = winograd_positions(winograd, task.n_in);
    both.x_column = plane;
    for (size_t i = 0; i < both.from[0]; i++) both.x_row[i] = i * both.from[1] * plane;
    char *between = task.at.in + both.to[0] * both.to[1] * both.n * bytes; // the tiles are done with
    for (size_t k = 0; k < task.n_out; k++) {
        winograd_transform(call->plan->kernels->winograd_output, &both, task.at.in,
                           task.at.sums + k * winograd->chunk * bytes, between);
        store_taps(&task, k, task.at.in, both.n);
    }
}

void winograd_backward_weight(const struct partita_plan *plan, void *gw, const void *x, const void *gy, void *workspace)
{
    const struct winograd *winograd = plan->state;
    struct call call = {plan,
                        (char *)workspace + plan->choice.shared,
                        {plan, gw, workspace, winograd->runs, winograd->run_bytes},
                        x,
                        gy};
    thread_loop(plan->threads, winograd->runs * chunks(winograd) * winograd->parts * winograd->grid.groups, run_task,
                &call);
    run_sums_add(&call.sums);
}
