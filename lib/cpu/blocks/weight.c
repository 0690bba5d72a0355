// SPDX-License-Identifier: MIT
// Backward weight of cpu/blocks: gw is the correlation of x with gy (shape_gradient), added up over
// the batch. Segments of both are transformed item by item; the sums of all pairs stay in the
// spectrum until the last item is done, so that every block of a path's gradient takes one inverse
// transform however large the batch is.
#include "base/sizes.h"
#include "blocks.h"
#include "geometry/samples.h"

struct weight {
    const struct partita_plan *plan;
    struct segment_transform transform;
    const char *x, *gy; // of the item's and group's first channels
    char *gw;           // of the group's first path
    struct segment_range inputs;
    char *x_spectra, *gy_spectra; // of the group's channels
    char *sums;                   // of its paths [out][in]
    char *workspace;
    struct pair_sums pairs;
};

// The sums of one path.
static size_t sums_bytes(const struct partita_plan *plan)
{
    return size_mul(fft_spectrum_bytes(blocks_of(plan)->fft), blocks_layout(plan)->blocks + 1);
}

// What all threads share.
static size_t weight_layout_shared(const struct partita_plan *plan, char *base, struct weight *ret)
{
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    const size_t inputs = shape->group_in, outputs = shape->group_out;
    struct arena arena = {.base = base};
    ret->transform = blocks_transform(plan);
    ret->inputs = pairs_inputs(plan, 0, layout->blocks);
    const size_t lines = ret->transform.lines;
    const size_t x = segment_spectra_bytes(lines, ret->inputs.count);
    const size_t gy = segment_spectra_bytes(lines, layout->segments);
    ret->x_spectra = arena_take(&arena, size_mul(inputs, x));
    ret->gy_spectra = arena_take(&arena, size_mul(outputs, gy));
    ret->sums = arena_take(&arena, size_mul(inputs * outputs, sums_bytes(plan)));
    return arena.used;
}

void weight_sizes(const struct partita_plan *plan, struct block_layout *layout)
{
    struct weight call;
    layout->shared = weight_layout_shared(plan, NULL, &call);
    layout->worker =
        size_add(pair_sums_bytes(layout->segments), segment_buffers_bytes(&call.transform));
}

static struct segment_buffers weight_worker_buffers(const struct weight *call, int worker)
{
    struct arena arena = blocks_worker(call->plan, call->workspace, worker);
    return segment_buffers_layout(&call->transform, &arena);
}

// Spectra `count` a channel.
static struct segment_spectra channel_spectra(const struct weight *call, char *first,
                                              size_t channel, size_t count)
{
    const size_t bytes = segment_spectra_bytes(call->transform.lines, count);
    return (struct segment_spectra){first + channel * bytes, count};
}

// One task: one segment of one channel of x.
static void transform_x(void *context, size_t task, int worker)
{
    const struct weight *call = context;
    const struct shape *shape = blocks_shape(call->plan);
    const size_t count = call->inputs.count, channel = task / count, i = task % count;
    struct segment_buffers buffers = weight_worker_buffers(call, worker);
    pairs_load_input(call->plan, call->x + channel * shape->axis[0].size * shape->sample_bytes,
                     call->inputs.first + (ptrdiff_t)i, buffers.samples);
    const struct segment_spectra spectra = channel_spectra(call, call->x_spectra, channel, count);
    segment_forward(&call->transform, &spectra, i, &buffers);
}

// One task: one segment of one channel of gy.
static void transform_gy(void *context, size_t task, int worker)
{
    const struct weight *call = context;
    const struct shape *shape = blocks_shape(call->plan);
    const struct block_layout *layout = blocks_layout(call->plan);
    const size_t count = layout->segments, channel = task / count, i = task % count;
    const size_t first = i * layout->segment;
    const struct blocks_taps taps = {
        .taps = call->gy + channel * shape->axis[0].kernel * shape->tap_bytes,
        .first = layout->trimmed.first_tap + first,
        .count = size_min(layout->trimmed.taps - first, layout->segment),
        .n = layout->segment,
    };
    struct segment_buffers buffers = weight_worker_buffers(call, worker);
    blocks_load_taps(shape, &taps, buffers.samples, NULL);
    const struct segment_spectra spectra = channel_spectra(call, call->gy_spectra, channel, count);
    segment_forward(&call->transform, &spectra, i, &buffers);
}

