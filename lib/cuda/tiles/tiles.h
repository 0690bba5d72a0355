// SPDX-License-Identifier: MIT
// cuda/tiles: how a layer is split into tiles whose transform fits a thread block's shared memory,
// and the tiles into batches of groups and positions whose spectra fit the workspace (decision 22).
#ifndef PARTITA_CUDA_TILES_H
#define PARTITA_CUDA_TILES_H

#include "cuda/layer/layer.h"
#include "kernels.h"

enum cuda_tiles_variant {
    CUDA_TILES_COMPLEX, // spectra in memory, complex products
    CUDA_TILES_GAUSS,   // the same with three real products for a complex one
    CUDA_TILES_FUSED,   // one input channel a group: from samples to samples in one kernel
    CUDA_TILES_VARIANTS,
};

// The decision of an estimate.
struct cuda_tiles_choice {
    enum cuda_tiles_variant variant;
    int pairs;        // of tiles in a thread block
    size_t transform; // samples along each axis, or the whole axis if it is shorter
    int64_t groups;   // of a part of the layer
    int64_t blocks;   // number of batches of positions; fewer if thread blocks would not be full
    struct cuda_layer_choice layer;
};

struct cuda_tiles_layout {
    struct cuda_layer layer; // parts are ranges of groups; matrices [group][form][bin]
    struct cuda_tiles_choice choice;
    struct cuda_tiles tiles; // without its tables
    size_t n[3];             // samples of the transform
    size_t shared_bytes;     // of a thread block
};

extern const struct cuda_transform cuda_tiles_transform;

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

struct cuda_layer_part cuda_tiles_groups(const struct cuda_tiles_layout *layout, int64_t groups);

#endif
