// SPDX-License-Identifier: MIT
// Problems of one axis as other problems, for engines of every device.
#include "core/problem.h"

#include <assert.h>
#include <stdio.h>

bool shape_adjoint(const struct shape *shape, struct shape *ret)
{
    const struct axis *axis = &shape->axis[0];
    if (axis->stride > 1) return false;
    *ret = *shape;
    ret->adjoint = true;
    ret->flip = !shape->flip;
    ret->in_channels = shape->out_channels, ret->out_channels = shape->in_channels;
    ret->group_in = shape->group_out, ret->group_out = shape->group_in;
    ret->axis[0].size = axis->out, ret->axis[0].out = axis->size;
    // Sample m of x meets under tap r, counted as correlation does, output m - begin - r.
    ret->axis[0].begin = -(axis->begin + (ptrdiff_t)axis->span - 1);
    return true;
}

// Backward weight of a problem of one axis as the correlation of x with each row of gy. Its outputs
// are the gradient of the taps, in the order of lags. Channels are those of the problem; there is
// one output row per path.
static void shape_gradient(const struct shape *shape, struct shape *ret)
{
    const struct axis *axis = &shape->axis[0];
    *ret = *shape;
    ret->flip = false;
    assert(axis->out > 0);
    // gw[r] = sum over q of gy[q] x[begin + stride*q + dilation*r]
    ret->axis[0].kernel = axis->out, ret->axis[0].out = axis->kernel;
    ret->axis[0].dilation = axis->stride, ret->axis[0].stride = axis->dilation;
    ret->axis[0].span = (axis->out - 1) * axis->stride + 1;
}

bool shape_forward(const struct shape *shape, enum partita_direction direction, struct shape *ret,
                   char *reason, size_t size)
{
    *ret = *shape;
    if (direction == PARTITA_BACKWARD_WEIGHT) shape_gradient(shape, ret);
    if (shape->stream) snprintf(reason, size, "works on bounded signals, not on streams");
    else if (direction == PARTITA_BACKWARD_DATA && !shape_adjoint(shape, ret))
        snprintf(reason, size, "backward data needs a stride of 1, not %zu", shape->axis[0].stride);
    else return true;
    return false;
}
