// SPDX-License-Identifier: MIT
#include "bias.h"

#include "base/sizes.h"
#include "cuda/kernels/sums.h"
#include "filter.h"

static enum partita_status bias_run(const struct partita_plan *plan,
                                    const struct partita_filter *filter,
                                    const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    const int64_t sizes[3] = {(int64_t)shape->batch, (int64_t)shape->out_channels,
                              (int64_t)shape_outputs(shape)};
    (void)filter, (void)workspace;
    return CU(plan, cuda_bias_gradient(sizes, cuda_storage_of(shape), operands->to,
                                       operands->from[1], operands->accumulate));
}

const struct engine cuda_bias = {.name = "cuda/bias", .bounded = {.run = bias_run}};

// The layer of one tap and no inputs that has the outputs of another.
static struct shape bias_shape(const struct shape *shape)
{
    struct shape ret = *shape;
    ret.in_channels = 0;
    ret.group_in = 1;
    for (int a = 0; a < PARTITA_MAX_RANK; a++) {
        const size_t out = shape->axis[a].out;
        ret.axis[a] = (struct axis){
            .kernel = 1, .size = out, .stride = 1, .dilation = 1, .span = 1, .out = out};
    }
    return ret;
}

void cuda_bias_plan_of(const struct partita_plan *plan, struct cuda_bias_plan *ret)
{
    const struct partita_plan *const plans[] = {plan, plan->backward_weight, plan->backward_data};
    ret->plan = (struct partita_plan){.device = plan->device,
                                      .direction = PARTITA_BACKWARD_WEIGHT,
                                      .engine = &cuda_bias,
                                      .shape = bias_shape(&plan->shape),
                                      .threads = plan->threads,
                                      .allocator = plan->allocator,
                                      .log = plan->log};
    for (size_t i = 0; i < sizeof plans / sizeof *plans && !ret->plan.micro_batch; i++) {
        if (!plans[i] || !plans[i]->micro_batch || plan->shape.half) continue;
        struct shape part = plans[i]->micro_batch->shape; // it may have more outputs than there are
        part.axis[0].out = size_min(part.axis[0].out, plan->shape.axis[0].out);
        ret->micro_batch = ret->plan;
        ret->micro_batch.shape = bias_shape(&part);
        ret->plan.micro_batch = &ret->micro_batch;
    }
}
