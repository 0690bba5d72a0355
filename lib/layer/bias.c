// SPDX-License-Identifier: MIT
// The gradient of the bias on the CPU: gb[k] = the sum of gy over items and outputs.
#include <string.h>

#include "base/scalar.h"
#include "base/sizes.h"
#include "base/thread.h"
#include "bounded.h"
#include "geometry/samples.h"

struct bias_call {
    const struct partita_plan *plan;
    char *gb;
    const char *gy;
    bool accumulate;
};

static void put_bias(const struct bias_call *call, size_t k, double sum)
{
    const struct partita_plan *plan = call->plan;
    const size_t bytes = plan->shape.sample_bytes;
    const float rounded = (float)sum;
    double result; // or another scalar
    if (plan->shape.half) plan_narrow(plan)(&result, &rounded, 1);
    else scalar_put(plan->shape.f64, &result, 0, sum);
    if (call->accumulate) storage_add(plan, call->gb + k * bytes, &result, 1);
    else memcpy(call->gb + k * bytes, &result, bytes);
}

static void sum_bias_channel(void *context, size_t k, int worker)
{
    enum { WIDENED = 1 << 10 }; // samples of two bytes that are summed together
    const struct bias_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const size_t n = shape_outputs(shape), bytes = shape->sample_bytes;
    float wide[WIDENED];
    double sum = 0; // of sums of planes: few, and each as exact as its kernel
    (void)worker;
    for (size_t item = 0; item < shape->batch; item++) {
        const char *plane = call->gy + (item * shape->out_channels + k) * n * bytes;
        for (size_t i = 0, part; i < n; i += part) {
            part = shape->half ? size_min(WIDENED, n - i) : n;
            const char *at = plane + i * bytes;
            if (shape->half) plan_widen(call->plan)(wide, at, part);
            sum += call->plan->kernels->sum(shape->half ? (const void *)wide : at, part);
        }
    }
    put_bias(call, k, sum);
}

enum { BIAS_CHANNELS = 16, BIAS_POSITIONS = 64 }; // channels last: moved to rows at once

// The same for adjacent channels.
static void sum_bias_channels(void *context, size_t task, int worker)
{
    const struct bias_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct sample_strides strides = shape_strides(shape, true);
    const size_t k = task * BIAS_CHANNELS,
                 channels = size_min(BIAS_CHANNELS, shape->out_channels - k);
    const size_t all = shape->batch * shape_outputs(shape), bytes = shape->scalar_bytes;
    double rows[BIAS_CHANNELS * BIAS_POSITIONS], sum[BIAS_CHANNELS] = {0};
    (void)worker;
    for (size_t i = 0; i < all; i += BIAS_POSITIONS) {
        const size_t n = size_min(BIAS_POSITIONS, all - i);
        const struct sample_rows to = {(char *)rows, channels, BIAS_POSITIONS, strides.position, n};
        samples_move(call->plan, &to, call->gy + (i * strides.position + k) * shape->sample_bytes,
                     false);
        for (size_t c = 0; c < channels; c++)
            sum[c] += call->plan->kernels->sum((char *)rows + c * BIAS_POSITIONS * bytes, n);
    }
    for (size_t c = 0; c < channels; c++) put_bias(call, k + c, sum[c]);
}

enum partita_status cpu_backward_bias(const struct partita_plan *plan,
                                      const struct operands *operands)
{
    struct bias_call call = {plan, operands->to, operands->from[0], operands->accumulate};
    const size_t channels = plan->shape.out_channels;
    if (plan->shape.channels_last)
        thread_loop(plan->threads, ceil_div(channels, BIAS_CHANNELS), sum_bias_channels, &call);
    else thread_loop(plan->threads, channels, sum_bias_channel, &call);
    return PARTITA_OK;
}
