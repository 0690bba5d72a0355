// SPDX-License-Identifier: MIT
// The one-call helpers: a slice of a full convolution or correlation is a bounded problem with its
// own padding.
#include "bounded.h"
#include "core/filter.h"
#include "core/slice.h"

size_t partita_slice_size(enum partita_op op, size_t n, size_t m, const struct partita_slice *slice)
{
    return slice_resolve(op, n, m, slice).size;
}

enum partita_status partita_forward_once(const struct partita_plan *plan, void *y, const void *x,
                                         const void *taps)
{
    struct partita_filter *filter = NULL;
    if (!plan || !y || !x || !taps) return PARTITA_ERR_ARG;
    if (plan->shape.stream) return PARTITA_ERR_STATE;
    if (!plan->engine) return PARTITA_ERR_UNSUPPORTED;
    struct operands operands = {.to = y, .from = {x}};
    if (plan->choice.from_taps && !plan->shape.relu) {
        operands.from[1] = taps;
        operands.from_taps = true;
        return bounded_run(plan, plan, NULL, &operands, NULL);
    }
    enum partita_status status = filter_create(plan, taps, &filter);
    if (status == PARTITA_OK) status = bounded_run(plan, plan, filter, &operands, NULL);
    filter_destroy(filter);
    return status;
}

enum partita_status partita_slice_problem(enum partita_op op, enum partita_type type, size_t n,
                                          size_t m, const struct partita_slice *slice,
                                          struct partita_problem *ret_problem)
{
    const struct range range = slice_resolve(op, n, m, slice);
    if (!ret_problem || range.size == 0) return PARTITA_ERR_ARG;
    *ret_problem = (struct partita_problem){
        .signal = type,
        .taps = type,
        .op = op,
        .kernel = {m},
        .size = {n},
        .pad_begin = {(ptrdiff_t)m - 1 - range.first},
        .pad_end = {range.first + (ptrdiff_t)range.size - (ptrdiff_t)n},
    };
    return PARTITA_OK;
}

// y = the problem's result for x and h, whose making had `status`.
static enum partita_status run_problem(enum partita_status status,
                                       const struct partita_problem *problem, void *y,
                                       const void *x, const void *h)
{
    struct partita_plan *plan = NULL;
    const struct partita_options options = {.directions = PARTITA_FORWARD};
    if (!y || !x || !h) return PARTITA_ERR_ARG;
    if (status == PARTITA_OK) status = partita_plan_create(problem, &options, &plan);
    if (status == PARTITA_OK) status = partita_forward_once(plan, y, x, h);
    partita_plan_destroy(plan);
    return status;
}

enum partita_status partita_convolve(enum partita_type type, void *y, const void *x, size_t n,
                                     const void *h, size_t m, const struct partita_slice *slice)
{
    struct partita_problem problem;
    return run_problem(partita_slice_problem(PARTITA_CONVOLVE, type, n, m, slice, &problem),
                       &problem, y, x, h);
}

enum partita_status partita_correlate(enum partita_type type, void *y, const void *x, size_t n,
                                      const void *h, size_t m, const struct partita_slice *slice)
{
    struct partita_problem problem;
    return run_problem(partita_slice_problem(PARTITA_CORRELATE, type, n, m, slice, &problem),
                       &problem, y, x, h);
}
