// SPDX-License-Identifier: MIT
// The plan of one direction, for the public functions.
#ifndef PARTITA_BOUNDED_H
#define PARTITA_BOUNDED_H

#include "core/plan.h"

// The plan of a direction of the caller's plan; NULL: not planned.
const struct partita_plan *bounded_direction(const struct partita_plan *plan,
                                             enum partita_direction direction);

// Bytes of workspace of one call: the engine's and, where it computes the outputs of branches
// (problem.up), behind them those outputs.
size_t bounded_workspace(const struct partita_plan *plan);

#endif
