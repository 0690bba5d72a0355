// SPDX-License-Identifier: MIT
// Checks the caller's fields and responses.
#include <math.h>

#include "api/sized.h"
#include "correction.h"
#include "design.h"

enum { MAX_POSITIONS = 4096, MAX_FRAMES = 1 << 22, PERIODS = 2, JUDGED_PERIODS = 8 };
#define MAX_SAMPLE 1e100 // the sum of squares is finite, and not 0 for 1 / MAX_SAMPLE

// Fills in the default of a field, 0 for none, or checks its range.
static bool resolve(const struct partita_log *log, const char *name, double *value,
                    double otherwise, double min, double max)
{
    if (*value == 0) *value = otherwise;
    if (*value == 0 || (*value >= min && *value <= max)) return true;
    return log_line(log, "correction.%s = %g: must be from %g to %g", name, *value, min, max);
}

static bool resolve_range(struct partita_correction *c)
{
    const struct partita_log *log = &c->log;
    const double lowest = c->rate * PERIODS / DESIGN_MAX_TAPS;
    if (!(c->rate > 0 && isfinite(c->rate)))
        return log_line(log, "correction.rate = %g: must be above 0", c->rate);
    if (!c->positions) c->positions = 1;
    if (!c->frames || c->frames > MAX_FRAMES || c->positions > MAX_POSITIONS)
        return log_line(log, "correction.frames = %zu, positions = %zu: must be from 1 to %d, %d",
                        c->frames, c->positions, MAX_FRAMES, MAX_POSITIONS);
    if ((unsigned)c->mean > PARTITA_MEAN_VECTOR || (unsigned)c->phase > PARTITA_CORRECTION_MIXED)
        return log_line(log, "correction.mean = %d, phase = %d: there is no such mean or phase",
                        (int)c->mean, (int)c->phase);
    if (!c->allocator.allocate != !c->allocator.release)
        return log_line(log, "correction.allocator: needs both functions or none");
    return resolve(log, "high", &c->high, fmin(20000, 0.45 * c->rate), lowest, c->rate / 2) &&
           resolve(log, "low", &c->low, 20, lowest, 0.8 * c->high) &&
           resolve(log, "edge", &c->edge, 0.5, 0.01, 4) &&
           resolve(log, "window", &c->window, 0, 1, 10000) &&
           resolve(log, "smoothing", &c->smoothing, 0, 1, 1000);
}

static bool check_target(const struct partita_correction *c)
{
    const struct partita_design_point *target = c->target;
    const size_t n = c->target_count;
    if (!target && !n) return true;
    if (!design_check_points(&c->log, "correction.target", target, n, 1e9)) return false;
    if (n == 1 || (target[0].frequency < c->high && target[n - 1].frequency > c->low)) return true;
    return log_line(&c->log,
                    "correction.target: has points from %g to %g, outside of the range from %g to "
                    "%g; all are in the unit of correction.rate",
                    target[0].frequency, target[n - 1].frequency, c->low, c->high);
}

// Fields of filters.
static bool resolve_filter(struct partita_correction *c)
{
    const struct partita_log *log = &c->log;
    const double least = ceil(PERIODS * c->rate / c->low);
    const double quarter = (double)c->taps / c->rate / 4;
    if ((double)c->taps < least || c->taps > DESIGN_MAX_TAPS)
        return log_line(log,
                        "correction.taps = %zu: must be from %.0f, %d periods of correction.low, "
                        "to %d",
                        c->taps, least, PERIODS, DESIGN_MAX_TAPS);
    if (!resolve(log, "smoothing", &c->smoothing, 12, 1, 1000) ||
        !resolve(log, "boost", &c->boost, 6, 0.01, 60) ||
        !resolve(log, "attenuation", &c->attenuation, 0, 0.01, 120))
        return false;
    if (c->phase == PARTITA_CORRECTION_MIXED)
        return resolve(log, "phase_limit", &c->phase_limit, fmin(fmax(300, c->low), c->high),
                       c->low, c->high) &&
               resolve(log, "pre_time", &c->pre_time, fmin(0.02, quarter), CORRECTION_GUARD,
                       quarter) &&
               resolve(log, "pre_level", &c->pre_level, 30, 1, 200);
    if (c->phase_limit == 0 && c->pre_time == 0 && c->pre_level == 0) return true;
    return log_line(log, "correction.phase_limit, pre_time, pre_level: must be 0, as only mixed "
                         "phase has them");
}

static bool check_response(const struct partita_correction *c, const double *x, size_t position)
{
    const double period = c->rate / c->low, peak = (double)correction_peak(x, c->frames);
    double all = 0, near = 0;
    for (size_t i = 0; i < c->frames; i++) {
        if (!(fabs(x[i]) <= MAX_SAMPLE))
            return log_line(&c->log, "responses[%zu][%zu] = %g: must be finite, at most %g",
                            position, i, x[i], MAX_SAMPLE);
        all += x[i] * x[i];
        if (fabs((double)i - peak) < period) near += x[i] * x[i];
    }
    if (!(all > 1 / MAX_SAMPLE / MAX_SAMPLE))
        return log_line(&c->log, "responses[%zu]: is silent", position);
    // Twice as dense as in the whole.
    const double periods = (double)c->frames / period;
    if (periods < JUDGED_PERIODS || near * periods >= 4 * all) return true;
    return log_line(&c->log,
                    "responses[%zu]: has no peak; partita_deconvolve makes a response of a "
                    "recorded sweep",
                    position);
}

enum partita_status correction_read(struct correction *c, const struct partita_correction *given,
                                    size_t given_bytes, const double *responses, bool filter)
{
    struct partita_correction *known = &c->given;
    const struct partita_log log = log_given(given);
    *c = (struct correction){.n = 0};
    if (!sized_read(known, sizeof *known, given, given_bytes, &log, "correction"))
        return PARTITA_ERR_UNSUPPORTED;
    known->log = log;
    if (!resolve_range(known) || !check_target(known)) return PARTITA_ERR_ARG;
    if (filter && !resolve_filter(known)) return PARTITA_ERR_ARG;
    for (size_t i = 0; i < known->positions; i++)
        if (!check_response(known, responses + i * known->frames, i)) return PARTITA_ERR_ARG;
    return PARTITA_OK;
}
