// SPDX-License-Identifier: MIT
// Chooses an engine: knows no algorithm, only what engines say of themselves.
#ifndef PARTITA_PLANNER_H
#define PARTITA_PLANNER_H

#include "core/engine.h"

// Fills plan->engine, choice, considered and state for plan->shape. The caller destroys the plan on
// failure.
enum partita_status planner_choose(struct partita_plan *plan,
                                   const struct partita_options *options);

#endif
