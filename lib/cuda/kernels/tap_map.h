// SPDX-License-Identifier: MIT
// The indices of the taps of a grid of tiles (geometry/tile_grid.h) in the caller's array, in C and
// CUDA.
#ifndef PARTITA_CUDA_TAP_MAP_H
#define PARTITA_CUDA_TAP_MAP_H

#include "interface.h"

// Along an axis tap k of branch j is tap j + period*k of the kernel, if that exists. reversed:
// taps-1-k takes the place of k. flip: taps of the kernel are counted from the end.
struct cuda_tap_map {
    struct {
        int64_t kernel, period, branches, taps;
    } axis[3];
    int64_t in, out;  // channels of a group, without branches
    int64_t branches; // of all axes: input channels, or output channels if branches_out
    bool branches_out, reversed, flip;
};

#endif
