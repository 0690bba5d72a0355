// SPDX-License-Identifier: MIT
// PARTITA_MEASURE: times the likely choices by running them.
#ifndef PARTITA_MEASURE_H
#define PARTITA_MEASURE_H

#include "core/plan.h"

// Replaces *index (into engines) and *choice, the cheapest by estimate, by the fastest by the clock
// among all choices estimated at up to three times its cost. Errors: PARTITA_ERR_NOMEM.
enum partita_status measure_best(const struct partita_plan *plan,
                                 const struct partita_options *options,
                                 const struct cost_model *model, size_t *index,
                                 struct estimate *choice);

#endif
