// SPDX-License-Identifier: MIT
// Which tiles of Winograd's minimal filtering an engine tries, on any device.
#ifndef PARTITA_WINOGRAD_SEARCH_H
#define PARTITA_WINOGRAD_SEARCH_H

#include "core/engine.h"
#include "tile_grid.h"

enum {
    WINOGRAD_AXES = 2,    // the grid's last two axes; on the CPU the first one is the third
    WINOGRAD_TERMS = 256, // summed in registers before a sum is rounded
};

// A layer split into tiles of one extent for each axis; an axis of extent 1 is not transformed.
struct winograd_split {
    int number; // of the extents
    struct tile_grid grid;
    size_t frequencies;
    size_t in, out; // channels of a group, branches included
};

// False if there are no such tiles.
bool winograd_split(const struct request *request, int number, struct winograd_split *ret);

// Fills *ret with an engine's estimate for a split, except transform, error and summary, which
// winograd_search fills. Leaves ret->applicable false if the engine cannot use the split.
typedef void winograd_try_fn(const struct request *request, const struct winograd_split *split,
                             struct estimate *ret);

// The cheapest estimate of all splits within the error budget; an estimate that fits the workspace
// limit is preferred to one that does not. If there is none, applicable = false with a reason.
void winograd_search(const struct request *request, winograd_try_fn *try_split,
                     struct estimate *ret);

// How much larger than its result the terms are that A' sums along an axis for random inputs and
// taps, in root mean square: their relative errors grow by this. Extent 1 has no transform.
double winograd_error_growth(size_t extent, size_t taps);

// The largest predicted error that the search allows: the request's budget, or its replacement.
double winograd_budget(const struct request *request);

#endif
