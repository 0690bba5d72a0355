// SPDX-License-Identifier: MIT
// Public functions that run bounded problems, in every direction.
#include "base/scalar.h"
#include "base/sizes.h"
#include "base/thread.h"
#include "core/arguments.h"
#include "core/filter.h"
#include "geometry/upsampling.h"
#include "kernels/kernels.h"
#include "nonfinite.h"
#include "plan.h"
#include "sized.h"

const struct partita_plan *bounded_direction(const struct partita_plan *plan,
                                             enum partita_direction direction)
{
    if (!plan) return NULL;
    if (direction == PARTITA_BACKWARD_DATA) return plan->backward_data;
    if (direction == PARTITA_BACKWARD_WEIGHT) return plan->backward_weight;
    return plan->engine && direction == PARTITA_FORWARD ? plan : NULL;
}

// A call of the caller's plan, after the arguments that cannot be NULL have been checked.
struct run {
    const struct partita_plan *plan, *of; // the caller's; of the direction, NULL: not planned
    const struct partita_filter *filter;
    struct operands operands;
    struct partita_call call;
};

// The arrays of a public call, by what they hold.
enum contents { X, Y, TAPS, BIAS };

struct arrays {
    const char *function;
    struct {
        const char *name;
        enum contents contents;
    } to, from[2];
};

// Results that share memory with operands would be computed from results.
static enum partita_status check_arrays(struct run *run, const struct arrays *arrays)
{
    const struct partita_plan *plan = run->plan;
    const struct shape *shape = &plan->shape;
    const struct operands *operands = &run->operands;
    const size_t alignment = shape_alignment(shape), sample = shape->sample_bytes;
    if (shape->stream)
        return log_error(&plan->log, PARTITA_ERR_STATE,
                         "plan: of streams, not of a bounded problem");
    if (!run->of)
        return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED, "%s: the plan has no such direction",
                         arrays->function);
    if (run->call.queue && !run->of->device)
        return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED, "call.queue: the CPU has no queues");
    const size_t plane = shape->up.branches ? shape->up.axis.out : shape_outputs(shape);
    const size_t bytes[] = {
        [X] = shape->batch * shape->in_channels * shape_inputs(shape) * sample,
        [Y] = shape->batch * shape_own_outputs(shape) * plane * sample,
        [TAPS] = plan_taps_count(plan) * shape->tap_bytes,
        [BIAS] = shape->out_channels * sample,
    };
    const struct call_array list[] = {
        {arrays->to.name, operands->to, bytes[arrays->to.contents], alignment, true},
        {"call.workspace", run->call.workspace, bounded_workspace(run->of), MEM_ALIGN, true},
        {arrays->from[0].name, operands->from[0], bytes[arrays->from[0].contents], alignment,
         false},
        {arrays->from[1].name, operands->from[1] ? operands->from[1] : run->call.taps,
         bytes[arrays->from[1].contents], alignment, false},
        {.name = NULL}};
    run->operands.queue = run->call.queue;
    return arrays_check(plan->log, arrays->function, list) ? PARTITA_OK : PARTITA_ERR_ARG;
}

// Whether the engine computes outputs of branches, from which a call takes its results.
static bool computes_branches(const struct partita_plan *plan)
{
    return plan->shape.up.branches && !plan->choice.resamples;
}

size_t bounded_workspace(const struct partita_plan *plan)
{
    const size_t engine = plan_workspace(plan);
    return computes_branches(plan) ? size_add(mem_round(engine), upsampling_bytes(&plan->shape))
                                   : engine;
}

// Results of all channels and items.
static void take_results(const struct shape *shape, char *y, const char *branches)
{
    const struct upsampling *up = &shape->up;
    const size_t bytes = shape->sample_bytes, pitch = shape->axis[0].out;
    for (size_t row = 0; row < shape->batch * up->out_channels; row++) {
        const struct branches from = {branches + row * up->branches * pitch * bytes, pitch,
                                      up->first};
        upsampling_take(shape, &from, y + row * up->axis.out * bytes, 1, up->axis.out);
    }
}

