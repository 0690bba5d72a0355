// SPDX-License-Identifier: MIT
// The interface between C and CUDA for the kernels of cuda/gemm: samples of a pass into panels,
// matrices of terms (input channels and taps) by positions (items and outputs), and sums of their
// products (product.h) into outputs. All arrays are in the device's memory.
//
// A term is [channel][plane][row][column] of the taps of a pass; a position [item][plane][row]
// [column] of its outputs.
#ifndef PARTITA_CUDA_GEMM_KERNELS_H
#define PARTITA_CUDA_GEMM_KERNELS_H

#include "cuda/kernels/pass.h"

enum {
    CUDA_GEMM_EACH = 8, // terms, or channels, of a thread
};

// Positions [first, first + n) of a pass. Lines of panels and of sums are `pitch` scalars.
struct cuda_gemm {
    struct cuda_pass pass;
    enum cuda_storage storage; // of the caller's samples and taps
    int64_t first, n, pitch;
    int64_t chunks, chunk_plane; // of sums, and scalars from one to the next
};

// Queues a move. Matrices are the panel [group][term][pitch] of samples, packed taps
// [group][term][pitch of output channels], and sums: of outputs [chunk][group][output
// channel][pitch], of the gradient of taps [chunk][group][output channel][pitch of terms]. Chunks
// are added in their order. bias: stored like outputs.
CUDA_C cudaError_t cuda_gemm_queue(const struct cuda_gemm *gemm, enum cuda_layer_move move,
                                   void *to, const void *from, const void *bias);

#endif
