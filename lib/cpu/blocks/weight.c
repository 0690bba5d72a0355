// SPDX-License-Identifier: MIT
// Backward weight of cpu/blocks: gw is the correlation of x with gy (shape_gradient), added up over
// the batch. Parts of both are transformed item by item; the sums of all pairs stay in the spectrum
// until the last item is done, so that every part of a cell's gradient takes one inverse transform
// however large the batch is.
#include "blocks.h"
#include "geometry/samples.h"

struct weight {
    const struct partita_plan *plan;
    struct parts_kit kit;
    const char *x, *gy; // of the item's and group's first channels
    char *gw;           // of the group's first cell
    struct segment_range inputs;
    char *x_parts, *gy_parts; // spectra of the group's channels
    char *sums;               // of its cells [out][in]
    char *pairs_work;         // [threads] of what a task of sums needs
    char *work;               // [threads] of what a transform needs
    struct pairs pairs;
};

static const struct blocks *blocks_of(const struct partita_plan *plan)
{
    return plan->state;
}

static size_t work_bytes(const struct parts_kit *kit)
{
    struct arena arena = {0};
    parts_work_cut(kit, &arena);
    return arena.used;
}

static struct parts_work work_of(const struct weight *call, int worker)
{
    struct arena arena = {.base = call->work + (size_t)worker * work_bytes(&call->kit)};
    return parts_work_cut(&call->kit, &arena);
}

// Spectra `count` a channel.
static struct parts channel_parts(const struct weight *call, char *first, size_t channel,
                                  size_t count)
{
    return (struct parts){first + channel * parts_bytes(call->kit.tiles, count), count};
}

// The sums of one cell.
static size_t sums_bytes(const struct partita_plan *plan)
{
    const struct blocks *blocks = blocks_of(plan);
    return size_mul(fft_spectrum_bytes(blocks->fft), blocks->layout.blocks + 1);
}

// Cuts what all threads share; returns where the rest begins.
static size_t cut_shared(const struct partita_plan *plan, char *base, struct weight *ret)
{
    const struct shape *shape = blocks_shape(plan);
    const struct blocks_layout *layout = &blocks_of(plan)->layout;
    struct arena arena = {.base = base};
    ret->kit = pairs_kit(plan);
    ret->inputs = pairs_inputs(plan, 0, layout->blocks);
    const size_t tiles = ret->kit.tiles;
    ret->x_parts =
        arena_take(&arena, size_mul(shape->group_in, parts_bytes(tiles, ret->inputs.count)));
    ret->gy_parts =
        arena_take(&arena, size_mul(shape->group_out, parts_bytes(tiles, layout->parts)));
    ret->sums = arena_take(&arena, size_mul(shape->group_in * shape->group_out, sums_bytes(plan)));
    return arena.used;
}

void weight_sizes(const struct partita_plan *plan, struct blocks *blocks)
{
    struct weight cut;
    blocks->layout.shared = cut_shared(plan, NULL, &cut);
    blocks->layout.worker = size_add(parts_sum_bytes(blocks->layout.parts), work_bytes(&cut.kit));
}

// One task: one part of one channel of x.
static void transform_x(void *context, size_t task, int worker)
{
    const struct weight *call = context;
    const struct shape *shape = blocks_shape(call->plan);
    const struct blocks_layout *layout = &blocks_of(call->plan)->layout;
    const size_t channel = task / call->inputs.count, i = task % call->inputs.count,
                 size = shape->axis[0].size;
    struct parts_work work = work_of(call, worker);
    const ptrdiff_t at =
        layout->first + (call->inputs.first + (ptrdiff_t)i) * (ptrdiff_t)layout->part;
    samples_window(work.samples, call->x + channel * size * shape->sample_bytes, size, at, 1,
                   layout->part, shape->sample_bytes);
    const struct parts parts = channel_parts(call, call->x_parts, channel, call->inputs.count);
    parts_forward(&call->kit, &parts, i, &work);
}

