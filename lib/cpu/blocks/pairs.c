// SPDX-License-Identifier: MIT
// The usual method of cpu/blocks: all pairs of blocks (pair_sums.h), some output blocks in flight
// at a time. Backward weight is the same: gw is the correlation of x with gy (shape_forward),
// added up over the batch. The blocks of gy take the place of the filter's, and the sums of all
// paths of a group stay in the spectrum until the last item is done, so that every block of a
// path's gradient takes one inverse transform however large the batch is.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "blocks.h"
#include "geometry/samples.h"

// A call for one group of one item of the batch at a time.
struct pairs {
    const struct partita_plan *plan;
    bool weight; // backward weight
    struct block_transform transform;
    struct block_inputs inputs; // of the group's channels
    const char *gy;             // of the group's first channel; backward weight
    char *taps; // spectra of the filter's paths [out][in of group], or of the group's gy
    char *y;    // first output of the channels that are finished, or of the group's gradient
    char *out;  // sums of one channel, or of the paths [out][in]
    size_t first, count; // output blocks in flight
    struct range range;  // of the signal that they read
    struct pair_sums sums;
};

// The sums of one channel or path.
static size_t sums_bytes(const struct partita_plan *plan)
{
    return size_mul(blocks_of(plan)->fft->spectrum_bytes, blocks_layout(plan)->in_flight + 1);
}

// The memory that all threads share.
static size_t pairs_layout_shared(const struct partita_plan *plan, char *base, struct pairs *ret)
{
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    struct arena arena = {.base = base};
    *ret = (struct pairs){.plan = plan,
                          .weight = plan->direction == PARTITA_BACKWARD_WEIGHT,
                          .transform = blocks_transform(plan, base)};
    const size_t lines = ret->transform.fft->lines;
    const size_t held = ret->weight ? block_inputs_read(shape, layout, 0, layout->blocks).size
                                    : block_input_count(shape, layout, layout->in_flight);
    char *inputs = arena_take(&arena, size_mul(shape->group_in, block_spectra_bytes(lines, held)));
    ret->inputs.spectra = (struct block_spectra){inputs, held};
    if (ret->weight)
        ret->taps = arena_take(
            &arena, size_mul(shape->group_out, block_spectra_bytes(lines, layout->tap_blocks)));
    const size_t sums = ret->weight ? shape->group_in * shape->group_out : 1;
    ret->out = arena_take(&arena, size_mul(sums, sums_bytes(plan)));
    return arena.used;
}

size_t pairs_shared(const struct partita_plan *plan)
{
    struct pairs call;
    return pairs_layout_shared(plan, NULL, &call);
}

// One task: one block of one channel of gy.
static void transform_gy(void *context, size_t task, int worker)
{
    const struct pairs *call = context;
    const struct shape *shape = blocks_shape(call->plan);
    const struct block_layout *layout = blocks_layout(call->plan);
    const size_t channel = task / layout->tap_blocks, i = task % layout->tap_blocks;
    const char *gy = call->gy + channel * shape->axis[0].kernel * shape->tap_bytes;
    struct block_buffers buffers = block_buffers_of(&call->transform, worker);
    blocks_load_taps(call->plan, gy, i, &buffers);
    const struct block_spectra spectra = blocks_taps_spectra(call->plan, call->taps, channel);
    block_forward(&call->transform, &spectra, i, buffers.samples, &buffers);
}

// Goes on to the inputs of the blocks at hand; those that the last ones read too are kept.
static void next_inputs(struct pairs *call)
{
    const struct partita_plan *plan = call->plan;
    const struct block_layout *layout = blocks_layout(plan);
    const struct shape *shape = blocks_shape(plan);
    const size_t end_block = call->first + call->count, channels = shape->group_in;
    const struct range next = block_inputs_read(shape, layout, call->first, end_block);
    const struct range last = call->range;
    const size_t kept = range_within(last, next.first, PTRDIFF_MAX).size;
    assert(next.size <= call->inputs.spectra.count && kept <= next.size);
    for (size_t c = 0; kept && c < channels; c++) {
        const struct block_spectra spectra = block_inputs_spectra(&call->inputs, c);
        block_spectra_shift(&call->transform, &spectra, (size_t)(next.first - last.first), kept);
    }
    call->range = next;
    call->inputs.first = layout->trimmed.first + next.first * (ptrdiff_t)layout->tap_block;
    call->inputs.from = kept;
    call->inputs.end = next.size;
    block_inputs_forward(&call->inputs, channels);
    // Between the signal's ends no sum reaches beyond these blocks.
    const bool inside = call->first > 0 && range_end(next) >= (ptrdiff_t)end_block;
    for (size_t c = 0; !inside && c < channels; c++) {
        const struct block_spectra spectra = block_inputs_spectra(&call->inputs, c);
        block_spectra_margins(&call->transform, &spectra, next.size);
    }
}

