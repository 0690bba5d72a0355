// SPDX-License-Identifier: MIT
// Sizes of tiles for engines that transform tiles, on any device.
#ifndef PARTITA_TILE_SEARCH_H
#define PARTITA_TILE_SEARCH_H

#include "core/engine.h"
#include "tile_grid.h"

// The arguments of an engine's functions: the request and its grid, which is not split.
struct tile_problem {
    const struct request *request;
    const struct tile_grid *grid;
};

struct tile_engine {
    bool sevens; // sizes of tiles, see tile_tables_next_size
    // Fills *ret with the estimate for tiles of `transform` samples along each axis, or of the
    // whole axis if it is shorter. Does not change *ret if this is not possible or not cheaper.
    void (*try_size)(const struct tile_problem *problem, size_t transform, struct estimate *ret);
    // Cost of one default decision for this size, INFINITY if it is not possible: the few sizes
    // that cost least are tried. NULL: every size is tried.
    double (*size_cost)(const struct tile_problem *problem, size_t transform);
};

// Tries the size that the request names; else all sizes up to the longest that any axis needs, long
// sizes in steps of a quarter, or with size_cost and no limit of the workspace the six cheapest.
// Sets a reason in *ret if the problem does not suit tiles. Of equal estimates the first one stays.
void tile_search(const struct request *request, const struct tile_engine *engine,
                 struct estimate *ret);

// Splits the grid into tiles of `transform` samples along each axis, or of the whole axis if it is
// shorter; ret_n gets these sizes. False if a size is no size of a transform, if the taps do not
// fit, or if a tile would have more than most_elements.
bool tile_size_split(struct tile_grid *grid, size_t transform, size_t most_elements,
                     size_t ret_n[3]);

// Predicted relative L2 error of sums of products of tiles of n samples along each axis.
double tile_error(const struct shape *shape, const size_t n[3], bool gauss);

#endif
