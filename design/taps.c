// SPDX-License-Identifier: MIT
// What all methods share: wanted gains, the number of taps, minimum phase after the method.
#include <math.h>

#include "base/sizes.h"
#include "design.h"

bool design_is_odd(const struct design_spec *spec)
{
    return spec->kind == PARTITA_DESIGN_HILBERT || spec->kind == PARTITA_DESIGN_DIFFERENTIATOR;
}

// Decibels of the table, linear over the logarithm of the frequency.
static double table_decibels(const struct design_spec *spec, double frequency)
{
    const struct partita_design_point *table = spec->table;
    const double f = frequency * spec->rate;
    size_t first = 0, end = spec->table_count; // table[first].frequency <= f < table[end].frequency
    if (f <= table[0].frequency) return table[0].decibels;
    if (f >= table[end - 1].frequency) return table[end - 1].decibels;
    while (end - first > 1) {
        const size_t middle = first + (end - first) / 2;
        if (table[middle].frequency <= f) first = middle;
        else end = middle;
    }
    const struct partita_design_point *a = &table[first], *b = &table[end];
    const double at = log(f / a->frequency) / log(b->frequency / a->frequency);
    return a->decibels + at * (b->decibels - a->decibels);
}

// 1 in the middle, then half a period of a cosine around the cutoff.
static double raised_cosine_gain(const struct design_spec *spec, double frequency)
{
    const double from = spec->cutoff[0] - spec->width / 2;
    if (frequency <= from) return 1;
    if (frequency >= from + spec->width) return 0;
    return 0.5 + 0.5 * cos(DESIGN_PI * (frequency - from) / spec->width);
}

double design_wanted_gain(const struct design_spec *spec, double frequency)
{
    switch (spec->kind) {
    case PARTITA_DESIGN_DIFFERENTIATOR:
        return 2 * DESIGN_PI * frequency;
    case PARTITA_DESIGN_RAISED_COSINE:
        return raised_cosine_gain(spec, frequency);
    case PARTITA_DESIGN_ROOT_RAISED_COSINE:
        return sqrt(raised_cosine_gain(spec, frequency));
    case PARTITA_DESIGN_TABLE:
        return pow(10, table_decibels(spec, frequency) / 20);
    default:
        return 1;
    }
}

double design_largest_gain(const struct design_spec *spec)
{
    if (spec->kind == PARTITA_DESIGN_DIFFERENTIATOR)
        return design_wanted_gain(spec, spec->bands[0].end);
    if (spec->kind != PARTITA_DESIGN_TABLE) return 1;
    double most = spec->table[0].decibels;
    for (size_t i = 1; i < spec->table_count; i++) most = fmax(most, spec->table[i].decibels);
    return pow(10, most / 20);
}

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
    size_t most;
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
             search->spec->width * search->spec->rate, search->most);
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
    size_t fails = bottom - 2, meets = search->most + 2;
    for (size_t n = start, tries = 0; meets - fails > 2; tries++) {
        double miss;
        const enum partita_status status = try_count(search, n, &miss);
        if (status) return status;
        if (miss <= 0) meets = n;
        else fails = n;
        if (fails == search->most) return too_many(search);
        // At least twice as far as before, as long as all fail.
        const double least = meets > search->most ? ldexp(2, (int)tries) : 2;
        const double shift = fmax(2 * ceil(fabs(miss) / per_tap / 2), least);
        const double next = miss > 0 ? (double)n + shift : (double)n - shift;
        n = (size_t)fmin(fmax(next, (double)fails + 2), (double)meets - 2);
        if (tries > 3 && meets <= search->most) n = fails + (meets - fails) / 4 * 2;
    }
    *ret = meets;
    return PARTITA_OK;
}

static size_t next_odd(double count, size_t least)
{
    const size_t n = size_max((size_t)ceil(count), least);
    return n + (n % 2 == 0);
}

enum partita_status design_count(const struct design_spec *spec, size_t *ret_count)
{
    struct search search = {.spec = spec, .most = DESIGN_MAX_TAPS - 1};
    const bool equiripple = spec->method == PARTITA_DESIGN_EQUIRIPPLE;
    const bool formula = spec->kind >= PARTITA_DESIGN_RAISED_COSINE; // and tables
    *ret_count = spec->taps;
    if (spec->taps) return PARTITA_OK;
    if (spec->minimum_phase) search.most = DESIGN_MAX_MINIMUM_PHASE - 1;
    if (equiripple) search.most = DESIGN_MAX_EQUIRIPPLE;
    const double width = design_window_width(spec);
    const double estimate = equiripple
                                ? design_equiripple_count(spec, width)
                                : design_kaiser_count(design_window_attenuation(spec), width);
    if (estimate > (double)search.most) return too_many(&search);
    const size_t start = next_odd(estimate, DESIGN_MIN_EQUIRIPPLE);
    *ret_count = start;
    if (formula) return PARTITA_OK;
    search.taps = mem_reserve(&spec->allocator, search.most * sizeof *search.taps);
    if (!search.taps) return PARTITA_ERR_NOMEM;
    const enum partita_status status = search_count(&search, start, ret_count);
    mem_release(&spec->allocator, search.taps);
    return status;
}
