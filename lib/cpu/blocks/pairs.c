// SPDX-License-Identifier: MIT
// The usual way of cpu/blocks: all pairs of parts (parts.h), a run of output blocks after the
// other.
#include <string.h>

#include "blocks.h"
#include "geometry/samples.h"

// A filter's state: the parts of every cell, [out][in of group].
static struct parts cell_parts(const struct partita_plan *plan, const char *state, size_t cell)
{
    const struct blocks *blocks = plan->state;
    const size_t parts = blocks->layout.parts;
    return (struct parts){
        (char *)(uintptr_t)state + cell * parts_bytes(fft_lines(blocks->fft), parts), parts};
}

struct parts_kit pairs_kit(const struct partita_plan *plan)
{
    const struct blocks *blocks = plan->state;
    return parts_kit(blocks->fft, plan->kernels, blocks_shape(plan)->sample_bytes);
}

// As many before the first as there are parts.
struct segment_range pairs_inputs(const struct partita_plan *plan, size_t first, size_t end)
{
    const struct blocks_layout *layout = &((const struct blocks *)plan->state)->layout;
    struct segment_range range =
        segments_inside(layout->first, layout->part, blocks_shape(plan)->axis[0].size);
    const ptrdiff_t from = (ptrdiff_t)first - (ptrdiff_t)layout->parts;
    ptrdiff_t behind = range.first + (ptrdiff_t)range.count;
    if (range.first < from) range.first = from;
    if (behind > (ptrdiff_t)end) behind = (ptrdiff_t)end;
    range.count = behind > range.first ? (size_t)(behind - range.first) : 0;
    return range;
}

// Spectra of input blocks that a run holds at most.
static size_t most_inputs(const struct partita_plan *plan)
{
    const struct blocks_layout *layout = &((const struct blocks *)plan->state)->layout;
    const size_t all =
        segments_inside(layout->first, layout->part, blocks_shape(plan)->axis[0].size).count;
    return all < layout->run + layout->parts ? all : layout->run + layout->parts;
}

struct workspace {
    char *inputs, *outputs; // spectra of the run's blocks
    char *sums;             // [threads] of what a task of sums needs
    char *work;             // [threads] of what a transform needs
};

static struct parts_work cut_worker(const struct partita_plan *plan, struct arena *arena)
{
    const struct parts_kit kit = pairs_kit(plan);
    return parts_work_cut(&kit, arena);
}

static size_t worker_bytes(const struct partita_plan *plan)
{
    struct arena arena = {0};
    cut_worker(plan, &arena);
    return arena.used;
}

static struct workspace cut_workspace(const struct partita_plan *plan, char *base)
{
    const struct blocks *blocks = plan->state;
    const size_t tiles = fft_lines(blocks->fft), threads = (size_t)plan->threads;
    struct arena arena = {.base = base};
    struct workspace ret;
    ret.inputs = arena_take(
        &arena, size_mul(blocks_shape(plan)->group_in, parts_bytes(tiles, most_inputs(plan))));
    ret.outputs =
        arena_take(&arena, size_mul(fft_spectrum_bytes(blocks->fft), blocks->layout.run + 1));
    ret.sums = arena_take(&arena, size_mul(threads, parts_sum_bytes(blocks->layout.parts)));
    ret.work = arena_take(&arena, size_mul(threads, worker_bytes(plan)));
    return ret;
}

void pairs_sizes(const struct partita_plan *plan, struct blocks *blocks)
{
    struct blocks_layout *layout = &blocks->layout;
    const size_t tiles = fft_lines(blocks->fft);
    layout->shared =
        size_add(size_mul(blocks_shape(plan)->group_in, parts_bytes(tiles, most_inputs(plan))),
                 size_mul(fft_spectrum_bytes(blocks->fft), layout->run + 1));
    layout->worker = size_add(parts_sum_bytes(layout->parts), worker_bytes(plan));
}

