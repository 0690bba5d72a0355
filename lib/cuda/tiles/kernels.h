// SPDX-License-Identifier: MIT
// What the kernels of cuda/tiles are asked to do, in C and CUDA: tiles of a grid
// (geometry/tile_grid.h, whose names these are) into spectra, products of spectra, spectra into
// tiles (decision 22). All arrays are in the device's memory. Spectra begin with the bin:
//   x [group][bin][in][block]    d [group][bin][out][block]    y [group][bin][out][block]
//   taps [group][bin][in][out]   gw [group][bin][in][out]
// of complex elements, of one batch of `groups` groups and `block` positions, lines of them `pitch`
// apart, and those of output channels out_pitch; by Gauss (product.h) of reals, three times as
// many: [group][form][bin].
#ifndef PARTITA_CUDA_TILES_KERNELS_H
#define PARTITA_CUDA_TILES_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/kernels/tap_map.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_DFT_PASSES = 10,
    CUDA_TILES_THREADS = 256, // of a thread block, at most
    CUDA_TILES_PAIRS = 8,     // pairs of tiles of a thread block, at most
    CUDA_TILES_COLUMNS = 4,   // samples of a row that a thread reads at once
};

// A transform along one axis (struct tile_dft): passes of decimation in frequency, in place.
struct cuda_dft {
    int n, passes, step; // step: elements from one sample to the next
    uint32_t inverse_n;  // for divisions by n, as fft.cuh makes them: UINT32_MAX / n
    int radix[CUDA_DFT_PASSES];
    uint32_t inverse[CUDA_DFT_PASSES]; // by the butterflies of a block of a pass
    int twiddle[CUDA_DFT_PASSES];      // first factor of a pass in the table
};

// Samples of image i, phase j and position q: base + image*i + phase*j + step*q; none outside [0,
// size).
struct cuda_tiles_side {
    int64_t size, base, image, phase, step;
};

struct cuda_tiles_axis {
    struct cuda_tiles_side in, out;
    int64_t images, phases, tiles;
    int64_t tile, extent;
    int64_t first, lead;
};

// The tables of a transform, in the device's memory.
struct cuda_tiles_tables {
    const void *twiddle;  // of all passes of all axes: complex
    const uint32_t *pair; // [bins][2]: elements of a frequency and of its negative
};

struct cuda_tiles {
    struct cuda_tiles_axis axis[3];
    struct cuda_dft dft[3];
    struct cuda_tiles_tables tables;
    struct cuda_tap_map taps;
    int64_t images, phases, tiles, positions; // positions: tiles of all images and items
    int64_t groups, in, out, out_pitch;       // channels of a group, phases included
    int elements, bins;                       // of one tile in shared memory; of its spectrum
    int pairs, threads;                       // of a thread block
    int row_threads;                          // that share a row of a tile: a power of two
    bool phases_out, gauss, relu;
    bool fused; // spectra of taps and of their gradient are [group][in][out][bin]
    bool f64;
};

// What one launch is of: groups first_group .. + groups, positions first .. + block, where those
// beyond the last are zeros. block is a multiple of 2*pairs.
struct cuda_tiles_batch {
    int64_t first_group, groups, first, block, pitch;
};

// Queue: spectra of the inputs of tiles; or of their outputs (gy of backward weight) without what
// surrounds them, conjugated. Twice the transforms.
cudaError_t cuda_tiles_load(const struct cuda_tiles *tiles, const struct cuda_tiles_batch *batch,
                            bool outputs, void *spectra, const void *samples, cudaStream_t stream);

// Spectra of taps, conjugated; twice the transforms. Reads a filter in the caller's order.
cudaError_t cuda_tiles_load_taps(const struct cuda_tiles *tiles,
                                 const struct cuda_tiles_batch *batch, void *spectra,
                                 const void *taps, cudaStream_t stream);

// Outputs of tiles from their spectra, with bias [channels] (or NULL) and activation.
cudaError_t cuda_tiles_store(const struct cuda_tiles *tiles, const struct cuda_tiles_batch *batch,
                             void *samples, const void *spectra, const void *bias,
                             cudaStream_t stream);

// The gradient of the taps from its spectra, in the caller's order.
cudaError_t cuda_tiles_store_taps(const struct cuda_tiles *tiles,
                                  const struct cuda_tiles_batch *batch, void *taps,
                                  const void *spectra, cudaStream_t stream);

// From samples to samples: forward with bias and activation, or backward data. Where `in` is more
// than 1 a block holds twice the pairs of tiles.
cudaError_t cuda_tiles_fused(const struct cuda_tiles *tiles, void *to, const void *samples,
                             const void *taps, const void *bias, cudaStream_t stream);

// Spectra of the gradient of the taps, [chunks] of them to be added: of chunks of positions. Blocks
// hold a pair more.
cudaError_t cuda_tiles_fused_weight(const struct cuda_tiles *tiles, void *sums, const void *x,
                                    const void *gy, int64_t chunks, cudaStream_t stream);

// Bytes of shared memory of a thread block that holds so many pairs of tiles.
size_t cuda_tiles_shared_bytes(const struct cuda_tiles *tiles, int pairs);

#ifdef __cplusplus
}
#endif

#endif
