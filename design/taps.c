// SPDX-License-Identifier: MIT
// Taps by the method of the design: their number, and minimum phase after the method.
#include <math.h>

#include "base/sizes.h"
#include "design.h"

// The level of |response|^2 + floor^2 below the ripples of the stop bands, as they are.
static enum partita_status make_minimum_phase(const struct design_spec *spec, double *taps,
                                              size_t n)
{
    struct partita_design_result linear;
    const enum partita_status status = design_measure(spec, taps, n, &linear);
    if (status) return status;
    const double attenuation =
        isfinite(linear.attenuation) ? linear.attenuation : spec->attenuation;
    const double stop = design_largest_gain(spec) * pow(10, -attenuation / 20);
    return design_minimum_phase(taps, n, DESIGN_FLOOR * stop, &spec->allocator);
}

enum partita_status design_fill(const struct design_spec *spec, double *taps, size_t n)
{
    double deviation;
    const enum partita_status status = spec->method == PARTITA_DESIGN_EQUIRIPPLE
                                           ? design_equiripple(spec, taps, n, &deviation)
                                           : design_window(spec, taps, n);
    if (status || !spec->minimum_phase) return status;
    return make_minimum_phase(spec, taps, n);
}

// A search for a number of taps. The linear phase decides; minimum phase has the same magnitude.
struct search {
    const struct design_spec *spec;
    double *taps;
    size_t max;
};

// By how many decibels n taps miss the specification; 0 or less if they meet it.
static enum partita_status try_count(const struct search *search, size_t n, double *ret_miss)
{
    const struct design_spec *spec = search->spec;
    if (spec->method == PARTITA_DESIGN_EQUIRIPPLE) {
        double deviation = INFINITY;
        const enum partita_status status = design_equiripple(spec, NULL, n, &deviation);
        *ret_miss = 20 * log10(deviation);
        return status;
    }
    struct partita_design_result result = {0};
    enum partita_status status = design_window(spec, search->taps, n);
    if (status == PARTITA_OK) status = design_measure(spec, search->taps, n, &result);
    const double stop = -20 * log10(spec->stop_deviation);
    const double pass = -20 * log10(1 - spec->pass_deviation);
    *ret_miss = fmax(stop - result.attenuation, 20 * log10(result.ripple / pass));
    return status;
}

static enum partita_status too_many(const struct search *search)
{
    log_line(&search->spec->log,
             "design.width = %g: needs more than %zu taps; use a larger width, less attenuation or "
             "more ripple",
             search->spec->width * search->spec->rate, search->max);
    return PARTITA_ERR_UNSUPPORTED;
}

// The smallest odd number that meets, near `start`. By both of Kaiser's formulas a tap is worth
// about 14.5 dB times the width: by this the search jumps to the number, and bisects if it does not
// find it soon.
static enum partita_status search_count(const struct search *search, size_t start, size_t *ret)
{
    const double per_tap = 14.5 * design_window_width(search->spec);
    const size_t bottom =
        search->spec->method == PARTITA_DESIGN_EQUIRIPPLE ? DESIGN_MIN_EQUIRIPPLE : DESIGN_MIN_TAPS;
    size_t fails = bottom - 2, meets = search->max + 2;
    for (size_t n = start, tries = 0; meets - fails > 2; tries++) {
        double miss;
        const enum partita_status status = try_count(search, n, &miss);
        if (status) return status;
        if (miss <= 0) meets = n;
        else fails = n;
        if (fails == search->max) return too_many(search);
        // At least twice as far as before, as long as all fail.
        const double least = meets > search->max ? ldexp(2, (int)tries) : 2;
        const double shift = fmax(2 * ceil(fabs(miss) / per_tap / 2), least);
        const double next = miss > 0 ? (double)n + shift : (double)n - shift;
        n = (size_t)fmin(fmax(next, (double)fails + 2), (double)meets - 2);
        if (tries > 3 && meets <= search->max) n = fails + (meets - fails) / 4 * 2;
    }
    *ret = meets;
    return PARTITA_OK;
}

enum partita_status design_count(const struct design_spec *spec, size_t *ret_count)
{
    struct search search = {.spec = spec, .max = DESIGN_MAX_TAPS - 1};
    const bool equiripple = spec->method == PARTITA_DESIGN_EQUIRIPPLE;
    const bool formula = spec->kind >= PARTITA_DESIGN_RAISED_COSINE; // and tables
    *ret_count = spec->taps;
    if (spec->taps) return PARTITA_OK;
    if (spec->minimum_phase) search.max = DESIGN_MAX_MINIMUM_PHASE - 1;
    if (equiripple) search.max = DESIGN_MAX_EQUIRIPPLE;
    const double width = design_window_width(spec);
    const double estimate = equiripple
                                ? design_equiripple_count(spec, width)
                                : design_kaiser_count(design_window_attenuation(spec), width);
    if (estimate > (double)search.max) return too_many(&search);
    const size_t start = size_max((size_t)ceil(estimate), DESIGN_MIN_EQUIRIPPLE) | 1; // odd
    *ret_count = start;
    if (formula) return PARTITA_OK;
    search.taps = mem_reserve(&spec->allocator, search.max * sizeof *search.taps);
    if (!search.taps) return PARTITA_ERR_NOMEM;
    const enum partita_status status = search_count(&search, start, ret_count);
    mem_release(&spec->allocator, search.taps);
    return status;
}
