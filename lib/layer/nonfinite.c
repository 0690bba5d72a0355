// SPDX-License-Identifier: MIT
#include "nonfinite.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/sizes.h"
#include "core/filter.h"
#include "core/storage.h"
#include "geometry/samples.h"
#include "overflow.h"
#include "reach.h"

// Bits of magnitudes from which a transform of a tile may overflow although its results do not
// (overflow.h).
static uint64_t large_bits(const struct shape *shape)
{
    return shape->f64 ? (uint64_t)(0x3ff + 256) << 52 : (uint64_t)(0x7f + 32) << 23;
}

// Whether one of n samples is not finite.
static bool any_nonfinite(const struct partita_plan *plan, const void *samples, size_t n)
{
    const size_t scalars = n * (plan->shape.complex_signal ? 2 : 1);
    return plan->kernels->peak(samples, scalars) >= shape_infinity_bits(&plan->shape);
}

// The arrays of a direction: planes of samples of x, y and taps.
struct array {
    size_t items, channels, plane;
    struct sample_strides strides;
};

// Looks at two outputs of each stretch that a block may fill, and at both ends of a plane.
static bool look_at_outputs(const struct partita_plan *plan, const char *y,
                            const struct array *array)
{
    const size_t bytes = plan->shape.sample_bytes, step = size_max(plan->choice.spread / 2, 1);
    const struct sample_strides *strides = &array->strides;
    // Channels that are adjacent are looked at in one pass.
    const size_t adjacent = strides->channel == 1 ? array->channels : 1;
    for (size_t plane = 0; plane < array->items * array->channels; plane += adjacent) {
        const char *first = y + (plane / array->channels * strides->item +
                                 plane % array->channels * strides->channel) *
                                    bytes;
        const size_t last = (array->plane - 1) * strides->position;
        if (any_nonfinite(plan, first + last * bytes, adjacent)) return true;
        for (size_t i = 0; i < array->plane; i += step)
            if (any_nonfinite(plan, first + i * strides->position * bytes, adjacent)) return true;
    }
    return false;
}

static bool scan_nonfinite(const struct partita_plan *plan, const void *samples, size_t n)
{
    const size_t scalars = n * (plan->shape.complex_signal ? 2 : 1);
    return plan_scan(plan, samples, scalars, shape_infinity_bits(&plan->shape));
}

static struct array array_of(const struct shape *shape, bool outputs)
{
    return (struct array){shape->batch, outputs ? shape->out_channels : shape->in_channels,
                          outputs ? shape_outputs(shape) : shape_inputs(shape),
                          shape_strides(shape, outputs)};
}

static bool may_have_spread(const struct partita_plan *plan, const struct operands *operands)
{
    const struct shape *shape = &plan->shape;
    const bool forward = plan->direction == PARTITA_FORWARD;
    const struct array to = array_of(shape, forward);
    if (!plan->choice.spread) return false;
    if (plan->direction == PARTITA_BACKWARD_WEIGHT)
        return scan_nonfinite(plan, operands->to, plan_taps(plan));
    if (plan->choice.peaks) return atomic_load(operands->peak) >= large_bits(shape);
    const size_t scalars = shape_samples(shape, !forward) * (shape->complex_signal ? 2 : 1);
    if (plan->choice.spread == 1)
        return plan_scan(plan, operands->from[0], scalars, large_bits(shape));
    return look_at_outputs(plan, operands->to, &to);
}

// Copies samples, with zeros in place of those that are not finite.
static char *copy_finite(const struct partita_plan *plan, char *copy, const void *samples, size_t n)
{
    const size_t bytes = plan->shape.sample_bytes;
    memcpy(copy, samples, n * bytes);
    for (size_t i = 0; i < n; i++)
        if (any_nonfinite(plan, copy + i * bytes, 1)) memset(copy + i * bytes, 0, bytes);
    return copy;
}

// One call under repair: marks of a plane that is read and of a plane that is written.
struct repair {
    const struct partita_plan *plan;
    const struct operands *operands;
    struct reach reach;
    unsigned char *from, *to;
};

