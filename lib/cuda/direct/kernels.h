// SPDX-License-Identifier: MIT
// The kernels of cuda/direct and how its tiles are split, in C and CUDA.
#ifndef PARTITA_CUDA_DIRECT_KERNELS_H
#define PARTITA_CUDA_DIRECT_KERNELS_H

#include "cuda/kernels/pass.h"

enum cuda_direct_variant {
    CUDA_DIRECT_PLAIN, // each thread computes one output; samples and taps come from the caches
    CUDA_DIRECT_HALO,  // a thread block shares a tile of samples with its halo, and taps
    CUDA_DIRECT_VARIANTS,
};

enum {
    CUDA_TILE_COLUMNS = 4,  // outputs of a thread along the columns of a tile, threads_x apart
    CUDA_TILE_SPAN = 8,     // the same for one channel with stride and dilation 1 along columns:
                            // adjacent
    CUDA_TILE_GROUP = 4,    // taps of a row that are read at once for adjacent outputs
    CUDA_TILE_CHANNELS = 8, // output channels of a thread in a tile
    CUDA_WEIGHT_TAPS = 8,   // gradients of taps that a thread block sums
};

// How a pass is split into tiles; depends only on its shape.
struct cuda_tile {
    int threads_x, threads_y; // each*threads_x columns by threads_y rows
    int each;                 // CUDA_TILE_COLUMNS or CUDA_TILE_SPAN
    int channels;             // 1 or CUDA_TILE_CHANNELS
    int rows, columns;        // of samples in shared memory
    size_t shared_bytes;
};

// Queue a pass.
CUDA_C cudaError_t cuda_direct_queue_plain(const struct cuda_pass *pass, bool f64,
                                           const struct cuda_arrays *arrays);
CUDA_C cudaError_t cuda_direct_queue_tiles(const struct cuda_pass *pass, bool f64,
                                           const struct cuda_tile *tile,
                                           const struct cuda_arrays *arrays);

// Queues the gradient of the taps of a forward pass, in the caller's order.
CUDA_C cudaError_t cuda_direct_queue_weight(const struct cuda_pass *pass, bool f64, void *gw,
                                            const void *x, const void *gy);

#endif
