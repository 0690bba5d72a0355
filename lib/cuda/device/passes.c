// SPDX-License-Identifier: MIT
#include "passes.h"

#include <assert.h>

#include "base/mem.h"
#include "geometry/residues.h"

// Taps in the caller's order: first and step of those that the sum takes in turn, counted from the
// first sample on.
static void order_taps(const struct shape *shape, int64_t first, int64_t step,
                       struct cuda_axis *axis)
{
    axis->tap_first = shape->flip ? axis->kernel - 1 - first : first;
    axis->tap_step = shape->flip ? -step : step;
}

static struct cuda_pass pass_forward(const struct shape *shape)
{
    const int64_t taps = (int64_t)shape_taps(shape);
    struct cuda_pass pass = {
        .batch = (int64_t)shape->batch,
        .groups = (int64_t)shape->groups,
        .to = (int64_t)shape->group_out,
        .from = (int64_t)shape->group_in,
        .tap_group = (int64_t)(shape->group_out * shape->group_in) * taps,
        .tap_to = (int64_t)shape->group_in * taps,
        .tap_from = taps,
        .relu = shape->relu,
    };
    for (int a = 0; a < 3; a++) {
        const struct axis axis = shape_axis(shape, a);
        pass.axis[a] = (struct cuda_axis){
            .n = (int64_t)axis.out,
            .to_step = 1,
            .to_size = (int64_t)axis.out,
            .from_first = axis.begin,
            .from_step = (int64_t)axis.stride,
            .from_dilation = (int64_t)axis.dilation,
            .from_size = (int64_t)axis.size,
            .taps = (int64_t)axis.kernel,
            .kernel = (int64_t)axis.kernel,
        };
        order_taps(shape, 0, 1, &pass.axis[a]);
    }
    return pass;
}

size_t cuda_passes(const struct shape *shape, enum partita_direction direction, bool *ret_covers)
{
    size_t n = 1;
    *ret_covers = true;
    for (int a = 0; a < 3 && direction == PARTITA_BACKWARD_DATA; a++) {
        const struct axis axis = shape_axis(shape, a);
        const size_t residues = axis_residues(&axis);
        n = size_mul(n, residues);
        if (residues < axis.stride) *ret_covers = false;
    }
    return n;
}

// Output p meets sample i = stride*p + begin + dilation*t with tap t. So tap t0, below the period,
// meets the residue i0 = begin + dilation*t0 modulo the stride, with the taps that follow it in
// periods; sample i0 + stride*j meets with the m-th of them output p = j + (i0 - begin -
// dilation*t0)/stride - dilation*period/stride*m. The sum takes them from the last one on, so that
// p grows.
static struct cuda_axis pass_backward_axis(const struct shape *shape, const struct axis *from,
                                           size_t t0)
{
    const ptrdiff_t stride = (ptrdiff_t)from->stride, period = (ptrdiff_t)axis_tap_period(from);
    const ptrdiff_t reached = from->begin + (ptrdiff_t)(from->dilation * t0);
    const ptrdiff_t sample = floor_div(reached, from->stride), residue = reached - sample * stride;
    const ptrdiff_t taps = ((ptrdiff_t)(from->kernel - t0) + period - 1) / period;
    const ptrdiff_t dilation = (ptrdiff_t)from->dilation * period / stride;
    const ptrdiff_t size = (ptrdiff_t)from->size;
    assert(residue >= 0 && residue < stride && taps > 0);
    struct cuda_axis axis = {
        .n = residue < size ? (size - residue + stride - 1) / stride : 0,
        .to_first = residue,
        .to_step = stride,
        .to_size = size,
        .from_first = -sample - dilation * (taps - 1),
        .from_step = 1,
        .from_dilation = dilation,
        .from_size = (int64_t)from->out,
        .taps = taps,
        .kernel = (int64_t)from->kernel,
    };
    order_taps(shape, (int64_t)t0 + period * (taps - 1), -period, &axis);
    return axis;
}

struct cuda_pass cuda_pass_of(const struct shape *shape, enum partita_direction direction, size_t i)
{
    struct cuda_pass pass = pass_forward(shape);
    if (direction != PARTITA_BACKWARD_DATA) return pass;
    pass.to = (int64_t)shape->group_in;
    pass.from = (int64_t)shape->group_out;
    const int64_t taps = pass.tap_to;
    pass.tap_to = pass.tap_from;
    pass.tap_from = taps;
    pass.relu = false;
    for (int a = 2; a >= 0; a--) {
        const struct axis axis = shape_axis(shape, a);
        const size_t residues = axis_residues(&axis);
        pass.axis[a] = pass_backward_axis(shape, &axis, i % residues);
        i /= residues;
    }
    return pass;
}

void cuda_passes_estimate(const struct request *request, int variants, int max_passes,
                          cuda_variant_fn *fill, struct estimate *ret)
{
    bool covers;
    if (cuda_passes(request->shape, request->direction, &covers) > (size_t)max_passes) {
        estimate_refuse(ret, "stride and kernel make more than %d passes", max_passes);
        return;
    }
    for (int v = 0; v < variants; v++) {
        struct estimate estimate = {0};
        if (!request_allows(request, v)) continue;
        fill(request, v, &estimate);
        if (estimate.applicable && !estimate_fits(request, &estimate) && ret->applicable) continue;
        if (!ret->applicable || (estimate.applicable && estimate.seconds < ret->seconds))
            *ret = estimate;
    }
}
