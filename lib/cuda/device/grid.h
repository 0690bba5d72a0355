// SPDX-License-Identifier: MIT
// Converts grids of tiles to the structs of kernels.
#ifndef PARTITA_CUDA_GRID_H
#define PARTITA_CUDA_GRID_H

#include "cuda/kernels/tap_map.h"
#include "geometry/tile_grid.h"

static inline struct cuda_tap_map cuda_tap_map_of(const struct tile_grid *grid)
{
    struct cuda_tap_map map = {.in = (int64_t)grid->in,
                               .out = (int64_t)grid->out,
                               .branches = (int64_t)grid->branches,
                               .branches_out = grid->branches_out,
                               .reversed = grid->axis[0].reversed,
                               .flip = grid->flip};
    for (int a = 0; a < 3; a++) {
        map.axis[a].kernel = (int64_t)grid->axis[a].kernel;
        map.axis[a].period = (int64_t)grid->axis[a].period;
        map.axis[a].branches = (int64_t)grid->axis[a].branches;
        map.axis[a].taps = (int64_t)grid->axis[a].taps;
    }
    return map;
}

#endif
