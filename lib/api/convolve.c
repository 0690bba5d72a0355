// SPDX-License-Identifier: MIT
// The one-call helpers: a slice of a full convolution or correlation is a bounded problem with its
// own padding.
#include <string.h>

#include "base/thread.h"
#include "core/arguments.h"
#include "cpu/direct/small.h"
#include "sized.h"

#include <partita/partita.h>

size_t partita_slice_size(enum partita_op op, size_t n, size_t m, const struct partita_slice *slice)
{
    return slice_resolve(op, n, m, slice).size;
}

enum partita_status partita_slice_problem_sized(enum partita_op op, enum partita_type type,
                                                size_t n, size_t m,
                                                const struct partita_slice *slice,
                                                struct partita_problem *ret_problem,
                                                size_t problem_bytes)
{
    const struct range range = slice_resolve(op, n, m, slice);
    const struct partita_log log = log_default();
    if (!arguments_given(log, ret_problem)) return PARTITA_ERR_ARG;
    if (!range.size) return slice_error(&log, n, m);
    const struct partita_problem problem = {
        .signal = type,
        .taps = type,
        .op = op,
        .kernel = {m},
        .size = {n},
        .pad_begin = {(ptrdiff_t)m - 1 - range.first},
        .pad_end = {range.first + (ptrdiff_t)range.size - (ptrdiff_t)n},
    };
    sized_write(ret_problem, problem_bytes, &problem, sizeof problem);
    return PARTITA_OK;
}

// Whether no option requires a plan.
static bool one_shot_unplanned(const struct partita_options *options)
{
    return (!options->device || !strcmp(options->device, "cpu")) &&
           (!options->engine || !strcmp(options->engine, "cpu/direct")) &&
           options->effort == PARTITA_ESTIMATE && options->threads >= 0 &&
           options->threads <= MAX_THREADS && !options->executor.run && options->sample_rate == 0 &&
           !options->directions && !options->filter_uses && !options->parts.taps &&
           !options->parts.signal && !options->parts.in_time && options->error_budget == 0 &&
           !options->error_reach && !options->zero_mean && !options->wisdom &&
           !options->allocator.allocate == !options->allocator.release;
}

static enum partita_status one_shot_run(const char *function, struct one_shot *call, void *y,
                                        const struct partita_slice *slice,
                                        const struct partita_options *options, size_t options_bytes)
{
    struct partita_options settings;
    if (!options_read(&settings, options, options_bytes)) return PARTITA_ERR_UNSUPPORTED;
    if (!one_shot_resolve(call, function, y, slice, &settings.log)) return PARTITA_ERR_ARG;
    if (one_shot_unplanned(&settings) && direct_small(y, call)) return PARTITA_OK;
    if (settings.directions || settings.filter_uses)
        return log_error(&settings.log, PARTITA_ERR_ARG,
                         "options.directions = %u, filter_uses = %u: of plans only",
                         settings.directions, settings.filter_uses);
    struct partita_problem problem;
    struct partita_plan *plan = NULL;
    enum partita_status status =
        partita_slice_problem(call->op, call->type, call->n, call->m, slice, &problem);
    settings.directions = PARTITA_FORWARD;
    if (status == PARTITA_OK) status = partita_plan_create(&problem, &settings, &plan);
    if (status == PARTITA_OK)
        status = partita_forward(plan, NULL, y, call->x, &(struct partita_call){.taps = call->h});
    partita_plan_destroy(plan);
    return status;
}

enum partita_status partita_convolve_sized(enum partita_type type, void *y, const void *x, size_t n,
                                           const void *h, size_t m,
                                           const struct partita_slice *slice,
                                           const struct partita_options *options,
                                           size_t options_bytes)
{
    struct one_shot call = {PARTITA_CONVOLVE, type, x, h, n, m, {0}};
    return one_shot_run(__func__, &call, y, slice, options, options_bytes);
}

enum partita_status partita_correlate_sized(enum partita_type type, void *y, const void *x,
                                            size_t n, const void *h, size_t m,
                                            const struct partita_slice *slice,
                                            const struct partita_options *options,
                                            size_t options_bytes)
{
    struct one_shot call = {PARTITA_CORRELATE, type, x, h, n, m, {0}};
    return one_shot_run(__func__, &call, y, slice, options, options_bytes);
}
