// SPDX-License-Identifier: MIT
// Public functions of streams whose filter is a weighted sum of filters.
#include <math.h>

#include "core/arguments.h"
#include "cpu/partitioned/morph.h"
#include "stream/stream.h"

static bool weights_are_finite(const double *weights, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!isfinite(weights[k])) return false;
    return true;
}

// Logs one line and returns why the filters cannot be the basis of a stream, or PARTITA_OK.
static enum partita_status check_basis(const struct partita_plan *plan,
                                       const struct partita_filter *const *filters, size_t n,
                                       const double *weights)
{
    const struct partita_log *log = &plan->log;
    if (n < 1 || n > MORPH_TERMS)
        return log_error(log, PARTITA_ERR_ARG, "n_filters = %zu: from 1 to %d", n, MORPH_TERMS);
    for (size_t k = 0; k < n; k++)
        if (!filters[k] || filters[k]->plan != plan)
            return log_error(log, PARTITA_ERR_ARG, "filters[%zu]: %s", k,
                             filters[k] ? "of another plan" : "NULL");
    if (!weights_are_finite(weights, n))
        return log_error(log, PARTITA_ERR_ARG, "weights: not all of them are finite");
    if (!plan->shape.stream)
        return log_error(log, PARTITA_ERR_STATE, "plan: of a bounded problem, not of streams");
    if (!morph_is_served(plan))
        return log_error(log, PARTITA_ERR_UNSUPPORTED,
                         "%s cannot morph: set options.engine to \"cpu/partitioned\"",
                         plan->engine->name);
    const struct partition_layout *layout = &partitioned_of(plan)->layout;
    for (size_t i = 0; i < layout->n_segments; i++)
        if (layout->segment[i].i16)
            return log_error(
                log, PARTITA_ERR_UNSUPPORTED,
                "spectra in 16 bits cannot morph: set options.error_budget below 1e-4");
    return PARTITA_OK;
}

enum partita_status partita_stream_open_morph(const struct partita_plan *plan,
                                              const struct partita_filter *const *filters,
                                              size_t n_filters, const double *weights,
                                              struct partita_stream **ret_stream)
{
    if (!arguments_given(log_of(plan), plan, filters, weights, ret_stream)) return PARTITA_ERR_ARG;
    enum partita_status status = check_basis(plan, filters, n_filters, weights);
    struct partita_stream *stream = NULL;
    if (status == PARTITA_OK) status = stream_open(plan, filters[0], &stream);
    if (status == PARTITA_OK) status = morph_open(stream, filters, n_filters, weights);
    if (status == PARTITA_OK) *ret_stream = stream;
    else stream_close(stream);
    return status;
}

enum partita_status partita_stream_morph(struct partita_stream *stream, const double *weights,
                                         size_t frames)
{
    if (!stream || !weights) return PARTITA_ERR_ARG;
    struct morph *morph = morph_of(stream);
    if (!morph) return PARTITA_ERR_UNSUPPORTED;
    if (!weights_are_finite(weights, morph->n)) return PARTITA_ERR_ARG;
    morph_post(morph, weights, frames);
    return PARTITA_OK;
}

size_t partita_stream_morph_lag(const struct partita_stream *stream, size_t tap)
{
    return morph_of(stream) ? morph_lag(stream, tap) : 0;
}
