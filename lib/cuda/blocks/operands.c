// SPDX-License-Identifier: MIT
// Operands and results of a call as the kernels of every method take them.
#include "blocks.h"

struct cuda_sink cuda_blocks_sink(const struct partita_plan *plan, void *y, size_t row, size_t rows,
                                  const void *bias)
{
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    const struct axis *axis = &blocks->shape.axis[0];
    const bool forward = plan->direction == PARTITA_FORWARD;
    return (struct cuda_sink){.y = y,
                              .row = (int64_t)row,
                              .rows = (int64_t)rows,
                              .length = (int64_t)axis->out,
                              .stride = (int64_t)axis->stride,
                              .end = (int64_t)blocks->layout.trimmed.outputs,
                              .bias = bias,
                              .channels = (int64_t)blocks->shape.out_channels,
                              .complex_samples = plan->shape.complex_signal,
                              .relu = forward && plan->shape.relu,
                              .reversed =
                                  plan->direction == PARTITA_BACKWARD_WEIGHT && plan->shape.flip};
}

struct cuda_windows cuda_blocks_taps(const struct partita_plan *plan)
{
    const struct shape *shape = &cuda_blocks_of(plan)->shape;
    return cuda_taps_windows(shape, shape->adjoint && plan->direction != PARTITA_BACKWARD_WEIGHT);
}

struct cuda_pairs cuda_blocks_rows(const struct cuda_blocks_call *call, size_t unit, size_t units)
{
    const struct shape *shape = &call->blocks->shape;
    const int64_t in = (int64_t)shape->group_in, out = (int64_t)shape->group_out;
    const int64_t groups = (int64_t)shape->groups;
    if (call->plan->direction == PARTITA_BACKWARD_WEIGHT) // [group][out][in], summed over items
        return (struct cuda_pairs){
            .left_rows = {{groups, out, in}, {out, 1, 0}},
            .right_rows = {{groups, out, in}, {in, 0, 1}},
            .rows = groups * out * in,
            .terms = (int64_t)units,
            .left_term = groups * out,
            .right_term = groups * in,
        };
    return (struct cuda_pairs){
        .left_rows = {{1, 1, groups * out}, {0, 0, in}},
        .right_rows = {{1, (int64_t)units, out}, {0, in, 0}},
        .left_first = (int64_t)unit % groups * out,
        .rows = (int64_t)units * out,
        .terms = in,
        .left_term = 1,
        .right_term = 1,
    };
}
