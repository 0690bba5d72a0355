// SPDX-License-Identifier: MIT
// The gradient of the bias, the same for every engine.
#include "bias.h"

#include "call.h"
#include "cuda/kernels/sums.h"

enum partita_status cuda_queue_bias(const struct partita_plan *plan, const struct shape *shape,
                                    void *gb, const void *gy)
{
    const int64_t sizes[3] = {(int64_t)shape->batch, (int64_t)shape->out_channels,
                              (int64_t)shape_outputs(shape)};
    return CU(plan, cuda_bias_gradient(sizes, shape->f64, gb, gy, cudaStreamPerThread));
}

enum partita_status cuda_backward_bias(const struct partita_plan *plan, void *gb, const void *gy)
{
    const struct shape *shape = &plan->shape;
    const size_t channel = shape->batch * shape_outputs(shape) * shape->scalar_bytes;
    const struct cuda_sizes sizes = {.to = shape->out_channels * shape->scalar_bytes,
                                     .from = {shape->out_channels * channel}};
    struct cuda_call call;
    enum partita_status status =
        cuda_call_begin(plan, &(struct operands){.to = gb, .from = {gy}}, &sizes, NULL, &call);
    if (status == PARTITA_OK) status = cuda_queue_bias(plan, shape, call.to, call.from[0]);
    return cuda_call_end(&call, status);
}