// Marks the samples that are not finite in any of n planes, `pitch` samples apart; false if there
// are none.
static bool mark_planes(const struct repair *repair, const char *plane, const struct array *array,
                        size_t n, size_t pitch)
{
    const struct partita_plan *plan = repair->plan;
    const size_t bytes = plan->shape.sample_bytes, step = array->strides.position * bytes;
    bool any = false;
    memset(repair->from, 0, array->plane);
    for (; n-- > 0; plane += pitch * bytes) {
        if (step == bytes && !any_nonfinite(plan, plane, array->plane)) continue;
        for (size_t i = 0; i < array->plane; i++)
            if (any_nonfinite(plan, plane + i * step, 1)) any = true, repair->from[i] = 1;
    }
    return any;
}

// Samples that are `step` bytes apart, in reverse order if that is negative.
static void set_nan(const struct repair *repair, char *to, size_t n, ptrdiff_t step)
{
    for (size_t i = 0; i < n; i++, to += step)
        if (repair->to[i]) memset(to, 0xff, repair->plan->shape.sample_bytes);
}

// Forward and backward data: the channels of a group share their reads.
static void repair_outputs(const struct repair *repair)
{
    const struct shape *shape = &repair->plan->shape;
    const bool forward = repair->plan->direction == PARTITA_FORWARD;
    const struct array from = array_of(shape, !forward), to = array_of(shape, forward);
    const size_t reads = from.channels / shape->groups, writes = to.channels / shape->groups;
    const size_t bytes = shape->sample_bytes;
    for (size_t i = 0; i < shape->batch * shape->groups; i++) {
        const size_t item = i / shape->groups, group = i % shape->groups;
        const char *read =
            (const char *)repair->operands->from[0] +
            (item * from.strides.item + group * reads * from.strides.channel) * bytes;
        char *written = (char *)repair->operands->to +
                        (item * to.strides.item + group * writes * to.strides.channel) * bytes;
        if (!mark_planes(repair, read, &from, reads, from.strides.channel)) continue;
        reach_spread(&repair->reach, repair->to, repair->from);
        for (size_t k = 0; k < writes; k++)
            set_nan(repair, written + k * to.strides.channel * bytes, to.plane,
                    (ptrdiff_t)(to.strides.position * bytes));
    }
}

// Backward weight: channel c of x, or of gy, reaches the taps of all paths from it, or to it.
static void repair_taps(const struct repair *repair, bool gy, size_t c)
{
    const struct shape *shape = &repair->plan->shape;
    const struct array from = array_of(shape, gy);
    const size_t taps = shape_taps(shape), bytes = shape->sample_bytes;
    const char *read = (const char *)repair->operands->from[gy] + c * from.strides.channel * bytes;
    if (!mark_planes(repair, read, &from, from.items, from.strides.item)) return;
    reach_spread(&repair->reach, repair->to, repair->from);
    const size_t group = c / (gy ? shape->group_out : shape->group_in);
    const size_t others = gy ? shape->group_in : shape->group_out;
    for (size_t i = 0; i < others; i++) {
        const size_t out = gy ? c : group * shape->group_out + i;
        const size_t in = gy ? i : c % shape->group_in;
        char *path = (char *)repair->operands->to + shape_path(shape, out, in) * taps * bytes;
        if (shape->flip) set_nan(repair, path + (taps - 1) * bytes, taps, -(ptrdiff_t)bytes);
        else set_nan(repair, path, taps, (ptrdiff_t)bytes);
    }
}

static void repair_weight(struct repair *repair)
{
    const struct shape *shape = &repair->plan->shape;
    for (int gy = 0; gy < 2; gy++) {
        const size_t channels = gy ? shape->out_channels : shape->in_channels;
        repair->reach.kind = gy ? REACH_GY_TO_TAPS : REACH_X_TO_TAPS;
        for (size_t c = 0; c < channels; c++) repair_taps(repair, gy, c);
    }
}