static enum partita_status run_checked(const struct run *run)
{
    const struct partita_plan *of = run->of;
    struct operands operands = run->operands;
    void *workspace = run->call.workspace;
    _Atomic uint64_t peak = 0;
    if (of->device) return of->device->run(of, run->filter, &operands, workspace);
    void *own = workspace ? NULL : mem_reserve(&of->allocator, bounded_workspace(of));
    if (!workspace && !own) return PARTITA_ERR_NOMEM;
    if (own) workspace = own;
    operands.peak = &peak;
    if (computes_branches(of)) operands.to = (char *)workspace + mem_round(plan_workspace(of));
    enum partita_status status = of->engine->run(of, run->filter, &operands, workspace);
    if (status == PARTITA_OK) status = nonfinite_confine(of, run->filter, &operands, workspace);
    if (status == PARTITA_OK && computes_branches(of))
        take_results(&of->shape, run->operands.to, operands.to);
    mem_release(&of->allocator, own);
    return status;
}

// The call's workspace, if packing on all threads needs no more.
static void *packing_workspace(const struct run *run)
{
    const struct partita_plan *of = run->of;
    const bool packs = !of->device && !of->engine->filter_create;
    const bool fits = packs && of->engine->filter_bytes(of).scratch <= plan_workspace(of);
    return fits ? run->call.workspace : NULL;
}

// With taps instead of a filter.
static enum partita_status run_taps(struct run *run)
{
    struct partita_filter *filter = NULL;
    const bool forward = run->of->direction == PARTITA_FORWARD;
    const bool up = run->of->shape.up.branches;
    if (forward && run->of->choice.from_taps && !run->of->shape.relu && !up) {
        run->operands.from[1] = run->call.taps;
        run->operands.from_taps = true;
        return run_checked(run);
    }
    if (run->call.queue)
        return log_error(&run->plan->log, PARTITA_ERR_UNSUPPORTED, "call.queue: %s needs a filter",
                         run->of->engine->name);
    const struct partita_plan *of = run->of;
    const struct partita_allocator *allocator = &of->allocator;
    char *branches = up ? mem_reserve(allocator, upsampling_taps_bytes(&of->shape)) : NULL;
    // The taps are packed in the memory that the call then works in: new memory is cleared once.
    void *workspace = run->call.workspace;
    void *own = workspace || of->device ? NULL : mem_reserve(allocator, bounded_workspace(of));
    const bool made = (branches || !up) && (workspace || of->device || own);
    enum partita_status status = PARTITA_ERR_NOMEM;
    if (own) run->call.workspace = own;
    if (made && up) upsampling_taps(of, run->call.taps, branches);
    if (made)
        status = filter_create(of, up ? branches : run->call.taps, packing_workspace(run), &filter);
    mem_release(allocator, branches);
    run->filter = filter;
    if (status == PARTITA_OK) status = run_checked(run);
    filter_destroy(filter);
    mem_release(allocator, own);
    return status;
}

static bool call_read(const struct partita_plan *plan, const struct partita_call *call,
                      size_t call_bytes, struct partita_call *ret)
{
    return sized_read(ret, sizeof *ret, call, call_bytes, &plan->log, "call");
}

// The rule of forward and backward data: a filter of the plan, or taps.
static bool filter_is_valid(const struct partita_plan *plan, const struct partita_filter *filter,
                            const struct partita_call *call)
{
    if (filter && filter->plan != plan) log_line(&plan->log, "filter: of another plan");
    else if (!filter && !call->taps) log_line(&plan->log, "filter: NULL, and no call.taps");
    else if (filter && call->taps) log_line(&plan->log, "call.taps: besides a filter");
    else return true;
    return false;
}

