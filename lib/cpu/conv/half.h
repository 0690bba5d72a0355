// SPDX-License-Identifier: MIT
// Conversions between samples stored in two bytes, where shape.half says so, and f32.
#ifndef PARTITA_HALF_H
#define PARTITA_HALF_H

#include "core/plan.h"
#include "kernels/kernels.h"

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
