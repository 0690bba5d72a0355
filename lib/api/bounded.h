// SPDX-License-Identifier: MIT
// What the public calls of bounded problems share, whatever their direction.
#ifndef PARTITA_BOUNDED_H
#define PARTITA_BOUNDED_H

#include "core/plan.h"

// The plan of a direction of the caller's plan; NULL: not planned.
const struct partita_plan *bounded_direction(const struct partita_plan *plan,
                                             enum partita_direction direction);

// Checks the pointers of a call of the caller's plan and runs it; `of` is the plan of its
// direction, NULL: not planned. A workspace that is NULL is allocated for the call. Errors:
// PARTITA_ERR_ARG, PARTITA_ERR_STATE, PARTITA_ERR_UNSUPPORTED, PARTITA_ERR_NOMEM,
// PARTITA_ERR_DEVICE.
enum partita_status bounded_run(const struct partita_plan *plan, const struct partita_plan *of,
                                const struct partita_filter *filter,
                                const struct operands *operands, void *workspace);

// The check alone, for calls that run nothing of the plan's engine.
enum partita_status bounded_check(const struct partita_plan *plan, const struct partita_plan *of,
                                  const struct operands *operands, const void *workspace);

#endif
