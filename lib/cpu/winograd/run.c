// SPDX-License-Identifier: MIT
// A call of cpu/winograd, in all directions alike (Lavin & Gray, algorithm 1 and 4.1): tiles of a
// batch are transformed channel by channel, matrices of each frequency are multiplied
// (product/product.h), and sums are transformed back as they are stored. In forward and backward
// data the factors are transformed taps, sums of output channels have input channels as terms, and
// become outputs. In backward weight they are tiles of gy, sums have tiles as terms, and become
// taps: F(r x r, m x m). There both operands are packed with channels side by side, a vector of
// channels at a time, while their tiles are in the cache. Rounds and splits are tasks, by shape
// alone.
#include <string.h>

#include "layer/rounds.h"
#include "product/product.h"
#include "winograd.h"

static struct winograd_index tiles_of_batch(const struct winograd *p, size_t batch)
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

// The batch of a step.
static size_t step_batch(const struct winograd *p, size_t round, size_t step)
{
    const size_t first = round / winograd_batch_rounds(p);
    return p->weight ? first * p->steps + step : first;
}

// A step of a round, with all its channels.
static struct winograd_task step_task(const struct winograd_call *call, size_t round, size_t step,
                                      int worker)
{
    const struct winograd *p = call->plan->state;
    const size_t batch = step_batch(p, round, step);
    size_t at[3]; // group, chunk of input channels in backward weight, split of output channels
    size_unravel(round, p->rounds, at);
    struct arena memory = {.base = call->workers + (size_t)worker * p->worker};
    struct arena common = {.base = call->shared};
    struct winograd_task task = {.call = call,
                                 .p = p,
                                 .kernels = call->plan->kernels,
                                 .group = at[0],
                                 .in = (p->weight ? at[1] : step) * p->chunk,
                                 .out = at[2] * p->oc_split,
                                 .first = step == 0,
                                 .last = step + 1 == p->steps,
                                 .index = tiles_of_batch(p, batch),
                                 .scratch = winograd_scratch(p, &memory, &common)};
    if (p->weight) {
        task.split = round / winograd_batch_rounds(p);
        task.last |= batch + 1 == winograd_batches(p);
    }
    task.n_in = size_min(p->chunk, p->in - task.in);
    task.n_out = size_min(p->oc_split, p->out - task.out);
    return task;
}

static size_t count_tasks(void *context, size_t round, size_t step, enum round_stage stage)
{
    const struct winograd_call *call = context;
    const struct winograd *p = call->plan->state;
    if (step_batch(p, round, step) >= winograd_batches(p)) return 0; // the last split's
    const struct winograd_task task = step_task(call, round, step, 0);
    const size_t lanes = winograd_lanes(p);
    if (stage == ROUND_LOAD)
        return ceil_div(task.n_in, lanes) + (p->weight ? ceil_div(task.n_out, lanes) : 0);
    return ceil_div(task.n_in, p->strip) * ceil_div(task.n_out, p->oc_step);
}

// An operand of backward weight, from channel c of the task on: [block][frequency][tile][channel of
// the block]. Blocks of x are strips, those of gy as high as the rectangles of kernels->conv.
static char *packed_operand(const struct winograd_task *task, bool outputs, size_t c, size_t f)
{
    const struct winograd *p = task->p;
    const size_t block = outputs ? CONV_CHANNELS : p->strip;
    const size_t at = (c / block * p->frequencies + f) * p->positions * block + c % block;
    assert(at < p->frequencies * (outputs ? p->out_plane : p->in_plane));
    return (outputs ? task->scratch.out : task->scratch.in) + at * p->grid.scalar_bytes;
}

