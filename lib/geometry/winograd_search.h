// SPDX-License-Identifier: MIT
// Which tiles of Winograd's minimal filtering an engine tries, on any device.
#ifndef PARTITA_WINOGRAD_SEARCH_H
#define PARTITA_WINOGRAD_SEARCH_H

#include "core/engine.h"
#include "tile_grid.h"

enum { WINOGRAD_AXES = 2 }; // of the grid, behind the first one

// A layer split into tiles of one pair of extents; an extent of 1 leaves its axis alone.
struct winograd_split {
    int number; // of the pair of extents
    struct tile_grid grid;
    size_t frequencies;
    size_t in, out; // channels of a group, phases included
};

// False if there are no such tiles.
bool winograd_split(const struct request *request, int number, struct winograd_split *ret);

// Fills *ret with what an engine makes of a split, but for what winograd_search fills: transform,
// error and summary. Leaves ret->applicable false if it can not.
typedef void winograd_try_fn(const struct request *request, const struct winograd_split *split,
                             struct estimate *ret);

// The cheapest estimate of all splits within the error budget, one that fits the workspace before
// one that does not; or applicable = false with a reason.
void winograd_search(const struct request *request, winograd_try_fn *try_split,
                     struct estimate *ret);

#endif
