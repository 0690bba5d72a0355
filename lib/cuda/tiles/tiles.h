// SPDX-License-Identifier: MIT
// cuda/tiles: how a layer is split into tiles whose transform fits a thread block's shared memory,
// and the tiles into batches of groups and positions whose spectra fit the workspace (decision 22).
#ifndef PARTITA_CUDA_TILES_H
#define PARTITA_CUDA_TILES_H

#include "cuda/device/device.h"
#include "cuda/kernels/product.h"
#include "kernels.h"

enum cuda_tiles_variant {
    CUDA_TILES_COMPLEX, // spectra in memory, complex products
    CUDA_TILES_GAUSS,   // the same with three real products for a complex one
    CUDA_TILES_FUSED,   // one input channel a group: from samples to samples in one kernel
    CUDA_TILES_VARIANTS,
};

// What an estimate decides.
struct cuda_tiles_choice {
    enum cuda_tiles_variant variant;
    int pairs;        // of tiles in a thread block
    size_t transform; // samples along each axis, or the whole axis if it is shorter
    int64_t groups;   // of a batch
    int64_t blocks;   // number of batches of positions; fewer if thread blocks would not be full
    int64_t chunks;   // backward weight: chunks of the positions, each with its own sums
    enum cuda_arithmetic arithmetic;
};

struct cuda_tiles_layout {
    struct cuda_tiles_choice choice;
    struct cuda_tiles tiles; // without its tables
    enum partita_direction direction;
    double tf32_rate;                  // of the device
    size_t n[3];                       // samples of the transform
    bool cached;                       // x_bytes are not part of the workspace
    bool covers;                       // backward data: gx has no other samples
    struct cuda_tiles_batch batch;     // the first batch, which is the largest
    size_t x_bytes, d_bytes;           // spectra of the arrays that are read
    size_t y_bytes, sum_bytes;         // of the result; of its chunks
    size_t filter_bytes, filter_group; // all spectra of a filter, those of a group
    size_t shared_bytes;               // of a thread block
};

// Fills everything of an estimate for the best tiles of any variant that the request allows, or
// applicable = false with a reason.
void cuda_tiles_estimate(const struct request *request, struct estimate *ret);

// Backward weight from the spectra of x that forward with this choice stores.
void cuda_tiles_choose_cached(const struct request *request,
                              const struct cuda_tiles_choice *forward,
                              struct cuda_tiles_layout *ret);

// The layout of a choice that an estimate made for the same request.
void cuda_tiles_lay_out(const struct request *request, const struct cuda_tiles_choice *choice,
                        struct cuda_tiles_layout *ret);

size_t cuda_tiles_workspace(const struct cuda_tiles_layout *layout);

// The products of one batch.
struct cuda_product cuda_tiles_product(const struct cuda_tiles_layout *layout,
                                       const struct cuda_tiles_batch *batch);

// Number of batches of groups and positions.
int64_t cuda_tiles_batches(const struct cuda_tiles_layout *layout);

#endif
