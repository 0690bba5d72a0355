// SPDX-License-Identifier: MIT
// Checks a design and fills in missing fields.
#include <math.h>

#include "design.h"

enum { MIN_ATTENUATION = 10, MAX_ATTENUATION = 200, MAX_RIPPLE = 6, MAX_DECIBELS = 300 };
#define MIN_RIPPLE 1e-9 // dB; far below it 1 minus the smallest gain is 0 in double precision
#define DEFAULT_ATTENUATION 80.0
#define PULSE_ATTENUATION 60.0 // of raised cosines
#define DEFAULT_RIPPLE 0.1

// The fields of a kind.
static const struct kind {
    int cutoffs;
    bool stops;       // has a stop band
    bool equiripple;  // by that method too
    bool minimum;     // with minimum phase too
    bool even;        // with an even number of taps too
    bool pulse;       // raised cosine
    const char *name; // for messages
} kinds[] = {
    [PARTITA_DESIGN_LOW_PASS] = {1, true, true, true, true, false, "a low pass"},
    [PARTITA_DESIGN_HIGH_PASS] = {1, true, true, true, false, false, "a high pass"},
    [PARTITA_DESIGN_BAND_PASS] = {2, true, true, true, true, false, "a band pass"},
    [PARTITA_DESIGN_BAND_STOP] = {2, true, true, true, false, false, "a band stop"},
    [PARTITA_DESIGN_HILBERT] = {0, false, true, false, false, false, "a Hilbert transformer"},
    [PARTITA_DESIGN_DIFFERENTIATOR] = {1, true, true, false, false, false, "a differentiator"},
    [PARTITA_DESIGN_RAISED_COSINE] = {1, true, false, false, true, true, "a raised cosine"},
    [PARTITA_DESIGN_ROOT_RAISED_COSINE] = {1, true, false, false, true, true,
                                           "a root raised cosine"},
    [PARTITA_DESIGN_TABLE] = {0, false, false, true, false, false, "a table"},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

// A design under check.
struct draft {
    struct design_spec *spec;
    const struct partita_design *given;
    const struct kind *kind;
};

static bool resolve_choices(const struct draft *draft)
{
    const struct partita_design *d = draft->given;
    const struct partita_log *log = &draft->spec->log;
    const char *name = draft->kind->name;
    if ((unsigned)d->method > PARTITA_DESIGN_EQUIRIPPLE)
        return log_line(log, "design.method = %d: there is no such method", (int)d->method);
    if (d->method == PARTITA_DESIGN_EQUIRIPPLE && !draft->kind->equiripple)
        return log_line(log, "design.method: %s is made by Kaiser's window only, not equiripple",
                        name);
    if (d->minimum_phase && !draft->kind->minimum)
        return log_line(log, "design.minimum_phase: %s has linear phase only", name);
    for (size_t i = 0; i < sizeof d->reserved; i++)
        if (d->reserved[i]) return log_line(log, "design.reserved must be false");
    if (!(d->rate >= 0 && isfinite(d->rate)))
        return log_line(log, "design.rate = %g: must be above 0", d->rate);
    return true;
}

// In the unit of the design's rate.
static bool resolve_cutoffs(const struct draft *draft)
{
    struct design_spec *spec = draft->spec;
    const double *cutoff = draft->given->cutoff;
    for (int i = 0; i < 2; i++) {
        if (i >= draft->kind->cutoffs) {
            if (cutoff[i] == 0) continue;
            return log_line(&spec->log, "design.cutoff[%d] = %g: %s has %s", i, cutoff[i],
                            draft->kind->name, i ? "one cutoff" : "no cutoff");
        }
        if (!(cutoff[i] > 0 && cutoff[i] < spec->rate / 2))
            return log_line(
                &spec->log,
                "design.cutoff[%d] = %g: must be above 0 and below %g, half of the rate", i,
                cutoff[i], spec->rate / 2);
        spec->cutoff[i] = cutoff[i] / spec->rate;
    }
    if (draft->kind->cutoffs < 2 || cutoff[1] > cutoff[0]) return true;
    return log_line(&spec->log, "design.cutoff[1] = %g: must be above design.cutoff[0] = %g",
                    cutoff[1], cutoff[0]);
}

bool design_check_points(const struct partita_log *log, const char *field,
                         const struct partita_design_point *points, size_t n, double max)
{
    if (!points || !n) return log_line(log, "%s: has no points", field);
    for (size_t i = 0; i < n; i++) {
        const double f = points[i].frequency, before = i ? points[i - 1].frequency : 0;
        if (!(f > before && f <= max))
            return log_line(log, "%s[%zu].frequency = %g: must be above %g and at most %g", field,
                            i, f, before, max);
        if (!(fabs(points[i].decibels) <= MAX_DECIBELS))
            return log_line(log, "%s[%zu].decibels = %g: must be from %d to %d", field, i,
                            points[i].decibels, -MAX_DECIBELS, MAX_DECIBELS);
    }
    return true;
}

static bool resolve_table(const struct draft *draft)
{
    struct design_spec *spec = draft->spec;
    const size_t n = spec->table_count = draft->given->table_count;
    spec->table = draft->given->table;
    if (spec->kind == PARTITA_DESIGN_TABLE)
        return design_check_points(&spec->log, "design.table", spec->table, n, spec->rate / 2);
    if (!spec->table && !n) return true;
    return log_line(&spec->log, "design.table: %s has no table", draft->kind->name);
}

// The number of taps, that of the design or, if it has none, that of the array.
static bool resolve_taps(const struct draft *draft, size_t n)
{
    struct design_spec *spec = draft->spec;
    const bool equiripple = spec->method == PARTITA_DESIGN_EQUIRIPPLE;
    const size_t taps = draft->given->taps ? draft->given->taps : n;
    size_t max = equiripple ? DESIGN_MAX_EQUIRIPPLE : DESIGN_MAX_TAPS;
    const size_t least = equiripple ? DESIGN_MIN_EQUIRIPPLE : DESIGN_MIN_TAPS;
    if (spec->minimum_phase && max > DESIGN_MAX_MINIMUM_PHASE) max = DESIGN_MAX_MINIMUM_PHASE;
    if (n && n != taps)
        return log_line(&spec->log, "n = %zu: differs from design.taps = %zu", n, taps);
    if (taps && (taps < least || taps > max)) {
        const char *where = equiripple ? " for equiripple filters" : "";
        if (max == DESIGN_MAX_MINIMUM_PHASE) where = " with minimum phase";
        return log_line(&spec->log, "design.taps = %zu: must be from %zu to %zu%s", taps, least,
                        max, where);
    }
    if (taps && taps % 2 == 0 && !draft->kind->even)
        return log_line(&spec->log, "design.taps = %zu: must be odd for %s; try %zu", taps,
                        draft->kind->name, taps + 1);
    spec->taps = taps;
    return true;
}

// The allowed deviations, as far as they are given.
static bool resolve_deviations(const struct draft *draft)
{
    struct design_spec *spec = draft->spec;
    const struct partita_design *d = draft->given;
    if (!(d->attenuation == 0 ||
          (d->attenuation >= MIN_ATTENUATION && d->attenuation <= MAX_ATTENUATION)))
        return log_line(&spec->log, "design.attenuation = %g: must be from %d to %d dB",
                        d->attenuation, MIN_ATTENUATION, MAX_ATTENUATION);
    if (!(d->ripple == 0 || (d->ripple >= MIN_RIPPLE && d->ripple <= MAX_RIPPLE)))
        return log_line(&spec->log, "design.ripple = %g: must be from %g to %d dB", d->ripple,
                        MIN_RIPPLE, MAX_RIPPLE);
    if (d->ripple > 0 && (draft->kind->pulse || spec->kind == PARTITA_DESIGN_TABLE))
        return log_line(&spec->log, "design.ripple = %g: %s has none; set design.attenuation",
                        d->ripple, draft->kind->name);
    const bool kaiser = spec->method == PARTITA_DESIGN_KAISER;
    spec->attenuation = d->attenuation;
    if (d->attenuation == 0 && kaiser && d->taps && d->width > 0 && !draft->kind->pulse)
        spec->attenuation =
            fmin(fmax(design_kaiser_attenuation(design_window_width(spec), (double)d->taps),
                      MIN_ATTENUATION),
                 MAX_ATTENUATION);
    else if (d->attenuation == 0)
        spec->attenuation = draft->kind->pulse ? PULSE_ATTENUATION : DEFAULT_ATTENUATION;
    // Half of a Hilbert transformer's deviation is its gain for negative frequencies.
    const double loss = spec->minimum_phase && !d->taps ? DESIGN_FLOOR_LOSS : 0;
    const double stop = pow(10, -(spec->attenuation + loss) / 20);
    const bool hilbert = spec->kind == PARTITA_DESIGN_HILBERT;
    const double follows = hilbert ? 2 * stop : stop;
    const double ripple = d->ripple > 0 ? d->ripple : DEFAULT_RIPPLE;
    spec->pass_deviation = 1 - pow(10, -ripple / 20);
    if (d->ripple == 0 && (kaiser || hilbert)) spec->pass_deviation = follows;
    if (hilbert) spec->pass_deviation = fmin(spec->pass_deviation, follows);
    spec->stop_deviation = hilbert ? spec->pass_deviation / 2 : stop;
    if (draft->kind->pulse || (d->taps && d->width > 0 && d->attenuation > 0))
        spec->window = design_window_attenuation(spec);
    // A rectangle: others let the symbols of a pair of filters interfere more.
    if (spec->kind == PARTITA_DESIGN_ROOT_RAISED_COSINE && d->attenuation == 0) spec->window = 1;
    return true;
}

// The width of the transitions, given or as taps and deviations allow.
static bool resolve_width(const struct draft *draft)
{
    struct design_spec *spec = draft->spec;
    const struct partita_design *d = draft->given;
    if (!(d->width >= 0 && d->width < spec->rate / 2))
        return log_line(&spec->log,
                        "design.width = %g: must be above 0 and below %g, half of the rate",
                        d->width, spec->rate / 2);
    if (d->width > 0) return true;
    if (!d->taps || draft->kind->pulse)
        return log_line(&spec->log, "design.width: must be set%s",
                        draft->kind->pulse
                            ? " for raised cosines: it is twice the cutoff times the roll-off"
                            : " if design.taps is not");
    const double count = (double)spec->taps;
    if (spec->method == PARTITA_DESIGN_KAISER)
        spec->width = design_kaiser_width(design_window_attenuation(spec), count);
    else spec->width = design_equiripple_width(spec, count);
    if (spec->kind == PARTITA_DESIGN_HILBERT) spec->width /= 2;
    return true;
}

static void add_band(struct design_spec *spec, double begin, double end, bool pass)
{
    spec->bands[spec->n_bands++] = (struct design_band){begin, end, pass};
}

static void lay_out_bands(struct design_spec *spec)
{
    const double half = spec->width / 2, *c = spec->cutoff;
    const bool passes_0 =
        spec->kind != PARTITA_DESIGN_HIGH_PASS && spec->kind != PARTITA_DESIGN_BAND_PASS;
    switch (spec->kind) {
    case PARTITA_DESIGN_LOW_PASS:
    case PARTITA_DESIGN_HIGH_PASS:
    case PARTITA_DESIGN_DIFFERENTIATOR:
        add_band(spec, 0, c[0] - half, passes_0);
        add_band(spec, c[0] + half, 0.5, !passes_0);
        break;
    case PARTITA_DESIGN_BAND_PASS:
    case PARTITA_DESIGN_BAND_STOP:
        add_band(spec, 0, c[0] - half, passes_0);
        add_band(spec, c[0] + half, c[1] - half, !passes_0);
        add_band(spec, c[1] + half, 0.5, passes_0);
        break;
    case PARTITA_DESIGN_HILBERT:
        add_band(spec, spec->width, 0.5 - spec->width, true);
        break;
    case PARTITA_DESIGN_RAISED_COSINE:
    case PARTITA_DESIGN_ROOT_RAISED_COSINE:
        add_band(spec, 0, c[0], true);
        if (c[0] + spec->width < 0.5) add_band(spec, c[0] + spec->width, 0.5, false);
        break;
    case PARTITA_DESIGN_TABLE:
        add_band(spec, 0, 0.5, true);
        break;
    }
}

// The transitions must leave room for bands on both sides.
static bool check_width(const struct draft *draft)
{
    const struct design_spec *spec = draft->spec;
    const double *c = spec->cutoff;
    double max = 0.5;
    if (spec->kind == PARTITA_DESIGN_HILBERT) max = 0.25;
    else if (draft->kind->cutoffs) max = 2 * fmin(c[0], 0.5 - c[draft->kind->cutoffs - 1]);
    if (draft->kind->cutoffs == 2) max = fmin(max, c[1] - c[0]);
    // Raised cosines may have a roll-off of 1.
    if (spec->width < max || (draft->kind->pulse && spec->width <= max * (1 + 1e-12))) return true;
    if (draft->given->width > 0)
        return log_line(
            &spec->log, "design.width = %g: must be %s %g, with a band on each side of it",
            draft->given->width, draft->kind->pulse ? "at most" : "below", max * spec->rate);
    return log_line(&spec->log, "design.taps = %zu: too few: transitions %g wide must be below %g",
                    spec->taps, spec->width * spec->rate, max * spec->rate);
}

enum partita_status design_resolve(struct design_spec *ret, const struct partita_design *design,
                                   size_t n)
{
    *ret = (struct design_spec){
        .kind = design->kind,
        .method = design->method,
        .rate = design->rate != 0 ? design->rate : 1,
        .minimum_phase = design->minimum_phase,
        .log = log_given(design),
        .allocator = design->allocator,
    };
    if ((unsigned)design->kind >= N_KINDS)
        return log_error(&ret->log, PARTITA_ERR_ARG, "design.kind = %d: there is no such kind",
                         (int)design->kind);
    ret->width = design->width / ret->rate;
    const struct draft draft = {ret, design, &kinds[design->kind]};
    if (!design->allocator.allocate != !design->allocator.release)
        return log_error(&ret->log, PARTITA_ERR_ARG,
                         "design.allocator: needs both functions or none");
    const bool good = resolve_choices(&draft) && resolve_cutoffs(&draft) && resolve_table(&draft) &&
                      resolve_taps(&draft, n) && resolve_deviations(&draft) &&
                      resolve_width(&draft) && check_width(&draft);
    if (!good) return PARTITA_ERR_ARG;
    lay_out_bands(ret);
    return PARTITA_OK;
}
