// SPDX-License-Identifier: MIT
// The interface between C and CUDA for the kernels of cuda/tiles: transforms of tiles of a grid
// (with the names of geometry/tile_grid.h) into spectra, products of spectra, and transforms back
// into tiles (decision 22). All arrays are in the device's memory. The layouts of spectra are:
//   x [group][bin][in][block]    d [group][bin][out][block]    y [group][bin][out][block]
//   taps [group][bin][in][out]   gw [group][bin][in][out]
// of complex elements, for one batch of `groups` groups and `block` positions. Lines of positions
// are `pitch` apart, lines of output channels out_pitch. With Gauss's product (product.h) elements
// are reals, three times as many: [group][form][bin].
#ifndef PARTITA_CUDA_TILES_KERNELS_H
#define PARTITA_CUDA_TILES_KERNELS_H

#include "cuda/kernels/pass.h"
#include "cuda/kernels/tap_map.h"

enum {
    CUDA_DFT_PASSES = 10,
    CUDA_TILES_THREADS = 256, // of a thread block, at most
    CUDA_TILES_PAIRS = 8,     // pairs of tiles of a thread block, at most
    CUDA_TILES_COLUMNS = 4,   // samples of a row that a thread reads at once
};

// A transform along one axis (struct lanes_dft), in place.
struct cuda_dft {
    int n, passes, step; // step: elements from one sample to the next
    uint32_t inverse_n;  // UINT32_MAX / n, for divisions by n as in fft.cuh
    int radix[CUDA_DFT_PASSES];
    uint32_t inverse[CUDA_DFT_PASSES]; // for divisions by the butterflies of a block of a pass
    int factors[CUDA_DFT_PASSES];      // first factor of a pass in the table
};

// Index of the sample of image i, branch j and position q: base + image*i + branch*j + step*q;
// outside [0, size) there is no sample.
struct cuda_tiles_side {
    int64_t size, base, image, branch, step;
};

struct cuda_tiles_axis {
    struct cuda_tiles_side in, out;
    int64_t images, branches, tiles;
    int64_t tile, extent;
    int64_t first, lead;
};

// The tables of a transform, in the device's memory.
struct cuda_tiles_tables {
    const void *factors;  // of all passes of all axes: complex
    const uint32_t *pair; // [bins][2]: elements of a frequency and of its negative
};

struct cuda_tiles {
    struct cuda_tiles_axis axis[3];
    struct cuda_dft dft[3];
    struct cuda_tiles_tables tables;
    struct cuda_tap_map taps;
    int64_t images, branches, tiles, positions; // positions: tiles of all images and items
    int64_t groups, in, out, out_pitch;         // channels of a group, branches included
    int elements, bins;                         // of one tile in shared memory; of its spectrum
    int pairs, threads;                         // of a thread block
    int row_threads; // threads that share a row of a tile: a power of two
    bool branches_out, gauss, relu;
    bool fused; // spectra of taps and of their gradient are [group][in][out][bin]
    bool f64;
    enum cuda_storage storage; // of samples and taps of the caller
};

// What one launch computes: `groups` groups from first_group on and `block` positions from `first`
// on; positions beyond the last are zeros. block is a multiple of 2*pairs.
struct cuda_tiles_batch {
    int64_t first_group, groups, first, block, pitch;
};

// Queues the spectra of the inputs of tiles; or those of their outputs (gy of backward weight),
// surrounded by zeros, conjugated; or outputs from their spectra, with bias [channels]. Spectra are
// twice the transforms.
CUDA_C cudaError_t cuda_tiles_queue_samples(const struct cuda_tiles *tiles,
                                            const struct cuda_tiles_batch *batch,
                                            enum cuda_layer_move move, void *to, const void *from,
                                            const void *bias);

// Queues the spectra of taps, conjugated, which are twice the transforms; or the gradient of taps
// from its spectra. Taps are in the caller's order.
CUDA_C cudaError_t cuda_tiles_queue_taps(const struct cuda_tiles *tiles,
                                         const struct cuda_tiles_batch *batch,
                                         enum cuda_layer_move move, void *to, const void *from);

// Queues forward with bias and activation, or backward data, from samples to samples in one kernel.
// If `in` is more than 1 a thread block holds twice the pairs of tiles.
CUDA_C cudaError_t cuda_tiles_fused(const struct cuda_tiles *tiles, void *to, const void *samples,
                                    const void *taps, const void *bias);

// Queues spectra of the gradient of the taps, one for each chunk of positions, which the caller
// adds. Thread blocks hold one pair of tiles more.
CUDA_C cudaError_t cuda_tiles_fused_weight(const struct cuda_tiles *tiles, void *sums,
                                           const void *x, const void *gy, int64_t chunks);

// Bytes of shared memory of a thread block that holds `pairs` pairs of tiles.
CUDA_C size_t cuda_tiles_shared_bytes(const struct cuda_tiles *tiles, int pairs);

#endif
