// SPDX-License-Identifier: MIT
// cuda/tiles: how it lays a layer out, into tiles of a transform that fits a thread block's shared
// memory, and these into batches of groups and positions whose spectra fit the workspace (decision
// 22).
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
    size_t transform; // samples along each axis, or of all that there are
    int64_t groups;   // of a batch
    int64_t blocks;   // batches of positions, or fewer if thread blocks are not full
    int64_t chunks;   // backward weight: of the positions, with sums of their own
};

struct cuda_tiles_layout {
    struct cuda_tiles_choice choice;
    struct cuda_tiles tiles; // its tables are left out
    enum partita_direction direction;
    size_t n[3];                       // samples of the transform
    bool cached;                       // x_bytes are no part of the workspace
    bool covers;                       // backward data: gx has no other samples
    struct cuda_tiles_batch batch;     // the largest, with the first group and position
    size_t x_bytes, d_bytes;           // spectra of what is read
    size_t y_bytes, sum_bytes;         // of the result; of chunks of it
    size_t filter_bytes, filter_group; // all spectra of a filter, those of a group
    size_t shared_bytes;               // of a thread block
};

// Fills everything of an estimate for the best tiles of any variant that the request allows, or
// applicable = false with a reason.
void cuda_tiles_estimate(const struct request *request, struct estimate *ret);

// Backward weight from the spectra of x that a forward of this choice leaves.
void cuda_tiles_choose_cached(const struct request *request,
                              const struct cuda_tiles_choice *forward,
                              struct cuda_tiles_layout *ret);

// The layout of a choice: first its tiles, which is false if there are none; then what a thread
// block has of them; then batches.
bool cuda_tiles_split(const struct request *request, const struct cuda_tiles_choice *choice,
                      struct cuda_tiles_layout *ret);
void cuda_tiles_set_pairs(struct cuda_tiles_layout *layout, int pairs);
void cuda_tiles_set_batch(struct cuda_tiles_layout *layout, int64_t groups, int64_t blocks,
                          int64_t chunks);

size_t cuda_tiles_workspace(const struct cuda_tiles_layout *layout);

// The products of one batch.
struct cuda_product cuda_tiles_product(const struct cuda_tiles_layout *layout,
                                       const struct cuda_tiles_batch *batch);

// Batches of groups and positions.
int64_t cuda_tiles_batches(const struct cuda_tiles_layout *layout);

// What a plan holds.
struct tiles_plan {
    struct cuda_tiles_layout layout;
    void *tables; // in the device's memory
};

// struct engine's run.
enum partita_status cuda_tiles_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter,
                                   const struct operands *operands, void *workspace);

#endif
