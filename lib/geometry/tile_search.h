// SPDX-License-Identifier: MIT
// Which sizes of tiles an engine of transformed tiles tries, on any device.
#ifndef PARTITA_TILE_SEARCH_H
#define PARTITA_TILE_SEARCH_H

#include "core/engine.h"

// Adds what tiles of `transform` samples along each axis, or of all there are, would cost: leaves
// *ret alone if that is not to be had, or not cheaper.
typedef void tile_try_fn(const struct request *request, size_t transform, struct estimate *ret);

// Tries the size that the request names, or all up to the longest that any axis needs, long ones a
// quarter apart. *ret has no reason yet; it gets one if the problem is none for tiles.
void tile_search(const struct request *request, tile_try_fn *try_size, struct estimate *ret);

// Predicted relative L2 error of sums of products of tiles of n samples along each axis.
double tile_error(const struct shape *shape, const size_t n[3], bool gauss);

#endif
