// SPDX-License-Identifier: MIT
// Public functions of filters.
#include "layer/filter.h"

#include "base/sizes.h"
#include "core/arguments.h"
#include "core/filter.h"
#include "sized.h"

static bool path_is_valid(const struct partita_plan *plan, const struct partita_path *paths,
                          size_t i)
{
    const struct shape *shape = &plan->shape;
    const size_t outputs = shape_own_outputs(shape), kernel = shape_own_axis(shape)->kernel;
    const struct partita_path *path = &paths[i];
    if (path->out >= outputs || path->in >= shape->in_channels)
        log_line(&plan->log, "path %zu: %zu -> %zu, but there are %zu -> %zu channels", i, path->in,
                 path->out, shape->in_channels, outputs);
    else if (path->out / (outputs / shape->groups) != path->in / shape->group_in)
        log_line(&plan->log, "path %zu: input %zu and output %zu are of different groups", i,
                 path->in, path->out);
    else if (path->length > kernel || path->delay > kernel - path->length)
        log_line(&plan->log, "path %zu: %zu taps after %zu zeros are more than the kernel's %zu", i,
                 path->length, path->delay, kernel);
    else if (path->length && !path->taps) log_line(&plan->log, "path %zu: no taps", i);
    else if ((uintptr_t)path->taps % shape_alignment(shape))
        log_line(&plan->log, "path %zu: taps are not aligned to %zu bytes", i,
                 shape_alignment(shape));
    else return true;
    return false;
}

static bool paths_are_valid(const struct partita_plan *plan, const struct partita_path *paths,
                            size_t n_paths)
{
    if (plan->shape.rank > 1)
        return log_line(&plan->log, "paths: the problem has %d axes, not one", plan->shape.rank);
    for (size_t i = 0; i < n_paths; i++) {
        if (!path_is_valid(plan, paths, i)) return false;
        for (size_t j = 0; j < i; j++) {
            if (paths[j].out != paths[i].out || paths[j].in != paths[i].in) continue;
            return log_line(&plan->log, "paths %zu and %zu: both %zu -> %zu", j, i, paths[i].in,
                            paths[i].out);
        }
    }
    return true;
}

static bool taps_are_valid(const struct partita_plan *plan, const struct partita_taps *taps)
{
    const size_t count = partita_plan_taps_count(plan);
    if (!taps->dense && !taps->paths && !taps->base)
        log_line(&plan->log, "taps: neither dense taps nor paths");
    else if (taps->dense && (taps->paths || taps->path_count || taps->base))
        log_line(&plan->log, "taps: dense taps besides %s", taps->base ? "a base" : "paths");
    else if (taps->dense && taps->dense_count != count)
        log_line(&plan->log, "taps.dense_count = %zu: the problem has %zu taps", taps->dense_count,
                 count);
    else if (!taps->dense && taps->dense_count)
        log_line(&plan->log, "taps.dense_count = %zu: without dense taps", taps->dense_count);
    else if (!taps->paths && taps->path_count)
        log_line(&plan->log, "taps.path_count = %zu: without paths", taps->path_count);
    else if (taps->base && taps->base->plan != plan)
        log_line(&plan->log, "taps.base: of another plan");
    else return taps->dense || paths_are_valid(plan, taps->paths, taps->path_count);
    return false;
}

// Whether the plan's problem and engine can have such filters.
static bool taps_are_supported(const struct partita_plan *plan, const struct partita_taps *taps)
{
    const bool up = plan->shape.up.branches;
    const bool paths = plan->engine && plan->engine->filter.create_paths && !up;
    if (taps->bias && (plan->shape.stream || plan->shape.complex_signal || up))
        log_line(&plan->log, "taps.bias: of bounded real problems only%s",
                 up ? ", and not of resampling ones" : "");
    else if (taps->base && !paths)
        log_line(&plan->log, "taps.base: of cpu/partitioned and cuda/partitioned only%s",
                 up ? ", and not of resampling problems" : "");
    else return true;
    return false;
}