static enum partita_status repair_call(const struct partita_plan *plan,
                                       const struct partita_filter *filter,
                                       const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const bool forward = plan->direction == PARTITA_FORWARD;
    const size_t marks =
        mem_round(size_max(size_max(shape_inputs(shape), shape_outputs(shape)), shape_taps(shape)));
    const size_t n = shape_samples(shape, plan->direction == PARTITA_BACKWARD_DATA);
    const size_t n_gy = weight ? shape_samples(shape, true) : 0, bytes = shape->sample_bytes;
    struct arena arena = {0};
    struct operands finite = *operands;
    memset(finite.saved, 0, sizeof finite.saved);
    struct repair repair = {
        .plan = plan,
        .operands = operands,
        .reach = {.shape = shape, .kind = forward ? REACH_X_TO_Y : REACH_GY_TO_X}};
    char *copy[2];
    for (int pass = 0; pass < 2; pass++) {
        copy[0] = arena_take(&arena, size_mul(n, bytes));
        copy[1] = arena_take(&arena, size_mul(n_gy, bytes));
        repair.from = arena_take(&arena, marks), repair.to = arena_take(&arena, marks);
        repair.reach.memory = arena_take(&arena, reach_bytes(shape));
        if (!pass && !arena_reserve(&arena, &plan->allocator)) return PARTITA_ERR_NOMEM;
    }
    finite.from[0] = copy_finite(plan, copy[0], operands->from[0], n);
    if (weight) finite.from[1] = copy_finite(plan, copy[1], operands->from[1], n_gy);
    plan->engine->bounded.run(plan, filter, &finite, workspace);
    const enum partita_status status = overflow_confine(plan, filter, &finite, workspace);
    if (weight) repair_weight(&repair);
    else repair_outputs(&repair);
    mem_release(&plan->allocator, arena.base);
    return status;
}

// Samples in two bytes: the call again in f32, with its repairs, and rounded.
static enum partita_status confine_half(const struct partita_plan *plan,
                                        const struct partita_filter *filter,
                                        const struct operands *operands, void *workspace)
{
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const bool data = plan->direction == PARTITA_BACKWARD_DATA;
    const size_t from = shape_samples(&plan->shape, data);
    const size_t other = shape_samples(&plan->shape, !data); // of gy, or of the results
    const size_t first = mem_round(size_mul(from, sizeof(float)));
    struct partita_plan wide = *plan;
    struct partita_filter wide_filter = {.plan = &wide};
    struct operands inner = *operands;
    _Atomic uint64_t peak = 0;
    char *memory = mem_reserve(&plan->allocator, size_add(first, size_mul(other, sizeof(float))));
    if (!memory) return PARTITA_ERR_NOMEM;
    wide.shape.half = false;
    wide.shape.signal = wide.shape.taps = PARTITA_F32;
    wide.shape.sample_bytes = wide.shape.tap_bytes = sizeof(float);
    if (filter) wide_filter = *filter;
    wide_filter.plan = &wide;
    filter = filter ? &wide_filter : NULL;
    inner.peak = &peak;
    memset(inner.saved, 0, sizeof inner.saved);
    inner.from[0] = storage_convert(plan, memory, operands->from[0], from, true);
    if (!weight) inner.to = memory + first;
    else inner.from[1] = storage_convert(plan, memory + first, operands->from[1], other, true);
    enum partita_status status = plan->engine->bounded.run(&wide, filter, &inner, workspace);
    if (status == PARTITA_OK) status = nonfinite_confine(&wide, filter, &inner, workspace);
    if (!weight) storage_convert(plan, operands->to, inner.to, other, false);
    mem_release(&plan->allocator, memory);
    return status;
}

enum partita_status nonfinite_confine(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    const bool data = plan->direction == PARTITA_BACKWARD_DATA;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    // With saved transforms x may be absent.
    if (weight && !operands->from[0]) return PARTITA_OK;
    if (!may_have_spread(plan, operands)) return PARTITA_OK;
    if (shape->half) return confine_half(plan, filter, operands, workspace);
    if (!scan_nonfinite(plan, operands->from[0], shape_samples(shape, data)) &&
        !(weight && scan_nonfinite(plan, operands->from[1], shape_samples(shape, true))))
        return overflow_confine(plan, filter, operands, workspace);
    return repair_call(plan, filter, operands, workspace);
}
