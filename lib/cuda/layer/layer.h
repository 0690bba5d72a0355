// SPDX-License-Identifier: MIT
// Layers as products of matrices on a device, for engines that differ in how they make matrices of
// samples (struct cuda_transform). A batch of positions, which are outputs or tiles, is loaded into
// matrices of lines by positions. These are multiplied by the matrices of the taps, and the sums
// are stored as outputs. Backward weight multiplies matrices of gy by those of x along the
// positions, adds the products of all batches, and stores the sums as taps.
#ifndef PARTITA_CUDA_LAYER_H
#define PARTITA_CUDA_LAYER_H

#include "core/plan.h"
#include "cuda/device/rates.h"
#include "cuda/kernels/pass.h"
#include "cuda/kernels/product.h"

// The range of one batched product: a pass, or a range of groups.
struct cuda_layer_part {
    int64_t matrices;  // of all groups
    int64_t in, out;   // lines of a matrix: the terms and the rows of forward
    int64_t positions; // of all items
};

struct cuda_layer_choice { // the decision of an estimate
    int64_t batch;         // positions at once
    int64_t chunks;        // of the sums over terms
    enum cuda_arithmetic arithmetic;
};

struct cuda_layer { // plan->state begins with it
    const struct cuda_transform *transform;
    enum partita_direction direction;
    enum cuda_element element;
    double tf32_rate; // of the device
    struct cuda_layer_choice choice;
    struct cuda_layer_part largest; // the most of any part
    size_t parts;
    size_t taps_bytes; // of the packed taps of all parts
    bool covers;       // the parts write the whole result
    bool inputs_rows;  // backward weight: rows of the gradient's matrices are lines of x, not of gy
    bool loaded;       // backward weight: the matrices of x are those that forward kept
    int64_t step;      // of the positions of a batch; those beyond the last are zeros
    int64_t vector;    // elements of which the pitch of any matrix is a multiple
    int64_t pitch;     // of lines of positions
    // Bytes of the workspace, in this order: matrices of samples; of gy, backward weight; sums.
    size_t from_bytes, other_bytes, sum_bytes;
};

// The range that the kernels of an engine compute at once: positions [first, first + n) of a part,
// all of them where taps are packed or their gradient is stored.
struct cuda_layer_batch {
    const struct partita_plan *plan;
    size_t number; // of the part
    struct cuda_layer_part part;
    int64_t first, n;
    struct cuda_product product; // with the pitches of all matrices
};

// `queue` queues a move between arrays of the caller and matrices. Matrices of samples are
// [matrix][line][position]; those of taps [matrix][in][out]; those of the gradient of taps
// [chunk][matrix][out][in], or [in][out] with inputs_rows.
struct cuda_transform {
    struct cuda_layer_part (*part)(const struct partita_plan *plan, size_t number);
    cudaError_t (*queue)(const struct cuda_layer_batch *batch, enum cuda_layer_move move, void *to,
                         const void *from, const void *bias);
};

// A layer of one part that covers its result; the engine fills in its transform, its largest part
// and taps_bytes.
struct cuda_layer cuda_layer_of(const struct request *request, bool complex);

// Fills in the fields that follow from a choice.
void cuda_layer_set(struct cuda_layer *layer, const struct cuda_layer_choice *choice);

// The products of n positions of a part.
struct cuda_product cuda_layer_product(const struct cuda_layer *layer,
                                       const struct cuda_layer_part *part, int64_t n);

// Chunks of the sums of n positions, as far as a quarter of the limit has room for them. Forward
// and backward data are split only where the device has too little work without.
int64_t cuda_layer_chunks(const struct cuda_layer *layer, int64_t n, size_t limit);

// Chooses as many positions at once as the limit has room for, of sums in these chunks. Several
// batches are multiples of 32 positions where it has room for those.
void cuda_layer_fit(struct cuda_layer *layer, int64_t chunks, enum cuda_arithmetic arithmetic,
                    size_t limit);

size_t cuda_layer_workspace(const struct cuda_layer *layer);
size_t cuda_layer_taps_bytes(const struct cuda_layer *layer, const struct cuda_layer_part *part);

// Elements from one line to the next of the matrices that a move reads or writes.
static inline int64_t cuda_layer_pitch(const struct cuda_layer_batch *batch,
                                       enum cuda_layer_move move)
{
    if (move == CUDA_PACK) return batch->product.a.pitch;
    return move == CUDA_STORE || move == CUDA_UNPACK ? batch->product.c.pitch
                                                     : batch->product.b.pitch;
}

// The part of that number with all its positions.
struct cuda_layer_batch cuda_layer_whole(const struct partita_plan *plan, size_t number);

// The stage of `launches` equal products; bytes: that they read and write.
struct cuda_stage cuda_layer_products(const struct request *request,
                                      const struct cuda_product *product, double launches,
                                      double bytes);

// Fills in the batch, the workspace and the bytes of an estimate.
void cuda_layer_estimate(const struct cuda_layer *layer, struct estimate *ret);

// Functions of struct engine.
struct filter_bytes cuda_layer_filter_bytes(const struct partita_plan *plan);
enum partita_status cuda_layer_filter_pack(struct partita_filter *filter, const void *taps,
                                           const struct region *scratch);
enum partita_status cuda_layer_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter,
                                   const struct operands *operands, void *workspace);
// Bytes of the matrices of x of all batches.
size_t cuda_layer_cached_bytes(const struct partita_plan *plan);

#endif