static bool saved_is_valid(const struct partita_plan *plan, const struct partita_saved *saved)
{
    if (!saved || saved->plan == plan) return true;
    return log_line(&plan->log, "call.saved: of another plan");
}

enum partita_status partita_forward_sized(const struct partita_plan *plan,
                                          const struct partita_filter *filter, void *y,
                                          const void *x, const struct partita_call *call,
                                          size_t call_bytes)
{
    if (!arguments_given(log_of(plan), plan, y, x)) return PARTITA_ERR_ARG;
    struct run run = {.plan = plan,
                      .of = bounded_direction(plan, PARTITA_FORWARD),
                      .filter = filter,
                      .operands = {.to = y, .from = {x}}};
    if (!call_read(plan, call, call_bytes, &run.call)) return PARTITA_ERR_UNSUPPORTED;
    struct partita_saved *saved = run.call.saved;
    if (!filter_is_valid(plan, filter, &run.call) || !saved_is_valid(plan, saved))
        return PARTITA_ERR_ARG;
    if (saved) run.operands.cached_spectra = saved->data;
    enum partita_status status = check_arrays(
        &run, &(struct arrays){"partita_forward", {"y", Y}, {{"x", X}, {"call.taps", TAPS}}});
    if (status != PARTITA_OK) return status;
    status = filter ? run_checked(&run) : run_taps(&run);
    if (saved) saved->filled = status == PARTITA_OK;
    return status;
}

enum partita_status partita_backward_data_sized(const struct partita_plan *plan,
                                                const struct partita_filter *filter, void *gx,
                                                const void *gy, const struct partita_call *call,
                                                size_t call_bytes)
{
    if (!arguments_given(log_of(plan), plan, gx, gy)) return PARTITA_ERR_ARG;
    struct run run = {.plan = plan,
                      .of = bounded_direction(plan, PARTITA_BACKWARD_DATA),
                      .filter = filter ? filter->backward_data : NULL,
                      .operands = {.to = gx, .from = {gy}}};
    if (!call_read(plan, call, call_bytes, &run.call)) return PARTITA_ERR_UNSUPPORTED;
    if (!filter_is_valid(plan, filter, &run.call)) return PARTITA_ERR_ARG;
    if (run.call.saved)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call.saved: of forward and backward weight only");
    const enum partita_status status = check_arrays(
        &run,
        &(struct arrays){"partita_backward_data", {"gx", X}, {{"gy", Y}, {"call.taps", TAPS}}});
    if (status != PARTITA_OK) return status;
    return filter ? run_checked(&run) : run_taps(&run);
}

enum partita_status partita_backward_weight_sized(const struct partita_plan *plan, void *gw,
                                                  const void *x, const void *gy,
                                                  const struct partita_call *call,
                                                  size_t call_bytes)
{
    if (!arguments_given(log_of(plan), plan, gw, gy)) return PARTITA_ERR_ARG;
    struct run run = {.plan = plan,
                      .of = bounded_direction(plan, PARTITA_BACKWARD_WEIGHT),
                      .operands = {.to = gw, .from = {x, gy}}};
    if (!call_read(plan, call, call_bytes, &run.call)) return PARTITA_ERR_UNSUPPORTED;
    const struct partita_saved *saved = run.call.saved;
    if (run.call.taps)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call.taps: of forward and backward data only");
    if (!x && !saved) return log_error(&plan->log, PARTITA_ERR_ARG, "x: NULL, and no call.saved");
    if (!saved_is_valid(plan, saved)) return PARTITA_ERR_ARG;
    if (saved) {
        run.of = &saved->weight;
        run.operands =
            (struct operands){.to = gw, .from = {NULL, gy}, .cached_spectra = saved->data};
    }
    const enum partita_status status = check_arrays(
        &run, &(struct arrays){"partita_backward_weight", {"gw", TAPS}, {{"x", X}, {"gy", Y}}});
    if (status != PARTITA_OK) return status;
    if (saved && !saved->filled)
        return log_error(&plan->log, PARTITA_ERR_STATE, "call.saved: filled by no partita_forward");
    return run_checked(&run);
}

