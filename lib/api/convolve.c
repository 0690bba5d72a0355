// SPDX-License-Identifier: MIT
// The one-call helpers: a slice of a full convolution or correlation is a bounded problem with its
// own padding.
#include <string.h>

#include "base/thread.h"
#include "core/slice.h"
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
    if (!ret_problem || range.size == 0) return PARTITA_ERR_ARG;
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

// Signal, taps and result of a one-shot call.
struct one_shot {
    enum partita_type type;
    void *y;
    const void *x, *h;
    size_t n, m;
    const struct partita_slice *slice;
};

// Whether no option requires a plan.
static bool one_shot_unplanned(const struct partita_options *options)
{
    return (!options->device || !strcmp(options->device, "cpu")) &&
           (!options->engine || !strcmp(options->engine, "cpu/direct")) &&
           options->effort == PARTITA_ESTIMATE && options->threads >= 0 &&
           options->threads <= MAX_THREADS && !options->executor.run && options->sample_rate == 0 &&
           !options->directions && !options->filter_uses && !options->parts.taps &&
           !options->parts.signal && !options->parts.in_time && options->error_budget == 0 &&
           !options->error_reach && !options->wisdom &&
           !options->allocator.allocate == !options->allocator.release;
}

static enum partita_status one_shot_run(enum partita_op op, const struct one_shot *call,
                                        const struct partita_options *options, size_t options_bytes)
{
    const struct small_signal small = {op,
                                       call->type,
                                       call->x,
                                       call->h,
                                       call->n,
                                       call->m,
                                       slice_resolve(op, call->n, call->m, call->slice)};
    struct partita_options own;
    if (!options_read(&own, options, options_bytes)) return PARTITA_ERR_UNSUPPORTED;
    if (call->y && call->x && call->h && small.range.size && one_shot_unplanned(&own) &&
        direct_small(call->y, &small))
        return PARTITA_OK;
    struct partita_problem problem;
    struct partita_plan *plan = NULL;
    enum partita_status status =
        partita_slice_problem(op, call->type, call->n, call->m, call->slice, &problem);
    if (own.directions || own.filter_uses) {
        log_line(&own.log, "options.directions = %u, filter_uses = %u: of plans only",
                 own.directions, own.filter_uses);
        return PARTITA_ERR_ARG;
    }
    if (status != PARTITA_OK || !call->y || !call->x || !call->h) {
        log_line(&own.log, "%s: an array is NULL, or the slice of %zu samples with %zu is empty",
                 op == PARTITA_CONVOLVE ? "partita_convolve" : "partita_correlate", call->n,
                 call->m);
        return PARTITA_ERR_ARG;
    }
    own.directions = PARTITA_FORWARD;
    status = partita_plan_create(&problem, &own, &plan);
    if (status == PARTITA_OK)
        status =
            partita_forward(plan, NULL, call->y, call->x, &(struct partita_call){.taps = call->h});
    partita_plan_destroy(plan);
    return status;
}

enum partita_status partita_convolve_sized(enum partita_type type, void *y, const void *x, size_t n,
                                           const void *h, size_t m,
                                           const struct partita_slice *slice,
                                           const struct partita_options *options,
                                           size_t options_bytes)
{
    const struct one_shot call = {type, y, x, h, n, m, slice};
    return one_shot_run(PARTITA_CONVOLVE, &call, options, options_bytes);
}

enum partita_status partita_correlate_sized(enum partita_type type, void *y, const void *x,
                                            size_t n, const void *h, size_t m,
                                            const struct partita_slice *slice,
                                            const struct partita_options *options,
                                            size_t options_bytes)
{
    const struct one_shot call = {type, y, x, h, n, m, slice};
    return one_shot_run(PARTITA_CORRELATE, &call, options, options_bytes);
}
