// SPDX-License-Identifier: MIT
// What is done to results as they are stored: bias and activation, for engines whose stores do not
// apply them, and conversion to samples of two bytes.
#ifndef PARTITA_CONV_FINISH_H
#define PARTITA_CONV_FINISH_H

#include "core/plan.h"
#include "kernels/kernels.h"

// Adds the filter's bias to y and applies the problem's activation, if there are any; channels come
// first. conv_finish_row: n adjacent samples of a channel.
void conv_finish_outputs(const struct partita_plan *plan, const struct partita_filter *filter,
                         void *y);
void conv_finish_row(const struct partita_plan *plan, const struct partita_filter *filter,
                     size_t channel, void *y, size_t n);

// Conversions between f32 and samples stored in two bytes, where shape.half says so.
static inline enum half shape_half(const struct shape *shape)
{
    return shape->signal == PARTITA_F16 ? HALF_F16 : HALF_BF16;
}

static inline convert_fn *plan_widen(const struct partita_plan *plan)
{
    return plan->kernels->widen[shape_half(&plan->shape)];
}

static inline convert_fn *plan_narrow(const struct partita_plan *plan)
{
    return plan->kernels->narrow[shape_half(&plan->shape)];
}

#endif