enum partita_status partita_plan_prepare(const struct partita_plan *plan)
{
    if (!arguments_given(log_of(plan), plan)) return PARTITA_ERR_ARG;
    return plan->device && !plan->shape.stream ? plan->device->prepare(plan) : PARTITA_OK;
}

// The gradient of the bias on the CPU: gb[k] = the sum of gy over items and outputs.
struct bias_call {
    const struct partita_plan *plan;
    char *gb;
    const char *gy;
};

static void sum_bias_channel(void *context, size_t k, int worker)
{
    const struct bias_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const size_t n = shape_outputs(shape), bytes = shape->scalar_bytes;
    double sum = 0; // of sums of planes: few, and each as exact as its kernel
    (void)worker;
    for (size_t item = 0; item < shape->batch; item++)
        sum += call->plan->kernels->sum(call->gy + (item * shape->out_channels + k) * n * bytes, n);
    scalar_put(shape->f64, call->gb, k, sum);
}

enum { BIAS_CHANNELS = 16, BIAS_POSITIONS = 64 }; // channels last: moved to rows at once

// The same for adjacent channels.
static void sum_bias_channels(void *context, size_t task, int worker)
{
    const struct bias_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct kernels *kernels = call->plan->kernels;
    const struct sample_strides strides = shape_strides(shape, true);
    const size_t k = task * BIAS_CHANNELS,
                 channels = size_min(BIAS_CHANNELS, shape->out_channels - k);
    const size_t all = shape->batch * shape_outputs(shape), bytes = shape->scalar_bytes;
    double rows[BIAS_CHANNELS * BIAS_POSITIONS], sum[BIAS_CHANNELS] = {0};
    (void)worker;
    for (size_t i = 0; i < all; i += BIAS_POSITIONS) {
        const size_t n = size_min(BIAS_POSITIONS, all - i);
        kernels->transpose(rows, BIAS_POSITIONS, call->gy + (i * strides.position + k) * bytes,
                           strides.position, n, channels);
        for (size_t c = 0; c < channels; c++)
            sum[c] += kernels->sum((char *)rows + c * BIAS_POSITIONS * bytes, n);
    }
    for (size_t c = 0; c < channels; c++) scalar_put(shape->f64, call->gb, k + c, sum[c]);
}

enum partita_status partita_backward_bias_sized(const struct partita_plan *plan, void *gb,
                                                const void *gy, const struct partita_call *call,
                                                size_t call_bytes)
{
    if (!arguments_given(log_of(plan), plan, gb, gy)) return PARTITA_ERR_ARG;
    const bool supported = !plan->shape.complex_signal && (!plan->shape.half || plan->device);
    struct run run = {
        .plan = plan, .of = supported ? plan : NULL, .operands = {.to = gb, .from = {gy}}};
    if (!call_read(plan, call, call_bytes, &run.call)) return PARTITA_ERR_UNSUPPORTED;
    if (run.call.taps || run.call.saved)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call: backward bias takes neither taps nor saved");
    const enum partita_status status = check_arrays(
        &run, &(struct arrays){"partita_backward_bias", {"gb", BIAS}, {{"gy", Y}, {"x", X}}});
    if (status != PARTITA_OK) return status;
    const struct shape *shape = &plan->shape;
    if (plan->device) return plan->device->backward_bias(plan, &run.operands);
    struct bias_call sum = {plan, gb, gy};
    const size_t channels = shape->out_channels;
    if (shape->channels_last)
        thread_loop(plan->threads, ceil_div(channels, BIAS_CHANNELS), sum_bias_channels, &sum);
    else thread_loop(plan->threads, channels, sum_bias_channel, &sum);
    return PARTITA_OK;
}
