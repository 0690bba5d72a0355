// SPDX-License-Identifier: MIT
// Source: Crochiere & Rabiner, Multirate Digital Signal Processing (1983), 3.3.
#include "upsampling.h"

#include "base/sizes.h"
#include "samples.h"

// The taps of all branches, and those of one path in causal order.
static size_t branches_bytes(const struct shape *shape)
{
    return size_mul(size_mul(shape_path_count(shape), shape->axis[0].kernel), shape->tap_bytes);
}

size_t upsampling_taps_bytes(const struct shape *shape)
{
    return size_add(branches_bytes(shape), size_mul(shape->up.axis.span, shape->tap_bytes));
}

void upsampling_taps(const struct partita_plan *plan, const void *taps, char *branches)
{
    const struct shape *shape = &plan->shape;
    const struct upsampling *up = &shape->up;
    const size_t kernel = shape->axis[0].kernel, bytes = shape->tap_bytes;
    const size_t paths = up->out_channels * shape->group_in, span = up->axis.span;
    char *causal = branches + branches_bytes(shape);
    struct shape taps_shape = *shape;
    taps_shape.axis[0] = up->axis;
    taps_shape.flip = up->flip;
    for (size_t path = 0; path < paths; path++) {
        causal_taps(&taps_shape, causal, (const char *)taps + path * up->axis.kernel * bytes);
        for (size_t branch = 0; branch < up->branches; branch++) {
            const size_t output = path / shape->group_in * up->branches + branch;
            const size_t row = output * shape->group_in + path % shape->group_in;
            samples_window(branches + row * kernel * bytes, causal, span,
                           (ptrdiff_t)(up->tap_first + up->tap_step * branch),
                           up->tap_step * up->branches, kernel, bytes);
        }
    }
}

// Outputs that are `branches` apart belong to one branch, and to samples that are `stride` apart.
void upsampling_take(const struct shape *shape, const struct branches *from, void *y,
                     size_t y_stride, size_t n)
{
    const struct upsampling *up = &shape->up;
    const size_t bytes = shape->sample_bytes;
    for (size_t i = 0; i < size_min(n, up->branches); i++) {
        const size_t at = from->at + i * up->stride;
        const size_t sample = at % up->branches * from->pitch + at / up->branches;
        samples_copy((char *)y + i * y_stride * bytes, up->branches * y_stride,
                     (const char *)from->rows + sample * bytes, up->stride,
                     (n - i - 1) / up->branches + 1, bytes);
    }
}
