// SPDX-License-Identifier: MIT
#include "finish.h"

#include "base/thread.h"

struct finish_call {
    const struct partita_plan *plan;
    const char *bias;
    char *y;
};

static void finish_plane(void *context, size_t plane, int worker)
{
    const struct finish_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const size_t n = shape_outputs(shape), bytes = shape->scalar_bytes;
    char *y = call->y + plane * n * bytes;
    const struct conv_finish finish = {
        .bias = call->bias ? call->bias + plane % shape->out_channels * bytes : NULL,
        .relu = shape->relu};
    (void)worker;
    call->plan->kernels->conv_store(y, 1, y, n, &finish);
}

void conv_finish_outputs(const struct partita_plan *plan, const struct partita_filter *filter,
                         void *y)
{
    const struct shape *shape = &plan->shape;
    if (!filter->bias && !shape->relu) return;
    struct finish_call call = {plan, filter->bias, y};
    thread_loop(plan->threads, shape->batch * shape->out_channels, finish_plane, &call);
}