// Item by item, all paths of a group.
static void sum_item(struct weight *call, bool first, bool last)
{
    const struct shape *shape = blocks_shape(call->plan);
    const struct block_layout *layout = blocks_layout(call->plan);
    const size_t inputs = call->inputs.count, segments = layout->segments;
    const int threads = call->plan->threads;
    struct arena arena = blocks_worker(call->plan, call->workspace, 0);
    segment_buffers_layout(&call->transform, &arena);
    thread_loop(threads, shape->group_in * inputs, transform_x, call);
    thread_loop(threads, shape->group_out * segments, transform_gy, call);
    for (size_t c = 0; c < shape->group_in; c++) {
        const struct segment_spectra x = channel_spectra(call, call->x_spectra, c, inputs);
        segment_spectra_margins(&call->transform, &x, inputs, threads);
    }
    for (size_t path = 0; path < shape->group_in * shape->group_out; path++) {
        const size_t in = path % shape->group_in, out = path / shape->group_in;
        call->pairs = (struct pair_sums){
            .transform = &call->transform,
            .left = channel_spectra(call, call->gy_spectra, out, segments),
            .right = channel_spectra(call, call->x_spectra, in, inputs),
            .right_first = call->inputs.first,
            .right_count = inputs,
            .count = layout->blocks,
            .out = call->sums + path * sums_bytes(call->plan),
            .work = arena.base + arena.used,
            .work_stride = call->plan->choice.worker,
            .add = !first,
            .gather = last,
        };
        pair_sums_run(&call->pairs, threads);
    }
}

// One task: one block of one path's gradient, in the order of the caller's taps.
static void weight_finish_block(void *context, size_t task, int worker)
{
    const struct weight *call = context;
    const struct axis *axis = &blocks_shape(call->plan)->axis[0];
    const struct block_layout *layout = blocks_layout(call->plan);
    const size_t path = task / layout->blocks, block = task % layout->blocks;
    const size_t bytes = call->transform.sample_bytes, begin = block * layout->hop;
    const struct segment_outputs out = segment_outputs(axis, begin, begin + layout->hop);
    struct pair_sums sums = call->pairs;
    struct segment_buffers buffers = weight_worker_buffers(call, worker);
    if (!out.count) return;
    sums.out = call->sums + path * sums_bytes(call->plan);
    segment_inverse(&call->transform, pair_sums_out(&sums, block), &buffers);
    char *gw = call->gw + path * axis->out * bytes;
    const char *from = buffers.samples + out.skip * bytes;
    if (call->plan->shape.flip)
        samples_reverse(gw + (axis->out - out.first - out.count) * bytes, 1, from, axis->stride,
                        out.count, bytes);
    else samples_copy(gw + out.first * bytes, 1, from, axis->stride, out.count, bytes);
}

void weight_run(const struct partita_plan *plan, const struct operands *operands, char *workspace)
{
    const struct shape *shape = blocks_shape(plan);
    const struct axis *axis = &shape->axis[0];
    const size_t bytes = shape->sample_bytes, paths = shape->group_in * shape->group_out;
    struct weight call = {.plan = plan, .workspace = workspace};
    weight_layout_shared(plan, workspace, &call);
    for (size_t group = 0; group < shape->groups; group++) {
        call.gw = (char *)operands->to + group * paths * axis->out * bytes;
        for (size_t item = 0; item < shape->batch; item++) {
            const size_t in = item * shape->in_channels + group * shape->group_in;
            const size_t out = item * shape->out_channels + group * shape->group_out;
            call.x = (const char *)operands->from[0] + in * axis->size * bytes;
            call.gy = (const char *)operands->from[1] + out * axis->kernel * bytes;
            sum_item(&call, item == 0, item + 1 == shape->batch);
        }
        thread_loop(plan->threads, paths * blocks_layout(plan)->blocks, weight_finish_block, &call);
    }
}
