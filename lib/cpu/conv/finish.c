// SPDX-License-Identifier: MIT
#include "finish.h"

#include "base/thread.h"

void conv_finish_row(const struct partita_plan *plan, const struct partita_filter *filter,
                     size_t channel, void *y, size_t n)
{
    const struct conv_finish finish = filter_finish(filter, channel);
    if (finish.bias || finish.relu) plan->kernels->conv_store(y, 1, y, n, &finish);
}

struct finish_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    char *y;
};

static void finish_plane(void *context, size_t plane, int worker)
{
    const struct finish_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const size_t n = shape_outputs(shape);
    (void)worker;
    conv_finish_row(call->plan, call->filter, plane % shape->out_channels,
                    call->y + plane * n * shape->scalar_bytes, n);
}

void conv_finish_outputs(const struct partita_plan *plan, const struct partita_filter *filter,
                         void *y)
{
    const struct shape *shape = &plan->shape;
    if (!filter->bias && !shape->relu) return;
    struct finish_call call = {plan, filter, y};
    thread_loop(plan->threads, shape->batch * shape->out_channels, finish_plane, &call);
}