void blocks_load_taps(const struct shape *shape, char *samples, char *narrow, const void *taps,
                      size_t first, size_t count, size_t n)
{
    const bool widen = shape->complex_signal && !shape->complex_taps;
    causal_part(shape, widen ? narrow : samples, taps, first, count);
    memset(samples + (widen ? 0 : count * shape->sample_bytes), 0,
           (n - (widen ? 0 : count)) * shape->sample_bytes);
    if (widen) samples_copy(samples, 2, narrow, 1, count, shape->tap_bytes);
}

static size_t filtering_bytes(const struct partita_plan *plan)
{
    const struct blocks *blocks = plan->state;
    return worker_bytes(plan) + mem_round(blocks->layout.part * blocks_shape(plan)->tap_bytes);
}

// One task: one part of one cell.
static void transform_cell_part(void *context, size_t task, int worker)
{
    const struct blocks_filtering *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const struct blocks_layout *layout = &((const struct blocks *)plan->state)->layout;
    const struct parts_kit kit = pairs_kit(plan);
    const size_t cell = task / layout->parts, i = task % layout->parts,
                 left = layout->taps - i * layout->part;
    struct arena arena = {.base = call->work + (size_t)worker * filtering_bytes(plan)};
    struct parts_work work = cut_worker(plan, &arena);
    char *narrow = arena_take(&arena, layout->part * shape->tap_bytes);
    const size_t from = shape_path(shape, cell / shape->group_in, cell % shape->group_in);
    blocks_load_taps(shape, work.samples, narrow,
                     call->taps + from * shape->axis[0].kernel * shape->tap_bytes,
                     layout->first_tap + i * layout->part,
                     left < layout->part ? left : layout->part, layout->part);
    const struct parts parts = cell_parts(plan, call->filter->state, cell);
    parts_forward(&kit, &parts, i, &work);
}

enum partita_status pairs_filter(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct blocks *blocks = plan->state;
    const size_t cells = blocks_shape(plan)->out_channels * blocks_shape(plan)->group_in;
    const size_t bytes = parts_bytes(fft_lines(blocks->fft), blocks->layout.parts);
    return blocks_filter(filter, taps, size_mul(cells, bytes), filtering_bytes(plan),
                         transform_cell_part);
}

// One run of output blocks of one group of one item of the batch.
struct run {
    const struct partita_plan *plan;
    struct parts_kit kit;
    struct workspace workspace;
    const char *x; // of the group's first channel
    char *y;       // of the output channel
    size_t first;
    struct segment_range inputs;
    size_t kept; // of these, from the run before
    struct pairs pairs;
};

static struct parts input_parts(const struct run *run, size_t channel)
{
    const size_t bytes = parts_bytes(run->kit.tiles, most_inputs(run->plan));
    return (struct parts){run->workspace.inputs + channel * bytes, most_inputs(run->plan)};
}

// One task: one input block of one channel.
static void transform_input(void *context, size_t task, int worker)
{
    const struct run *run = context;
    const struct shape *shape = blocks_shape(run->plan);
    const struct blocks_layout *layout = &((const struct blocks *)run->plan->state)->layout;
    const size_t fresh = run->inputs.count - run->kept, size = shape->axis[0].size;
    const size_t channel = task / fresh, i = run->kept + task % fresh;
    struct arena arena = {.base = run->workspace.work + (size_t)worker * worker_bytes(run->plan)};
    struct parts_work work = cut_worker(run->plan, &arena);
    const ptrdiff_t at =
        layout->first + (run->inputs.first + (ptrdiff_t)i) * (ptrdiff_t)layout->part;
    samples_window(work.samples, run->x + channel * size * shape->sample_bytes, size, at, 1,
                   layout->part, shape->sample_bytes);
    const struct parts parts = input_parts(run, channel);
    parts_forward(&run->kit, &parts, i, &work);
}