// A vector of input channels or, in backward weight, of gy.
static void run_load(void *context, size_t round, size_t step, size_t index, int worker)
{
    const struct winograd_task task = step_task(context, round, step, worker);
    const struct winograd *p = task.p;
    const size_t lanes = winograd_lanes(p), vectors = ceil_div(task.n_in, lanes);
    const bool outputs = index >= vectors;
    const size_t c = (outputs ? index - vectors : index) * lanes;
    const size_t n = size_min(lanes, (outputs ? task.n_out : task.n_in) - c);
    const size_t bytes = p->grid.scalar_bytes, plane = p->weight ? p->tiles_plane : p->in_plane;
    char *to = p->weight ? task.scratch.tiles : task.scratch.in + c * p->positions * bytes;
    (p->map_lanes ? winograd_load_maps : winograd_load_planes)(
        &task, outputs, (outputs ? task.out : task.in) + c, n, to, plane);
    const size_t block = outputs ? CONV_CHANNELS : p->strip, count = size_min(block, lanes);
    for (size_t at = 0; at < p->frequencies * lanes && p->weight; at += count) {
        const size_t f = at / lanes, k = at % lanes;
        task.kernels->transpose(packed_operand(&task, outputs, c + k, f), block,
                                to + (f * plane + k * p->positions) * bytes, p->positions, count,
                                winograd_vectors(p, task.index.tiles));
    }
}

// The taps of a frequency from scalar `at` of its plane on, see winograd_taps_at.
static const char *forward_taps(const struct winograd_task *task, size_t f, size_t at)
{
    const struct winograd *p = task->p;
    const size_t plane = (task->group * p->frequencies + f) * p->filter_plane;
    return (const char *)task->call->filter->state + (plane + at) * p->grid.scalar_bytes;
}

// Adds the products of a step's input channels, segment by segment, with tiles along the vectors.
static void multiply_tiles(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, pitch = p->positions;
    for (size_t f = 0; f < p->frequencies; f++)
        for (size_t c = 0; c < task->n_in; c += p->segment) {
            const size_t n = size_min(p->segment, task->n_in - c);
            const size_t taps = winograd_taps_at(p, task->in + c, task->out, 0);
            const char *plane = task->scratch.in + f * p->in_plane * bytes;
            product_run(
                &(struct product){.plan = task->call->plan,
                                  .rows = task->n_out,
                                  .columns = winograd_vectors(p, task->index.tiles),
                                  .terms = n,
                                  .a = {.at = forward_taps(task, f, taps),
                                        .block = CONV_CHANNELS,
                                        .pitch = CONV_CHANNELS * n},
                                  .b = {.at = plane + c * pitch * bytes, .term = pitch},
                                  .c = task->scratch.sums + f * p->sums_plane * bytes,
                                  .c_step = pitch,
                                  .add = c > 0 || !task->first,
                                  .segment = product_segment(task->call->plan, WINOGRAD_TERMS),
                                  .next_b = c + n < task->n_in ? plane + (c + n) * pitch * bytes
                                                               : plane + p->in_plane * bytes});
        }
}

// The same with output channels along the vectors: sums [tile][output channel], then transposed.
static void multiply_transposed(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes;
    const size_t pitch = winograd_rows_pitch(p), tiles = task->index.tiles;
    char *rows = task->scratch.rows_sums;
    // The lanes that are no tiles.
    memset(rows + tiles * pitch * bytes, 0, (winograd_vectors(p, tiles) - tiles) * pitch * bytes);
    for (size_t f = 0; f < p->frequencies; f++) {
        char *sums = task->scratch.sums + f * p->sums_plane * bytes;
        product_run(&(struct product){.plan = task->call->plan,
                                      .rows = tiles,
                                      .columns = size_round_up(task->n_out, p->oc_block),
                                      .terms = p->in,
                                      .a = {.at = task->scratch.in + f * p->in_plane * bytes,
                                            .step = 1,
                                            .term = p->positions},
                                      .b = {.at = forward_taps(task, f, task->out * p->in),
                                            .block = p->oc_block,
                                            .pitch = p->oc_block * p->in},
                                      .c = rows,
                                      .c_pitch = p->oc_block,
                                      .c_step = pitch,
                                      .segment = product_segment(task->call->plan, WINOGRAD_TERMS),
                                      .next_b = forward_taps(task, f + 1, task->out * p->in)});
        task->kernels->transpose(sums, p->positions, rows, pitch, winograd_vectors(p, tiles),
                                 task->n_out);
    }
}

