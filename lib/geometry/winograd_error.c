// SPDX-License-Identifier: MIT
#include "winograd_error.h"

#include <math.h>

#include "base/winograd_matrix.h"

// Without a budget of the caller's, in units of roundoff: 2e-6 in f32.
static const double DEFAULT_BUDGET = 2e-6 / 0x1p-24;

static double roundoff(bool f64)
{
    return f64 ? 0x1p-53 : 0x1p-24;
}

// How much larger than its result the terms are that A' sums for random inputs and taps, in root
// mean square: their relative errors grow by this.
static double growth(const struct tile_axis *axis)
{
    const size_t extent = axis->extent;
    double sum = 0;
    for (size_t i = 0; extent > 1 && i < extent; i++) {
        double row[WINOGRAD_EXTENT], inputs = 0, taps = 0, outputs = 0;
        winograd_input_row(extent, i, row);
        for (size_t k = 0; k < extent; k++) inputs += row[k] * row[k];
        for (size_t k = 0; k < axis->taps; k++)
            taps += pow(winograd_taps_entry(extent, axis->taps, k, i), 2);
        for (size_t k = 0; k < axis->tile; k++)
            outputs += pow(winograd_output_entry(extent, axis->tile, k, i), 2);
        sum += inputs * taps * outputs;
    }
    return extent > 1 ? sqrt(sum / (double)(axis->tile * axis->taps)) : 1;
}

// Roundings of six transforms along one axis each, then of the products' sums; 1.7 is what is left
// of the former for every extent, by experiment with random tiles
// (docs/decisions/0014-winograd.md).
double winograd_error(const struct tile_grid *grid, bool f64, double terms)
{
    const double segment = fmin(terms, WINOGRAD_TERMS);
    return roundoff(f64) * growth(&grid->axis[1]) * growth(&grid->axis[2]) *
           sqrt(1.7 + 0.09 * (segment + terms / segment));
}

double winograd_budget(const struct request *request)
{
    return request->error_budget > 0 ? request->error_budget
                                     : DEFAULT_BUDGET * roundoff(request->shape->f64);
}
