// SPDX-License-Identifier: MIT
// Plans and their directions, for the public functions of other topics.
#ifndef PARTITA_API_PLAN_H
#define PARTITA_API_PLAN_H

#include "core/plan.h"

// As partita_plan_create, for so many streams of a bank; 0: one stream or a bounded problem.
enum partita_status plan_create(const struct partita_problem *problem,
                                const struct partita_options *options, size_t streams,
                                struct partita_plan **ret_plan);

// Taps in the caller's array.
static inline size_t plan_taps_count(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    if (!shape->up.branches) return shape_path_count(shape) * shape_taps(shape);
    return shape->up.out_channels * shape->group_in * shape->up.axis.kernel;
}

// The plan of a direction of the caller's plan; NULL: not planned.
const struct partita_plan *bounded_direction(const struct partita_plan *plan,
                                             enum partita_direction direction);

#endif
