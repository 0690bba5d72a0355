// SPDX-License-Identifier: MIT
// How cuda/tiles cuts a layer: into tiles of a transform that fits a thread block's shared memory,
// and the work on them into runs of groups and positions whose spectra fit the workspace (decision
// 22).
#ifndef PARTITA_CUDA_TILES_CUT_H
#define PARTITA_CUDA_TILES_CUT_H

#include "cuda/device/device.h"
#include "cuda/kernels/product.h"
#include "kernels.h"

enum cuda_tiles_kind {
    CUDA_TILES_COMPLEX, // spectra in memory, complex products
    CUDA_TILES_GAUSS,   // the same with three real products for a complex one
    CUDA_TILES_FUSED,   // one input channel a group: from samples to samples in one kernel
    CUDA_TILES_KINDS,
};

struct cuda_tiles_cut {
    struct cuda_tiles tiles; // its tables are left out
    enum partita_direction direction;
    enum cuda_tiles_kind kind;
    size_t n[3];                 // samples of the transform
    bool saved;                  // x_bytes are no part of the workspace
    bool covers;                 // backward data: gx has no other samples
    struct cuda_tiles_part most; // groups and positions at once
    int64_t parts;           // backward weight: runs of terms of a product, with sums of their own
    size_t x_bytes, d_bytes; // spectra of what is read
    size_t y_bytes, sets_bytes;        // of the result; of parts of it
    size_t filter_bytes, filter_group; // all spectra of a filter, those of a group
    size_t shared_bytes;               // of a thread block
};

// Tiles of `transform` samples along each axis, or of all that there are, in a workspace of at most
// `limit` bytes. False if that is not to be had.
bool cuda_tiles_cut(const struct request *request, size_t transform, enum cuda_tiles_kind kind,
                    size_t limit, struct cuda_tiles_cut *ret);

// Backward weight from the spectra of x that a forward cut like `forward` leaves.
void cuda_tiles_cut_saved(const struct request *request, const struct cuda_tiles_cut *forward,
                          struct cuda_tiles_cut *ret);

size_t cuda_tiles_workspace(const struct cuda_tiles_cut *cut);

// The products of one run of groups and positions.
struct cuda_product cuda_tiles_product(const struct cuda_tiles_cut *cut,
                                       const struct cuda_tiles_part *part);

// Number of runs of positions.
static inline int64_t cuda_tiles_blocks(const struct cuda_tiles_cut *cut)
{
    return (cut->tiles.positions + cut->most.block - 1) / cut->most.block;
}

// Number of runs of groups and positions.
static inline int64_t cuda_tiles_runs(const struct cuda_tiles_cut *cut)
{
    return (cut->tiles.groups + cut->most.groups - 1) / cut->most.groups * cuda_tiles_blocks(cut);
}

#endif
