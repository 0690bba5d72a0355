// SPDX-License-Identifier: MIT
// The public functions of partita/design.h.
#include "design/design.h"

#include <math.h>
#include <string.h>

#include "core/arguments.h"
#include "sized.h"

// Reads the caller's design; n as in design_resolve.
static enum partita_status design_read(struct design_spec *ret, const struct partita_design *design,
                                       size_t design_bytes, size_t n)
{
    struct partita_design known;
    const struct partita_log log = log_given(design);
    if (!sized_read(&known, sizeof known, design, design_bytes, &log, "design"))
        return PARTITA_ERR_UNSUPPORTED;
    return design_resolve(ret, &known, n);
}

enum partita_status partita_design_taps_count_sized(const struct partita_design *design,
                                                    size_t design_bytes, size_t *ret_count)
{
    struct design_spec spec;
    size_t count;
    if (!arguments_given(log_given(design), design, ret_count)) return PARTITA_ERR_ARG;
    enum partita_status status = design_read(&spec, design, design_bytes, 0);
    if (status == PARTITA_OK) status = design_count(&spec, &count);
    if (status == PARTITA_OK) *ret_count = count;
    return status;
}

enum partita_status partita_design_taps_sized(const struct partita_design *design,
                                              size_t design_bytes, double *taps, size_t n)
{
    struct design_spec spec;
    if (!arguments_given(log_given(design), design, taps)) return PARTITA_ERR_ARG;
    enum partita_status status = design_read(&spec, design, design_bytes, n);
    if (status) return status;
    if (!n) return log_error(&spec.log, PARTITA_ERR_ARG, "n = 0: taps holds at least 1");
    double *made =
        mem_reserve(&spec.allocator, n * sizeof *made); // taps keep their values if it fails
    if (!made) return PARTITA_ERR_NOMEM;
    status = design_fill(&spec, made, n);
    if (status == PARTITA_OK) memcpy(taps, made, n * sizeof *made);
    mem_release(&spec.allocator, made);
    return status;
}

static enum partita_status check_taps(const struct design_spec *spec, const double *taps, size_t n)
{
    if (!n || n > DESIGN_MAX_TAPS)
        return log_error(&spec->log, PARTITA_ERR_ARG, "n = %zu: must be from 1 to %d", n,
                         DESIGN_MAX_TAPS);
    for (size_t i = 0; i < n; i++) {
        if (isfinite(taps[i])) continue;
        return log_error(&spec->log, PARTITA_ERR_ARG, "taps[%zu] = %g: must be finite", i, taps[i]);
    }
    return PARTITA_OK;
}

enum partita_status partita_design_measure_sized(const struct partita_design *design,
                                                 size_t design_bytes, const double *taps, size_t n,
                                                 struct partita_design_result *ret_result,
                                                 size_t result_bytes)
{
    struct design_spec spec;
    struct partita_design_result result;
    if (!arguments_given(log_given(design), design, taps, ret_result)) return PARTITA_ERR_ARG;
    enum partita_status status = design_read(&spec, design, design_bytes, 0);
    if (status == PARTITA_OK) status = check_taps(&spec, taps, n);
    if (status == PARTITA_OK) status = design_measure(&spec, taps, n, &result);
    if (status == PARTITA_OK) sized_write(ret_result, result_bytes, &result, sizeof result);
    return status;
}
