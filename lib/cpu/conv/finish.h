// SPDX-License-Identifier: MIT
// What is done to results as they are stored: bias and activation, for engines whose stores do not
// apply them.
#ifndef PARTITA_CONV_FINISH_H
#define PARTITA_CONV_FINISH_H

#include "core/plan.h"
#include "kernels/kernels.h"

// Adds the filter's bias to y and applies the problem's activation, if there are any; channels come
// first. conv_finish_row: n adjacent samples of a channel.
void conv_finish_outputs(const struct partita_plan *plan, const struct partita_filter *filter,
                         void *y);
void conv_finish_row(const struct partita_plan *plan, const struct partita_filter *filter,
                     size_t channel, void *y, size_t n);

#endif
