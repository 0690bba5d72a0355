// SPDX-License-Identifier: MIT
// The gradient of the bias as a plan of an engine that the planner does not know: backward weight
// of one tap for each output, whose samples of x are ones and need no array.
#ifndef PARTITA_CUDA_BIAS_H
#define PARTITA_CUDA_BIAS_H

#include "core/plan.h"

extern const struct engine cuda_bias;

struct cuda_bias_plan {
    struct partita_plan plan, micro_batch;
};

// The plan for gy of a caller's plan, which is split as a direction of that plan splits it. It has
// no memory of its own, and *ret must stay in its place as long as the plan is used.
void cuda_bias_plan_of(const struct partita_plan *plan, struct cuda_bias_plan *ret);

#endif
