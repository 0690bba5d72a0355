// SPDX-License-Identifier: MIT
// Chooses an engine: knows no algorithm, only what engines say of themselves.
#ifndef PARTITA_PLANNER_H
#define PARTITA_PLANNER_H

#include "engine.h"

// Asks engine i of the list for its estimate with one FFT size (0: any) and holds it against the options' limits.
void planner_ask(const struct partita_plan *plan, const struct partita_options *options, const struct host *host,
                 size_t i, size_t transform, struct estimate *ret);

// Fills plan->engine, choice, considered and state for plan->shape. The caller destroys the plan on failure.
enum partita_status planner_choose(struct partita_plan *plan, const struct partita_options *options);

#endif
