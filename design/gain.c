// SPDX-License-Identifier: MIT
// The gain that a design wants at each frequency.
#include <math.h>

#include "design.h"

double design_table_decibels(const struct partita_design_point *table, size_t n, double f)
{
    size_t first = 0, end = n; // table[first].frequency <= f < table[end].frequency
    if (!n) return 0;
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
        return pow(
            10, design_table_decibels(spec->table, spec->table_count, frequency * spec->rate) / 20);
    default:
        return 1;
    }
}

double design_largest_gain(const struct design_spec *spec)
{
    if (spec->kind == PARTITA_DESIGN_DIFFERENTIATOR)
        return design_wanted_gain(spec, spec->bands[0].end);
    if (spec->kind != PARTITA_DESIGN_TABLE) return 1;
    double max = spec->table[0].decibels;
    for (size_t i = 1; i < spec->table_count; i++) max = fmax(max, spec->table[i].decibels);
    return pow(10, max / 20);
}
