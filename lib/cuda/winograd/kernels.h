// SPDX-License-Identifier: MIT
// The interface between C and CUDA for the kernels of cuda/winograd: transforms of tiles into
// matrices [frequency][line][position] and back. Products of these matrices (product.h) compute the
// layer. All arrays are in the device's memory. Frequency (i, j) is i*extent of the last axis + j;
// extents are 1, 4, 6 or 8, one of them more than 1.
#ifndef PARTITA_CUDA_WINOGRAD_KERNELS_H
#define PARTITA_CUDA_WINOGRAD_KERNELS_H

#include "cuda/kernels/pass.h"
#include "cuda/kernels/tap_map.h"

enum { CUDA_WINOGRAD_THREADS = 128, CUDA_WINOGRAD_AXES = 2 };

// Along one axis element k of tile t, in image i and branch j (tile_grid.h), is sample
//   base + image*i + branch*j + step*(tile*t + k)
// of `size`; elements outside [0, size) are read as zeros and not stored.
struct cuda_winograd_side {
    int64_t size, base, image, branch, step, tile;
    int64_t images, branches, tiles;
    int extent, elements; // of a transformed tile; of a tile of samples
};

// Tiles [first, first + n) of [item][image][row][column], of all lines [group][branch][channel] of
// an array [item][group][channel][size][size]. A line of transformed tiles is `pitch` scalars.
struct cuda_winograd_tiles {
    struct cuda_winograd_side axis[CUDA_WINOGRAD_AXES];
    int64_t groups, channels, pitch;
    uint32_t first, n;
    enum cuda_storage storage; // of the array's samples
    bool relu;                 // of outputs
    bool wide;                 // outputs: all tiles of a row can be stored as vectors
};

// The taps: `in` by `out` channels of a group, branches included.
struct cuda_winograd_taps {
    struct cuda_tap_map map;
    enum cuda_storage storage;
    int extent[CUDA_WINOGRAD_AXES];
    int64_t groups, in, out, pitch; // pitch: of a line of transformed taps
    int64_t chunks;                 // of the sums of their gradient
};

// Queues transformed tiles [frequency][line][pitch]: of x (B' d B), and of gy, which take the place
// of taps in backward weight (G g G'); or outputs from their sums (A' m A), with bias
// [group][channel].
CUDA_C cudaError_t cuda_winograd_queue_tiles(const struct cuda_winograd_tiles *tiles,
                                             enum cuda_layer_move move, void *to, const void *from,
                                             const void *bias);
// Queues transformed taps [frequency][group][in][pitch of out], or the gradient of taps from sums
// [chunk][frequency][group][out][pitch of in]; chunks are added in order.
CUDA_C cudaError_t cuda_winograd_queue_taps(const struct cuda_winograd_taps *taps,
                                            enum cuda_layer_move move, void *to, const void *from);

#endif
