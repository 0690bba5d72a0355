// SPDX-License-Identifier: MIT
// The public functions of partita/correction.h, and the mean response of the positions.
#include <float.h>
#include <math.h>
#include <string.h>

#include "api/sized.h"
#include "core/arguments.h"
#include "correction.h"

#define MAX_FACTOR 1e3 // between the magnitudes of the mean power and the vector

// Fills power, vector, peak and arrival.
static enum partita_status add_up(struct correction *c, const double *responses)
{
    const struct partita_correction *given = &c->given;
    const double positions = (double)given->positions;
    double total = 0;
    memset(c->power, 0, 2 * c->count * sizeof *c->power); // and vector, which follows it
    for (size_t i = 0; i < given->positions; i++) {
        const double *response = responses + i * given->frames;
        const size_t peak = correction_peak(response, given->frames);
        if (!i) c->peak = peak;
        correction_forward(c, c->scratch, response, given->frames, peak);
        if (given->window > 0) correction_window(c, c->scratch, given->window);
        for (size_t k = 0; k < c->count; k++) c->filter[k] = c->scratch[k] * conj(c->scratch[k]);
        const double power = correction_range_mean(c, c->filter);
        for (size_t k = 0; k < c->count; k++) {
            c->power[k] += c->filter[k] / (power * positions);
            c->vector[k] += c->scratch[k] / (sqrt(power) * positions);
        }
        c->report.arrival += (double)peak / positions;
        total += power / positions;
    }
    for (size_t k = 0; k < c->count && given->mean == PARTITA_MEAN_VECTOR; k++)
        c->power[k] = c->vector[k] * conj(c->vector[k]);
    const double scale = correction_range_mean(c, c->power); // 1 for the mean of energy
    for (size_t k = 0; k < c->count; k++) c->power[k] *= total / scale;
    if (scale > 0) return PARTITA_OK;
    return log_error(
        &given->log, PARTITA_ERR_ARG,
        "responses: have no power from correction.low = %g to correction.high = %g, or "
        "cancel in the mean of vectors",
        given->low, given->high);
}

static enum partita_status begin(struct correction *c, const struct partita_correction *given,
                                 size_t given_bytes, const double *responses, bool filter)
{
    enum partita_status status = correction_read(c, given, given_bytes, responses, filter);
    if (status == PARTITA_OK) status = correction_open(c, filter);
    if (status) return status;
    status = add_up(c, responses);
    if (status) correction_close(c);
    return status;
}

enum partita_status partita_correction_average_sized(const struct partita_correction *correction,
                                                     size_t correction_bytes,
                                                     const double *responses, double *ret_response)
{
    struct correction c;
    if (!arguments_given(log_given(correction), correction, responses, ret_response))
        return PARTITA_ERR_ARG;
    const enum partita_status status = begin(&c, correction, correction_bytes, responses, false);
    if (status) return status;
    if (c.given.smoothing > 0) {
        correction_smooth(&c, c.power, c.given.smoothing);
        correction_smooth(&c, c.vector, c.given.smoothing);
    }
    // The magnitude by a factor of minimum phase, so that nothing begins before the vector does.
    for (size_t k = 0; k < c.count; k++) {
        const double before = fmax(cabs(c.vector[k]), DBL_MIN);
        c.filter[k] = fmin(sqrt(fmax(creal(c.power[k]), 0)) / before, MAX_FACTOR);
    }
    correction_minimum_phase(&c, c.filter);
    for (size_t k = 0; k < c.count; k++) c.vector[k] *= c.filter[k];
    correction_inverse(&c, c.vector, ret_response, c.given.frames, c.peak);
    correction_close(&c);
    return PARTITA_OK;
}

enum partita_status partita_correction_taps_sized(const struct partita_correction *correction,
                                                  size_t correction_bytes, const double *responses,
                                                  double *taps,
                                                  struct partita_correction_report *ret_report,
                                                  size_t report_bytes)
{
    struct correction c;
    if (!arguments_given(log_given(correction), correction, responses, taps, ret_report))
        return PARTITA_ERR_ARG;
    const enum partita_status status = begin(&c, correction, correction_bytes, responses, true);
    if (status) return status;
    correction_fill(&c, taps);
    sized_write(ret_report, report_bytes, &c.report, sizeof c.report);
    correction_close(&c);
    return PARTITA_OK;
}

const struct partita_design_point *partita_correction_curve(const char *name, size_t *ret_count)
{
    static const struct {
        const char *name;
        size_t count;
        struct partita_design_point points[5];
    } curves[] = {
        {"flat", 1, {{1000, 0}}},
        {"bk", 3, {{400, 0}, {12800, -5}, {20000, -6}}},
        {"harman-room", 5, {{52.5, 6}, {210, 0}, {2500, 0}, {10000, -2.5}, {20000, -3.75}}},
    };
    for (size_t i = 0; name && ret_count && i < sizeof curves / sizeof *curves; i++) {
        if (strcmp(name, curves[i].name)) continue;
        *ret_count = curves[i].count;
        return curves[i].points;
    }
    return NULL;
}
