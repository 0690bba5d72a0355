// SPDX-License-Identifier: MIT
// Cuts a grid into tiles by the size of their transforms.
#ifndef PARTITA_TILE_SIZE_H
#define PARTITA_TILE_SIZE_H

#include "tile_grid.h"

enum { TILE_SIZE_MAX_TAPS = 1 << 16 }; // along an axis

// Samples of one tile that covers an axis. Beyond the inputs that exist it may wrap around: what an
// output would then meet instead of padding is padding, if the inputs [begin, end) of the tile's
// extent are far enough from both ends.
size_t tile_size_whole(const struct tile_axis *axis);

// Tiles of `transform` samples along each axis, or of all there are; ret_n is what that is. False
// if it is no size of a transform, if the taps do not fit, or if a tile would have more than
// most_elements.
bool tile_size_split(struct tile_grid *grid, size_t transform, size_t most_elements,
                     size_t ret_n[3]);

#endif