// Backward weight: rows are channels of gy from k of the round on, terms are tiles, and columns the
// input channels of a strip, which begins with channel c of the round.
static void multiply_strip(const struct winograd_task *task, size_t c, size_t k)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, width = winograd_vectors(p, task->n_in);
    for (size_t f = 0; f < p->frequencies; f++)
        product_run(&(struct product){
            .plan = task->call->plan,
            .rows = task->n_out,
            .columns = width,
            .terms = task->index.tiles,
            .a = {.at = packed_operand(task, true, k, f),
                  .block = CONV_CHANNELS,
                  .pitch = p->frequencies * p->positions * CONV_CHANNELS,
                  .step = 1,
                  .term = CONV_CHANNELS},
            .b = {.at = packed_operand(task, false, c, f), .block = p->strip, .term = p->strip},
            .c = task->scratch.sums + f * p->sums_plane * bytes,
            .c_step = width,
            .add = !task->first,
            .segment = WINOGRAD.single_tiles,
            .next_b = packed_operand(task, false, c, f) + p->positions * p->strip * bytes});
}

// A product of a step and, in the last one, its results.
static void run_multiply(void *context, size_t round, size_t step, size_t index, int worker)
{
    struct winograd_task task = step_task(context, round, step, worker);
    const struct winograd *p = task.p;
    const size_t outs = ceil_div(task.n_out, p->oc_step);
    const size_t c = index / outs * p->strip, k = index % outs * p->oc_step;
    assert(c < task.n_in && k < task.n_out);
    if (p->steps > 1)
        task.scratch.sums += index * p->frequencies * p->sums_plane * p->grid.scalar_bytes;
    task.in += c;
    task.n_in = size_min(p->strip, task.n_in - c);
    task.out += k;
    task.n_out = size_min(p->oc_step, task.n_out - k);
    if (p->weight) multiply_strip(&task, c, k);
    else if (p->transposed) multiply_transposed(&task);
    else multiply_tiles(&task);
    if (!task.last) return;
    if (p->weight) winograd_store_taps(&task);
    else if (p->map_lanes) winograd_store_maps(&task);
    else winograd_store_planes(&task);
}

enum partita_status winograd_run(const struct partita_plan *plan,
                                 const struct partita_filter *filter,
                                 const struct operands *operands, void *workspace)
{
    const struct winograd *p = plan->state;
    // Memory that threads share lies where splits would have their sums: then there is one split.
    struct winograd_call call = {
        .plan = plan,
        .filter = filter,
        .x = operands->from[0],
        .y = p->weight ? (char *)operands->from[1] : operands->to,
        .peak = plan->choice.peaks ? operands->peak : NULL,
        .shared = workspace,
        .workers = (char *)workspace + plan->choice.shared,
        .split_k = {plan, operands->to, workspace, p->k_splits, split_k_bytes(&plan->shape)}};
    const struct rounds rounds = {.call = &call,
                                  .tasks = count_tasks,
                                  .run = {run_load, run_multiply},
                                  .rounds = winograd_batch_rounds(p) *
                                            (p->weight ? p->k_splits : winograd_batches(p)),
                                  .steps = p->steps,
                                  .shared = p->shared,
                                  .threads = plan->threads};
    assert(p->common <= plan->choice.shared);
    if (!p->weight && !p->grid.covers)
        memset(call.y, 0, shape_samples(&plan->shape, false) * plan->shape.sample_bytes);
    rounds_run(&rounds);
    if (p->weight) split_k_reduce(&call.split_k);
    return PARTITA_OK;
}
