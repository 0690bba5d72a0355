// SPDX-License-Identifier: MIT
// One pass of a layer: sums over taps without branches or images (decision 19), in C and CUDA. All
// arrays are in the device's memory.
#ifndef PARTITA_CUDA_PASS_H
#define PARTITA_CUDA_PASS_H

#include "interface.h"

enum { CUDA_PASS_THREADS = 256 }; // of a thread block, at most

// How samples and taps are stored in arrays of the caller. Sums of values in two bytes are
// f32.
enum cuda_storage { CUDA_STORED_F32, CUDA_STORED_F64, CUDA_STORED_F16, CUDA_STORED_BF16 };

// Moves between arrays of the caller and matrices, for engines that compute layers by products
// (cuda/layer/layer.h).
enum cuda_layer_move {
    CUDA_LOAD,          // samples of x, or gy of backward data, into matrices
    CUDA_LOAD_GRADIENT, // samples of gy of backward weight into matrices
    CUDA_STORE,         // sums into outputs, with bias (NULL: none) and activation
    CUDA_PACK,          // taps into matrices
    CUDA_UNPACK,        // sums, which may be overwritten, into the gradient of taps
};

// Along one axis output j of a pass, j < n, goes to position to_first + to_step*j and is the sum
// over taps t < taps of
//   w[tap_first + tap_step*t] * from[from_first + from_step*j + from_dilation*t],
// where positions outside [0, from_size) count as zero.
struct cuda_axis {
    int64_t n, to_first, to_step, to_size;
    int64_t from_first, from_step, from_dilation, from_size;
    int64_t taps, tap_first, tap_step, kernel; // kernel: taps in the caller's array
};

// Arrays are [batch][groups*channels][planes][rows][columns]; the tap of output channel k and input
// channel c of group g begins at g*tap_group + k*tap_to + c*tap_from.
struct cuda_pass {
    struct cuda_axis axis[3]; // planes, rows, columns
    int64_t batch, groups, to, from;
    int64_t tap_group, tap_to, tap_from;
    bool relu;
};

// Arrays of forward or backward data: y and x, or gx and gy; taps as the filter has them; bias
// [outputs] or NULL; the workspace of the engine.
struct cuda_arrays {
    void *to;
    const void *from, *taps, *bias;
    void *workspace;
};

#endif