// Goes on to the input blocks of the next run, of `count` output blocks; those that the last one
// had too are kept.
static void next_inputs(struct run *run, size_t count)
{
    const struct segment_range next = pairs_inputs(run->plan, run->first, run->first + count);
    const struct segment_range last = run->inputs;
    const ptrdiff_t end = last.first + (ptrdiff_t)last.count;
    run->kept = end > next.first ? (size_t)(end - next.first) : 0;
    run->inputs = next;
    for (size_t c = 0; run->kept && c < blocks_shape(run->plan)->group_in; c++) {
        const struct parts parts = input_parts(run, c);
        parts_shift(&run->kit, &parts, (size_t)(next.first - last.first), run->kept,
                    run->plan->threads);
    }
    thread_loop(run->plan->threads, blocks_shape(run->plan)->group_in * (next.count - run->kept),
                transform_input, run);
    // Between the signal's ends no sum reaches beyond these blocks.
    const bool inside =
        run->first > 0 && next.first + (ptrdiff_t)next.count >= (ptrdiff_t)(run->first + count);
    for (size_t c = 0; !inside && c < blocks_shape(run->plan)->group_in; c++) {
        const struct parts parts = input_parts(run, c);
        parts_margins(&run->kit, &parts, next.count, run->plan->threads);
    }
}

// One task: one output block.
static void finish_output(void *context, size_t task, int worker)
{
    const struct run *run = context;
    const struct shape *shape = blocks_shape(run->plan);
    const size_t hop = run->kit.block, block = run->first + task;
    struct arena arena = {.base = run->workspace.work + (size_t)worker * worker_bytes(run->plan)};
    struct parts_work work = cut_worker(run->plan, &arena);
    const struct segment_outputs out =
        segment_outputs(&shape->axis[0], block * hop, (block + 1) * hop);
    if (!out.count) return;
    parts_inverse(&run->kit, parts_out(&run->pairs, task), &work);
    samples_copy(run->y + out.first * shape->sample_bytes, 1,
                 work.samples + out.skip * shape->sample_bytes, shape->axis[0].stride, out.count,
                 shape->sample_bytes);
}

static void run_outputs(struct run *run, const struct partita_filter *filter, size_t item,
                        size_t group, size_t count, void *y)
{
    const struct partita_plan *plan = run->plan;
    const struct shape *shape = blocks_shape(plan);
    for (size_t k = group * shape->group_out; k < (group + 1) * shape->group_out; k++) {
        run->y =
            (char *)y + (item * shape->out_channels + k) * shape->axis[0].out * shape->sample_bytes;
        for (size_t c = 0; c < shape->group_in; c++) {
            run->pairs =
                (struct pairs){.kit = &run->kit,
                               .left = cell_parts(plan, filter->state, k * shape->group_in + c),
                               .right = input_parts(run, c),
                               .right_first = run->inputs.first,
                               .right_count = run->inputs.count,
                               .first = (ptrdiff_t)run->first,
                               .count = count,
                               .out = run->workspace.outputs,
                               .work = run->workspace.sums,
                               .add = c > 0,
                               .gather = c + 1 == shape->group_in};
            parts_sum(&run->pairs, plan->threads);
        }
        thread_loop(plan->threads, count, finish_output, run);
    }
}

void pairs_forward(const struct partita_filter *filter, void *y, const void *x, void *workspace)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const struct blocks_layout *layout = &((const struct blocks *)plan->state)->layout;
    struct run run = {
        .plan = plan, .kit = pairs_kit(plan), .workspace = cut_workspace(plan, workspace)};
    for (size_t at = 0; at < shape->batch * shape->groups; at++) {
        const size_t item = at / shape->groups, group = at % shape->groups;
        const size_t channel = item * shape->in_channels + group * shape->group_in;
        run.x = (const char *)x + channel * shape->axis[0].size * shape->sample_bytes;
        for (run.first = 0; run.first < layout->blocks; run.first += layout->run) {
            const size_t left = layout->blocks - run.first,
                         count = left < layout->run ? left : layout->run;
            if (run.first == 0) run.inputs = (struct segment_range){PTRDIFF_MIN, 0};
            next_inputs(&run, count);
            run_outputs(&run, filter, item, group, count, y);
        }
    }
}
