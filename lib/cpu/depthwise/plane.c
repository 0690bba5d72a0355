// SPDX-License-Identifier: MIT
// Passes along two axes for the variants of cpu/depthwise that do not transpose planes into lanes:
// rows.c and channels.c.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "depthwise.h"
#include "geometry/samples.h"

bool depthwise_plane_pass(const struct request *request, struct conv_pass *pass)
{
    const struct shape *shape = request->shape;
    const struct conv_axis *axis = pass->axis;
    if (request->model->isa < CPU_AVX2 || depthwise_multiplier(shape) > 1 ||
        conv_pass_count(shape, request->direction) > 1 ||
        !conv_pass_make(shape, request->direction, 0, pass))
        return false;
    bool fits =
        axis[0].size == 1 && axis[0].out_size == 1 && axis[0].kernel == 1 && axis[0].base == 0;
    for (int a = 1; a < 3; a++)
        fits = fits && axis[a].spread == 1 && axis[a].first == 0 &&
               axis[a].taps == axis[a].kernel && (axis[a].slope == 1 || axis[a].slope == -1);
    return fits;
}

struct plane_axis depthwise_plane_axis(const struct conv_axis *axis)
{
    const ptrdiff_t last = axis->slope > 0 ? 0 : (ptrdiff_t)axis->taps - 1;
    return (struct plane_axis){.size = axis->size,
                               .count = axis->count,
                               .taps = axis->taps,
                               .step = axis->step,
                               .first = axis->base - last};
}

void depthwise_next_tap(const struct plane_axis axis[2], size_t tap[2])
{
    if (++tap[1] < axis[1].taps) return;
    tap[1] = 0;
    tap[0]++;
}

struct depthwise_plane *depthwise_plane_build(const struct request *request, plane_pass_fn *find,
                                              next_tap_fn *next, struct arena *arena)
{
    struct conv_pass pass;
    const bool served = find(request, &pass);
    assert(served);
    (void)served;
    struct depthwise_plane *plane =
        arena_take(arena, sizeof *plane + pass.terms * sizeof *plane->tap);
    if (!arena->base) return NULL;
    *plane = (struct depthwise_plane){.taps = pass.terms};
    for (int a = 0; a < 2; a++) plane->axis[a] = depthwise_plane_axis(&pass.axis[a + 1]);
    size_t at[2] = {0, 0};
    for (size_t t = 0; t < pass.terms; t++, next(plane->axis, at)) {
        size_t tap[2];
        for (int a = 0; a < 2; a++)
            tap[a] = pass.axis[a + 1].slope > 0 ? at[a] : plane->axis[a].taps - 1 - at[a];
        plane->tap[t] = conv_pass_tap(&pass, tap[0] * plane->axis[1].taps + tap[1]);
    }
    return plane;
}

struct filter_bytes depthwise_plane_filter_bytes(const struct partita_plan *plan)
{
    const struct depthwise_plane *plane = plan->state;
    const size_t channels = plane->pitch ? plane->pitch : plan->shape.in_channels;
    return (struct filter_bytes){
        .packed = size_mul(size_mul(channels, plane->taps), plan->shape.scalar_bytes)};
}

void depthwise_plane_filter_pack(struct partita_filter *filter, const void *taps, void *scratch)
{
    const struct depthwise_plane *plane = filter->plan->state;
    const size_t bytes = filter->plan->shape.scalar_bytes, n = plane->taps;
    const size_t pitch = plane->pitch ? plane->pitch : 1, channel = plane->pitch ? 1 : n;
    (void)scratch;
    memset(filter->state, 0, depthwise_plane_filter_bytes(filter->plan).packed);
    for (size_t t = 0; t < n; t++)
        samples_copy((char *)filter->state + t * pitch * bytes, channel,
                     (const char *)taps + plane->tap[t] * bytes, n, filter->plan->shape.in_channels,
                     bytes);
}
