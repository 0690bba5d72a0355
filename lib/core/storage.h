// SPDX-License-Identifier: MIT
// Samples that are stored in two bytes (shape.half). Engines read and write them; taps and their
// gradient are f32 for an engine, and are converted before and after it (core/filter.c,
// layer/bounded.c).
#ifndef PARTITA_INTERNAL_STORAGE_H
#define PARTITA_INTERNAL_STORAGE_H

#include "base/sizes.h"
#include "kernels/kernels.h"
#include "plan.h"

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

// The same for an array of n elements, on the plan's threads; returns `to`.
void *storage_convert(const struct partita_plan *plan, void *to, const void *from, size_t n,
                      bool widen);

// to[i] += from[i], i < n scalars of the plan's samples; of two bytes in f32, rounded once.
void storage_add(const struct partita_plan *plan, void *to, const void *from, size_t n);

static inline size_t plan_taps(const struct partita_plan *plan)
{
    return size_mul(shape_path_count(&plan->shape), shape_taps(&plan->shape));
}

// Bytes of the taps, or of their gradient, in f32; 0: the caller's array is used as it is.
static inline size_t plan_wide_taps(const struct partita_plan *plan)
{
    const bool wide = plan->shape.half && plan->device->host;
    return wide ? mem_round(size_mul(plan_taps(plan), plan->shape.scalar_bytes)) : 0;
}

#endif
