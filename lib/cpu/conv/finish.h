// SPDX-License-Identifier: MIT
// What is done to results as they are stored: bias and activation, for engines whose stores do not
// apply them.
#ifndef PARTITA_CONV_FINISH_H
#define PARTITA_CONV_FINISH_H

#include "core/plan.h"
#include "kernels/kernels.h"

// How the results of an output channel are finished: at all only in forward.
static inline struct conv_finish filter_finish(const struct partita_filter *filter, size_t channel)
{
    const struct shape *shape = &filter->plan->shape;
    const char *bias = filter->bias;
    if (filter->plan->direction != PARTITA_FORWARD) return (struct conv_finish){.bias = NULL};
    return (struct conv_finish){.bias = bias ? bias + channel * shape->scalar_bytes : NULL,
                                .relu = shape->relu};
}

// Adds the filter's bias to y and applies the problem's activation, if there are any; channels come
// first. conv_finish_row: n adjacent samples of a channel.
void conv_finish_outputs(const struct partita_plan *plan, const struct partita_filter *filter,
                         void *y);
void conv_finish_row(const struct partita_plan *plan, const struct partita_filter *filter,
                     size_t channel, void *y, size_t n);

#endif
