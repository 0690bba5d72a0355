// SPDX-License-Identifier: MIT
// Public functions that run bounded problems, in every direction.
#include "layer/bounded.h"
#include "core/arguments.h"
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
    const struct partita_plan *plan; // the caller's
    struct bounded_call inner;       // its plan is that of the direction; NULL: not planned
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
    const struct operands *operands = &run->inner.operands;
    const size_t alignment = shape_alignment(shape), sample = shape->sample_bytes;
    if (shape->stream)
        return log_error(&plan->log, PARTITA_ERR_STATE,
                         "plan: of streams, not of a bounded problem");
    if (!run->inner.plan)
        return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED, "%s: the plan has no such direction",
                         arrays->function);
    if (run->call.queue && !plan->device->queues)
        return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED, "call.queue: the CPU has no queues");
    const size_t plane = shape->up.branches ? shape->up.axis.out : shape_outputs(shape);
    const size_t bytes[] = {
        [X] = shape->batch * shape->in_channels * shape_own_inputs(shape) * sample,
        [Y] = shape->batch * shape_own_outputs(shape) * plane * sample,
        [TAPS] = plan_taps_count(plan) * shape->tap_bytes,
        [BIAS] = shape->out_channels * sample,
    };
    if (run->call.accumulate) run->inner.operands.accumulate = bytes[arrays->to.contents];
    const size_t workspace = arrays->to.contents == BIAS
                                 ? 0 // which is not used
                                 : bounded_call_workspace(run->inner.plan, operands);
    const struct call_array list[] = {
        {arrays->to.name, operands->to, bytes[arrays->to.contents], alignment, true},
        {"call.workspace", run->call.workspace, workspace, MEM_ALIGN, true},
        {arrays->from[0].name, operands->from[0], bytes[arrays->from[0].contents], alignment,
         false},
        {arrays->from[1].name, operands->from[1] ? operands->from[1] : run->call.taps,
         bytes[arrays->from[1].contents], alignment, false},
        {.name = NULL}};
    run->inner.operands.queue = run->call.queue;
    run->inner.taps = run->call.taps;
    run->inner.workspace = run->call.workspace;
    return arrays_check(plan->log, arrays->function, list) ? PARTITA_OK : PARTITA_ERR_ARG;
}