// The products of an input of the group with taps, `out` being the sums that they belong to. The
// first ones replace these sums; the last ones complete them.
static void add_products(struct pairs *call, size_t in, size_t taps, char *out, bool first,
                         bool last)
{
    call->sums = (struct pair_sums){
        .transform = &call->transform,
        .left = blocks_taps_spectra(call->plan, call->taps, taps),
        .right = block_inputs_spectra(&call->inputs, in),
        .right_blocks = call->range,
        .first = (ptrdiff_t)call->first,
        .count = call->count,
        .out = out,
        .add = !first,
        .gather = last,
    };
    pair_sums_run(&call->sums);
}

// One task: one output block; a path's gradient is in the order of the caller's taps.
static void pairs_finish_block(void *context, size_t task, int worker)
{
    const struct pairs *call = context;
    const struct axis *axis = &blocks_shape(call->plan)->axis[0];
    const size_t path = task / call->count, block = task % call->count;
    const size_t bytes = call->transform.sample_bytes, hop = block_length(&call->transform);
    const size_t begin = (call->first + block) * hop;
    const struct block_outputs out = block_outputs(axis, begin, begin + hop);
    struct block_buffers buffers = block_buffers_of(&call->transform, worker);
    if (!out.count) return;
    const bool reversed = call->weight && call->plan->shape.flip;
    const bool in_place = !reversed && axis->stride == 1 && out.count == hop;
    char *y = call->y + path * axis->out * bytes;
    const char *from = buffers.samples + out.skip * bytes;
    block_inverse(&call->transform, in_place ? y + out.first * bytes : buffers.samples,
                  pair_sums_out(&call->sums, block) + path * sums_bytes(call->plan), &buffers);
    if (in_place) return;
    if (reversed)
        samples_reverse(y + (axis->out - out.first - out.count) * bytes, 1, from, axis->stride,
                        out.count, bytes);
    else samples_copy(y + out.first * bytes, 1, from, axis->stride, out.count, bytes);
}

// The blocks in flight of every output channel of the group, whose first path is `path`.
static void sum_channels(struct pairs *call, size_t path, char *y)
{
    const struct shape *shape = blocks_shape(call->plan);
    const size_t inputs = shape->group_in;
    for (size_t k = 0; k < shape->group_out; k++) {
        for (size_t c = 0; c < inputs; c++)
            add_products(call, c, path + k * inputs + c, call->out, c == 0, c + 1 == inputs);
        call->y = y + k * shape->axis[0].out * shape->sample_bytes;
        thread_loop(call->plan->threads, call->count, pairs_finish_block, call);
    }
}

// The gradients of all paths of the group.
static void sum_item(struct pairs *call, size_t item, char *gw)
{
    const struct shape *shape = blocks_shape(call->plan);
    const size_t inputs = shape->group_in, paths = inputs * shape->group_out;
    const bool last = item + 1 == shape->batch;
    thread_loop(call->plan->threads, shape->group_out * blocks_layout(call->plan)->tap_blocks,
                transform_gy, call);
    for (size_t path = 0; path < paths; path++)
        add_products(call, path % inputs, path / inputs, call->out + path * sums_bytes(call->plan),
                     item == 0, last);
    call->sums.out = call->out;
    call->y = gw;
    if (last) thread_loop(call->plan->threads, paths * call->count, pairs_finish_block, call);
}

void pairs_run(const struct partita_plan *plan, const struct partita_filter *filter,
               const struct operands *operands, char *workspace)
{
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    const struct axis *axis = &shape->axis[0];
    const size_t bytes = shape->sample_bytes, paths = shape->group_in * shape->group_out;
    char *to = operands->to;
    struct pairs call;
    pairs_layout_shared(plan, workspace, &call);
    if (!call.weight) call.taps = filter->state;
    call.inputs.transform = &call.transform;
    call.inputs.size = axis->size;
    for (size_t i = 0; i < shape->batch * shape->groups; i++) {
        const size_t item = call.weight ? i % shape->batch : i / shape->groups;
        const size_t group = call.weight ? i / shape->batch : i % shape->groups;
        const size_t in = (item * shape->groups + group) * shape->group_in;
        const size_t out = (item * shape->groups + group) * shape->group_out;
        call.inputs.x = (const char *)operands->from[0] + in * axis->size * bytes;
        if (call.weight) call.gy = (const char *)operands->from[1] + out * axis->kernel * bytes;
        call.range = (struct range){PTRDIFF_MIN, 0};
        for (call.first = 0; call.first < layout->blocks; call.first += layout->in_flight) {
            call.count = size_min(layout->blocks - call.first, layout->in_flight);
            next_inputs(&call);
            if (call.weight) sum_item(&call, item, to + group * paths * axis->out * bytes);
            else sum_channels(&call, group * paths, to + out * axis->out * bytes);
        }
    }
}