// One task: one part of one channel of gy.
static void transform_gy(void *context, size_t task, int worker)
{
    const struct weight *call = context;
    const struct shape *shape = blocks_shape(call->plan);
    const struct blocks_layout *layout = &blocks_of(call->plan)->layout;
    const size_t channel = task / layout->parts, i = task % layout->parts,
                 left = layout->taps - i * layout->part;
    struct parts_work work = work_of(call, worker);
    blocks_load_taps(shape, work.samples, NULL,
                     call->gy + channel * shape->axis[0].kernel * shape->tap_bytes,
                     layout->first_tap + i * layout->part,
                     left < layout->part ? left : layout->part, layout->part);
    const struct parts parts = channel_parts(call, call->gy_parts, channel, layout->parts);
    parts_forward(&call->kit, &parts, i, &work);
}

// Item by item, all cells of a group.
static void sum_item(struct weight *call, bool first, bool last)
{
    const struct shape *shape = blocks_shape(call->plan);
    const struct blocks_layout *layout = &blocks_of(call->plan)->layout;
    const int threads = call->plan->threads;
    thread_loop(threads, shape->group_in * call->inputs.count, transform_x, call);
    thread_loop(threads, shape->group_out * layout->parts, transform_gy, call);
    for (size_t c = 0; c < shape->group_in; c++) {
        const struct parts parts = channel_parts(call, call->x_parts, c, call->inputs.count);
        parts_margins(&call->kit, &parts, call->inputs.count, threads);
    }
    for (size_t cell = 0; cell < shape->group_in * shape->group_out; cell++) {
        call->pairs = (struct pairs){
            .kit = &call->kit,
            .left = channel_parts(call, call->gy_parts, cell / shape->group_in, layout->parts),
            .right = channel_parts(call, call->x_parts, cell % shape->group_in, call->inputs.count),
            .right_first = call->inputs.first,
            .right_count = call->inputs.count,
            .count = layout->blocks,
            .out = call->sums + cell * sums_bytes(call->plan),
            .work = call->pairs_work,
            .add = !first,
            .gather = last,
        };
        parts_sum(&call->pairs, threads);
    }
}

// One task: one part of one cell's gradient, in the order of the caller's taps.
static void finish_part(void *context, size_t task, int worker)
{
    const struct weight *call = context;
    const struct axis *axis = &blocks_shape(call->plan)->axis[0];
    const struct blocks_layout *layout = &blocks_of(call->plan)->layout;
    const size_t cell = task / layout->blocks, block = task % layout->blocks,
                 bytes = call->kit.sample_bytes;
    const struct segment_outputs out =
        segment_outputs(axis, block * layout->hop, (block + 1) * layout->hop);
    struct pairs sums = call->pairs;
    struct parts_work work = work_of(call, worker);
    if (!out.count) return;
    sums.out = call->sums + cell * sums_bytes(call->plan);
    parts_inverse(&call->kit, parts_out(&sums, block), &work);
    char *gw = call->gw + cell * axis->out * bytes;
    const char *from = work.samples + out.skip * bytes;
    if (call->plan->shape.flip)
        samples_reverse(gw + (axis->out - out.first - out.count) * bytes, 1, from, axis->stride,
                        out.count, bytes);
    else samples_copy(gw + out.first * bytes, 1, from, axis->stride, out.count, bytes);
}

void weight_run(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                void *workspace)
{
    const struct shape *shape = blocks_shape(plan);
    const struct axis *axis = &shape->axis[0];
    const size_t cells = shape->group_in * shape->group_out,
                 blocks = blocks_of(plan)->layout.blocks;
    struct weight call = {.plan = plan};
    call.pairs_work = (char *)workspace + cut_shared(plan, workspace, &call);
    call.work =
        call.pairs_work + (size_t)plan->threads * parts_sum_bytes(blocks_of(plan)->layout.parts);
    for (size_t group = 0; group < shape->groups; group++) {
        call.gw = (char *)gw + group * cells * axis->out * shape->sample_bytes;
        for (size_t item = 0; item < shape->batch; item++) {
            const size_t in = item * shape->in_channels + group * shape->group_in;
            const size_t out = item * shape->out_channels + group * shape->group_out;
            call.x = (const char *)x + in * axis->size * shape->sample_bytes;
            call.gy = (const char *)gy + out * axis->kernel * shape->sample_bytes;
            sum_item(&call, item == 0, item + 1 == shape->batch);
        }
        thread_loop(plan->threads, cells * blocks, finish_part, &call);
    }
}