static bool call_read(const struct partita_plan *plan, const struct partita_call *call,
                      size_t call_bytes, struct partita_call *ret)
{
    static const bool unset[sizeof ret->reserved];
    if (!sized_read(ret, sizeof *ret, call, call_bytes, &plan->log, "call")) return false;
    return !memcmp(ret->reserved, unset, sizeof unset) ||
           log_line(&plan->log, "call.reserved: must be false");
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

// Gives a call the slot of an array. The transforms in it are read if they are of this array and
// this direction has not used them yet; otherwise they are of an earlier step.
static void saved_enter(struct run *run, int slot, const void *array)
{
    struct saved_slot *saved = &run->call.saved->slot[slot], *gy = &run->call.saved->slot[SAVED_GY];
    const unsigned direction = run->inner.plan->direction;
    // With a new x of forward gy is new only if it was renewed after an earlier backward weight.
    const bool renewed = saved->calls & ~gy->calls & PARTITA_BACKWARD_WEIGHT;
    run->inner.operands.saved[slot] = saved;
    if (saved->ready && saved->array == array && !(saved->calls & direction)) return;
    if (direction == PARTITA_FORWARD && saved->array && !renewed) gy->ready = false;
    *saved = (struct saved_slot){.data = saved->data, .array = array, .peak = UINT64_MAX};
}

// After a call its slots are as valid as its result.
static enum partita_status run_call(struct run *run)
{
    const enum partita_status status = bounded_run(&run->inner);
    for (int i = 0; i < SAVED_SLOTS; i++) {
        struct saved_slot *slot = run->inner.operands.saved[i];
        if (!slot) continue;
        slot->ready = status == PARTITA_OK;
        slot->calls |= run->inner.plan->direction;
    }
    return status;
}

// Forward or backward data, by a filter or taps.
static enum partita_status run_filtered(struct run *run, const struct arrays *arrays,
                                        const struct partita_filter *filter,
                                        const struct partita_call *call, size_t call_bytes)
{
    const struct partita_plan *plan = run->plan;
    const bool data = arrays->to.contents == X;
    if (!call_read(plan, call, call_bytes, &run->call)) return PARTITA_ERR_UNSUPPORTED;
    const struct partita_saved *saved = run->call.saved;
    if (!filter_is_valid(plan, filter, &run->call) || !saved_is_valid(plan, saved))
        return PARTITA_ERR_ARG;
    if (!data && run->call.accumulate && plan->shape.relu)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call.accumulate: the problem has an activation");
    if (data && saved && !plan->shares)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call.saved: the directions of the plan share no transforms");
    const enum partita_status status = check_arrays(run, arrays);
    if (status != PARTITA_OK) return status;
    if (saved) saved_enter(run, data ? SAVED_GY : SAVED_X, run->inner.operands.from[0]);
    return run_call(run);
}

enum partita_status partita_forward_sized(const struct partita_plan *plan,
                                          const struct partita_filter *filter, void *y,
                                          const void *x, const struct partita_call *call,
                                          size_t call_bytes)
{
    static const struct arrays arrays = {
        "partita_forward", {"y", Y}, {{"x", X}, {"call.taps", TAPS}}};
    if (!arguments_given(log_of(plan), plan, y, x)) return PARTITA_ERR_ARG;
    struct run run = {.plan = plan,
                      .inner = {.plan = bounded_direction(plan, PARTITA_FORWARD),
                                .filter = filter,
                                .operands = {.to = y, .from = {x}}}};
    return run_filtered(&run, &arrays, filter, call, call_bytes);
}

enum partita_status partita_backward_data_sized(const struct partita_plan *plan,
                                                const struct partita_filter *filter, void *gx,
                                                const void *gy, const struct partita_call *call,
                                                size_t call_bytes)
{
    static const struct arrays arrays = {
        "partita_backward_data", {"gx", X}, {{"gy", Y}, {"call.taps", TAPS}}};
    if (!arguments_given(log_of(plan), plan, gx, gy)) return PARTITA_ERR_ARG;
    struct run run = {.plan = plan,
                      .inner = {.plan = bounded_direction(plan, PARTITA_BACKWARD_DATA),
                                .filter = filter && !plan->shares ? filter->backward_data : filter,
                                .operands = {.to = gx, .from = {gy}}}};
    return run_filtered(&run, &arrays, filter, call, call_bytes);
}

// Whether backward weight may use saved transforms of x, which may be NULL.
static enum partita_status check_saved_x(const struct partita_plan *plan,
                                         const struct partita_saved *saved, const void *x)
{
    const struct saved_slot *slot = &saved->slot[SAVED_X];
    if (!slot->ready && (!x || !plan->shares))
        return log_error(&plan->log, PARTITA_ERR_STATE,
                         "call.saved: no call has filled it with transforms of x");
    if (!x || !slot->ready || slot->array == x || (slot->calls & PARTITA_BACKWARD_WEIGHT))
        return PARTITA_OK;
    return log_error(&plan->log, PARTITA_ERR_ARG, "x: not the array of call.saved");
}

enum partita_status partita_backward_weight_sized(const struct partita_plan *plan, void *gw,
                                                  const void *x, const void *gy,
                                                  const struct partita_call *call,
                                                  size_t call_bytes)
{
    if (!arguments_given(log_of(plan), plan, gw, gy)) return PARTITA_ERR_ARG;
    struct run run = {.plan = plan,
                      .inner = {.plan = bounded_direction(plan, PARTITA_BACKWARD_WEIGHT),
                                .operands = {.to = gw, .from = {x, gy}}}};
    if (!call_read(plan, call, call_bytes, &run.call)) return PARTITA_ERR_UNSUPPORTED;
    struct partita_saved *saved = run.call.saved;
    if (run.call.taps)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call.taps: of forward and backward data only");
    if (!x && !saved) return log_error(&plan->log, PARTITA_ERR_ARG, "x: NULL, and no call.saved");
    if (!saved_is_valid(plan, saved)) return PARTITA_ERR_ARG;
    if (saved && !plan->shares) {
        run.inner.plan = &saved->weight;
        run.inner.operands.from[0] = NULL;
    }
    enum partita_status status = check_arrays(
        &run, &(struct arrays){"partita_backward_weight", {"gw", TAPS}, {{"x", X}, {"gy", Y}}});
    if (status == PARTITA_OK && saved) status = check_saved_x(plan, saved, x);
    if (status != PARTITA_OK) return status;
    if (saved && run.inner.operands.from[0]) saved_enter(&run, SAVED_X, x);
    else if (saved) run.inner.operands.saved[SAVED_X] = &saved->slot[SAVED_X];
    if (saved && plan->shares) saved_enter(&run, SAVED_GY, gy);
    return run_call(&run);
}

enum partita_status partita_plan_prepare(const struct partita_plan *plan)
{
    if (!arguments_given(log_of(plan), plan)) return PARTITA_ERR_ARG;
    if (plan->shape.stream || !plan->device->prepare) return PARTITA_OK;
    return plan->device->prepare(plan);
}

enum partita_status partita_backward_bias_sized(const struct partita_plan *plan, void *gb,
                                                const void *gy, const struct partita_call *call,
                                                size_t call_bytes)
{
    if (!arguments_given(log_of(plan), plan, gb, gy)) return PARTITA_ERR_ARG;
    struct run run = {.plan = plan,
                      .inner = {.plan = plan->shape.complex_signal ? NULL : plan,
                                .operands = {.to = gb, .from = {gy}}}};
    if (!call_read(plan, call, call_bytes, &run.call)) return PARTITA_ERR_UNSUPPORTED;
    if (run.call.taps || run.call.saved)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call: backward bias takes neither taps nor saved");
    const enum partita_status status = check_arrays(
        &run, &(struct arrays){"partita_backward_bias", {"gb", BIAS}, {{"gy", Y}, {"x", X}}});
    if (status != PARTITA_OK) return status;
    return plan->device->backward_bias(plan, &run.inner.operands);
}
