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
    bool data;                       // whether it is backward data
    struct bounded_call inner;       // its plan is that of the direction; NULL: not planned
    struct partita_call call;
    bool borrows; // transforms of x of another plan, with a slot of its own
    struct saved_slot borrowed;
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

// Whether plans that share transforms have the same ones of x: on equal tiles in equal batches.
static bool same_inputs(const struct partita_plan *plan, const struct partita_plan *other)
{
    const struct shape *a = &plan->shape, *b = &other->shape;
    return plan->shares && other->shares && plan->engine == other->engine &&
           a->signal == b->signal && a->batch == b->batch && a->in_channels == b->in_channels &&
           a->groups == b->groups && a->rank == b->rank && a->channels_last == b->channels_last &&
           !a->ghosts.boundary && !b->ghosts.boundary &&
           !memcmp(a->axis, b->axis, sizeof a->axis) &&
           !memcmp(plan->choice.decision, other->choice.decision, DECISION_BYTES);
}

static enum partita_status call_read(struct run *run, const struct partita_call *call,
                                     size_t call_bytes)
{
    static const bool unset[sizeof call->reserved];
    const struct partita_plan *plan = run->plan;
    if (!sized_read(&run->call, sizeof run->call, call, call_bytes, &plan->log, "call"))
        return PARTITA_ERR_UNSUPPORTED;
    if (memcmp(run->call.reserved, unset, sizeof unset))
        return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED, "call.reserved: must be false");
    run->borrows = run->call.saved && run->call.saved->plan != plan;
    if (run->borrows && (run->data || !same_inputs(plan, run->call.saved->plan)))
        return log_error(&plan->log, PARTITA_ERR_ARG, "call.saved: of another plan");
    return PARTITA_OK;
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

// Gives a call the slot of x, which may be NULL in backward weight: that means the x of the step.
static enum partita_status saved_enter_x(struct run *run, bool forward)
{
    const struct partita_plan *plan = run->plan;
    struct saved_slot *slot = &run->call.saved->slot[SAVED_X];
    const void **x = &run->inner.operands.from[0];
    const bool renews = !run->borrows && (forward || slot->calls & PARTITA_BACKWARD_WEIGHT);
    if (!slot->ready && (run->borrows || (!forward && (!*x || !plan->shares))))
        return log_error(&plan->log, PARTITA_ERR_STATE,
                         "call.saved: no call has filled it with transforms of x");
    if (*x && slot->ready && slot->array != *x && !renews)
        return log_error(&plan->log, PARTITA_ERR_ARG, "x: not the array of call.saved");
    run->borrowed = *slot;
    run->inner.operands.saved[SAVED_X] = run->borrows ? &run->borrowed : slot;
    if (!forward && !plan->shares) *x = NULL;
    if (*x && !run->borrows) saved_enter(run, SAVED_X, *x);
    return PARTITA_OK;
}

// Runs a call whose arguments are valid but for its arrays. Afterwards its slots are as valid as
// its result.
static enum partita_status run_call(struct run *run, const struct arrays *arrays)
{
    const struct partita_plan *plan = run->plan;
    const bool forward = run->inner.plan == plan, saves = run->call.saved;
    enum partita_status status = check_arrays(run, arrays);
    if (status == PARTITA_OK && saves && !run->data) status = saved_enter_x(run, forward);
    if (status != PARTITA_OK) return status;
    if (saves && !forward && plan->shares && !run->borrows)
        saved_enter(run, SAVED_GY, run->inner.operands.from[!run->data]);
    status = bounded_run(&run->inner);
    for (int i = 0; i < SAVED_SLOTS; i++) {
        struct saved_slot *slot = run->inner.operands.saved[i];
        if (!slot) continue;
        slot->ready = status == PARTITA_OK;
        slot->calls |= run->inner.plan->direction;
    }
    return status;
}

// Forward or backward data, by a filter or taps.
static enum partita_status run_filtered(struct run *run, const struct partita_filter *filter,
                                        const struct partita_call *call, size_t call_bytes)
{
    static const struct arrays arrays[] = {
        {"partita_forward", {"y", Y}, {{"x", X}, {"call.taps", TAPS}}},
        {"partita_backward_data", {"gx", X}, {{"gy", Y}, {"call.taps", TAPS}}}};
    const struct partita_plan *plan = run->plan;
    const bool data = run->data;
    run->inner.plan = bounded_direction(plan, data ? PARTITA_BACKWARD_DATA : PARTITA_FORWARD);
    run->inner.filter = filter && data && !plan->shares ? filter->backward_data : filter;
    const enum partita_status status = call_read(run, call, call_bytes);
    if (status != PARTITA_OK) return status;
    if (!filter_is_valid(plan, filter, &run->call)) return PARTITA_ERR_ARG;
    if (!data && run->call.accumulate && plan->shape.relu)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call.accumulate: the problem has an activation");
    if (data && run->call.saved && !plan->shares)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call.saved: the directions of the plan share no transforms");
    return run_call(run, &arrays[data]);
}

enum partita_status partita_forward_sized(const struct partita_plan *plan,
                                          const struct partita_filter *filter, void *y,
                                          const void *x, const struct partita_call *call,
                                          size_t call_bytes)
{
    if (!arguments_given(log_of(plan), plan, y, x)) return PARTITA_ERR_ARG;
    struct run run = {.plan = plan, .inner.operands = {.to = y, .from = {x}}};
    return run_filtered(&run, filter, call, call_bytes);
}

enum partita_status partita_backward_data_sized(const struct partita_plan *plan,
                                                const struct partita_filter *filter, void *gx,
                                                const void *gy, const struct partita_call *call,
                                                size_t call_bytes)
{
    if (!arguments_given(log_of(plan), plan, gx, gy)) return PARTITA_ERR_ARG;
    struct run run = {.plan = plan, .data = true, .inner.operands = {.to = gx, .from = {gy}}};
    return run_filtered(&run, filter, call, call_bytes);
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
    const enum partita_status status = call_read(&run, call, call_bytes);
    if (status != PARTITA_OK) return status;
    const struct partita_saved *saved = run.call.saved;
    if (run.call.taps)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call.taps: of forward and backward data only");
    if (!x && !saved) return log_error(&plan->log, PARTITA_ERR_ARG, "x: NULL, and no call.saved");
    if (saved && !plan->shares) run.inner.plan = &saved->weight;
    return run_call(
        &run, &(struct arrays){"partita_backward_weight", {"gw", TAPS}, {{"x", X}, {"gy", Y}}});
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
    enum partita_status status = call_read(&run, call, call_bytes);
    if (status != PARTITA_OK) return status;
    if (run.call.taps || run.call.saved)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call: backward bias takes neither taps nor saved");
    status = check_arrays(
        &run, &(struct arrays){"partita_backward_bias", {"gb", BIAS}, {{"gy", Y}, {"x", X}}});
    if (status != PARTITA_OK) return status;
    return plan->device->backward_bias(plan, &run.inner.operands);
}
