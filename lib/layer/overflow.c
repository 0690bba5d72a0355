// SPDX-License-Identifier: MIT
#include "overflow.h"

#include <math.h>

#include "base/scalar.h"
#include "core/filter.h"
#include "kernels/kernels.h"

// Steps in which inputs are scaled down, in powers of two. A result that has overflowed before a
// step is not smaller after it than half of the exponent's range, so that nothing underflows that
// is above its rounding error. After the last step the product of two largest floats is finite, and
// so are sums of 2^32 such products.
enum { STEPS = 3, STEP_F32 = 64, STEP_F64 = 512 };

// A call without bias and activation, with scaled inputs.
struct scaled_call {
    struct partita_plan plan;
    struct partita_filter filter;
    struct operands operands;
    size_t n_from[2], n_to; // samples; n_from[1] is 0 but for backward weight
    char *from[2], *to;
};

static struct scaled_call scaled_call_of(const struct partita_plan *plan,
                                         const struct partita_filter *filter,
                                         const struct operands *operands)
{
    const struct shape *shape = &plan->shape;
    const bool data = plan->direction == PARTITA_BACKWARD_DATA;
    struct scaled_call call = {.plan = *plan, .operands = *operands};
    call.plan.shape.relu = false;
    if (filter) call.filter.state = filter->state;
    memset(call.operands.saved, 0, sizeof call.operands.saved);
    call.n_from[0] = shape_samples(shape, data);
    call.n_to = shape_samples(shape, !data);
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) {
        call.n_from[1] = shape_samples(shape, true);
        call.n_to = shape_path_count(shape) * shape_taps(shape);
    }
    return call;
}

// All arrays in one piece of memory, which begins with from[0].
static bool scaled_call_reserve(struct scaled_call *call)
{
    const size_t bytes = call->plan.shape.sample_bytes, n[] = {call->n_from[0], call->n_from[1]};
    const size_t first = mem_round(n[0] * bytes), second = mem_round(n[1] * bytes);
    char *memory = mem_reserve(&call->plan.allocator, first + second + call->n_to * bytes);
    if (!memory) return false;
    call->from[0] = memory, call->from[1] = memory + first, call->to = memory + first + second;
    return true;
}

// Scales the inputs down by another step and runs the call.
static void scaled_call_run(struct scaled_call *call, const struct engine *engine, int exponent,
                            bool filtered, void *workspace)
{
    const size_t scalars = call->plan.shape.complex_signal ? 2 : 1;
    const int inputs = call->n_from[1] ? 2 : 1;
    for (int i = 0; i < inputs; i++) {
        call->plan.kernels->scale(call->from[i], call->operands.from[i],
                                  ldexp(1, -exponent / inputs), call->n_from[i] * scalars);
        call->operands.from[i] = call->from[i];
    }
    call->operands.to = call->to;
    call->filter.plan = &call->plan;
    engine->bounded.run(&call->plan, filtered ? &call->filter : NULL, &call->operands, workspace);
}

// Replaces scalar i, which is not finite, by the scaled result times 2^exponent, with bias and
// activation.
static void take_scalar(const struct partita_plan *plan, const char *bias,
                        const struct scaled_call *call, size_t i, int exponent, void *to)
{
    const struct shape *shape = &plan->shape;
    const double sum = ldexp(scalar_get(shape->f64, call->to, i), exponent);
    const bool forward = plan->direction == PARTITA_FORWARD;
    double value = shape->f64 ? sum : (double)(float)sum;
    if (forward && bias) // then samples are real
        value += scalar_get(shape->f64, bias,
                            i / shape_strides(shape, true).channel % shape->out_channels);
    if (forward && shape->relu && value < 0) value = 0;
    scalar_put(shape->f64, to, i, value);
}

// Takes the values of the scaled call for results that are not finite. Returns whether it has
// found all of them.
static bool take_results(const struct partita_plan *plan, const char *bias,
                         const struct scaled_call *call, int exponent, void *to)
{
    const struct shape *shape = &plan->shape;
    const size_t scalars = call->n_to * (shape->complex_signal ? 2 : 1);
    bool all = true;
    for (size_t i = 0; i < scalars; i++) {
        if (isfinite(scalar_get(shape->f64, to, i))) continue;
        if (isfinite(scalar_get(shape->f64, call->to, i)))
            take_scalar(plan, bias, call, i, exponent, to);
        else all = false;
    }
    return all;
}

enum partita_status overflow_confine(const struct partita_plan *plan,
                                     const struct partita_filter *filter,
                                     const struct operands *operands, void *workspace)
{
    struct scaled_call call = scaled_call_of(plan, filter, operands);
    const int step = plan->shape.f64 ? STEP_F64 : STEP_F32;
    const size_t scalars = call.n_to * (plan->shape.complex_signal ? 2 : 1);
    bool done = plan->kernels->peak(operands->to, scalars) < shape_infinity_bits(&plan->shape);
    if (done || (filter && filter->nonfinite)) return PARTITA_OK;
    if (operands->from_taps && !taps_are_finite(plan, operands->from[1])) return PARTITA_OK;
    const bool reserved = scaled_call_reserve(&call);
    for (int i = 1; reserved && !done && i <= STEPS; i++) {
        scaled_call_run(&call, plan->engine, step, filter, workspace);
        done = take_results(plan, filter ? filter->bias : NULL, &call, i * step, operands->to);
    }
    mem_release(&plan->allocator, call.from[0]);
    return reserved ? PARTITA_OK : PARTITA_ERR_NOMEM;
}