enum partita_status partita_filter_create_from_sized(const struct partita_plan *plan,
                                                     const struct partita_taps *taps,
                                                     size_t taps_bytes,
                                                     struct partita_filter **ret_filter)
{
    struct partita_taps known;
    if (!arguments_given(log_of(plan), plan, taps, ret_filter)) return PARTITA_ERR_ARG;
    if (!sized_read(&known, sizeof known, taps, taps_bytes, &plan->log, "taps"))
        return PARTITA_ERR_UNSUPPORTED;
    const size_t alignment = shape_alignment(&plan->shape);
    if (!arrays_usable(plan->log, {"taps.dense", known.dense, 1, alignment, false},
                       {"taps.bias", known.bias, 1, alignment, false}) ||
        !taps_are_valid(plan, &known))
        return PARTITA_ERR_ARG;
    if (!taps_are_supported(plan, &known)) return PARTITA_ERR_UNSUPPORTED;
    return filter_from_taps(plan, &known, ret_filter);
}

enum partita_status partita_filter_create(const struct partita_plan *plan, const void *taps,
                                          struct partita_filter **ret_filter)
{
    if (!arguments_given(log_of(plan), plan, taps, ret_filter) ||
        !arrays_usable(plan->log, {"taps", taps, 1, shape_alignment(&plan->shape), false}))
        return PARTITA_ERR_ARG;
    return filter_from_taps(plan, &(struct partita_taps){.dense = taps}, ret_filter);
}

// Whether a filter can be updated with such a bias and call.
static enum partita_status check_update(const struct partita_filter *filter, const void *bias,
                                        const struct partita_call *call)
{
    const struct partita_plan *plan = filter->plan;
    if (call->taps || call->saved || call->accumulate)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "call: an update of a filter takes no call.taps, call.saved or "
                         "call.accumulate");
    if (plan->shape.stream)
        return log_error(&plan->log, PARTITA_ERR_STATE,
                         "filter: of streams, whose taps change by a swap to another filter");
    if (bias && !filter->biased)
        return log_error(&plan->log, PARTITA_ERR_STATE, "bias: the filter was created without one");
    if (!call->queue || plan->device->queues) return PARTITA_OK;
    return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED, "call.queue: the CPU has no queues");
}

enum partita_status partita_filter_update_sized(struct partita_filter *filter, const void *taps,
                                                const void *bias, const struct partita_call *call,
                                                size_t call_bytes)
{
    struct partita_call known;
    const struct partita_plan *plan = filter ? filter->plan : NULL;
    if (!arguments_given(log_of(plan), filter, taps)) return PARTITA_ERR_ARG;
    if (!sized_read(&known, sizeof known, call, call_bytes, &plan->log, "call"))
        return PARTITA_ERR_UNSUPPORTED;
    const enum partita_status status = check_update(filter, bias, &known);
    if (status != PARTITA_OK) return status;
    const struct shape *shape = &plan->shape;
    const size_t alignment = shape_alignment(shape);
    const size_t forward = partita_plan_workspace(plan, PARTITA_FORWARD),
                 data = partita_plan_workspace(plan, PARTITA_BACKWARD_DATA);
    if (!arrays_usable(
            plan->log,
            {"call.workspace", known.workspace, size_max(forward, data), MEM_ALIGN, true},
            {"taps", taps, partita_plan_taps_count(plan) * shape->tap_bytes, alignment, false},
            {"bias", bias, shape->out_channels * shape->sample_bytes, alignment, false}))
        return PARTITA_ERR_ARG;
    const struct operands operands = {.from = {taps, bias}, .queue = known.queue};
    return plan->device->filter_update(filter, &operands, known.workspace);
}

void partita_filter_destroy(struct partita_filter *filter)
{
    filter_destroy(filter);
}
