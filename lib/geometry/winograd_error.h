// SPDX-License-Identifier: MIT
// The error that tiles of Winograd's minimal filtering leave, for all engines that have them
// (decision 14).
#ifndef PARTITA_WINOGRAD_ERROR_H
#define PARTITA_WINOGRAD_ERROR_H

#include "core/plan.h"
#include "tile_grid.h"

enum { WINOGRAD_TERMS = 256 }; // summed in registers before a sum is rounded

// Predicted relative L2 error of sums of so many transformed products, by a grid that is cut; along
// the axes that were left alone extents are 1.
double winograd_error(const struct tile_grid *grid, bool f64, double terms);

// What a request allows; without a word of the caller's, 2e-6 in f32 and as many roundoffs in f64.
double winograd_budget(const struct request *request);

#endif
