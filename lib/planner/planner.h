// SPDX-License-Identifier: MIT
// Chooses an engine: knows no algorithm, only what engines say of themselves.
#ifndef PARTITA_PLANNER_H
#define PARTITA_PLANNER_H

#include "core/plan.h"

// Fills plan->engine, choice, estimates and state for plan->shape. The caller destroys the plan on
// failure.
enum partita_status planner_choose(struct partita_plan *plan,
                                   const struct partita_options *options);

// All engines of the CPU, NULL-terminated (engines.c).
extern const struct engine *const cpu_engines[];

#endif
