// SPDX-License-Identifier: MIT
// Bias and activation, for engines whose stores do not apply them.
#ifndef PARTITA_CONV_FINISH_H
#define PARTITA_CONV_FINISH_H

#include "core/plan.h"

// Adds the filter's bias to y and applies the problem's activation, if there are any.
void conv_finish_outputs(const struct partita_plan *plan, const struct partita_filter *filter,
                         void *y);

#endif
