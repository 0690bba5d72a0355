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

#ifdef __cplusplus
extern "C" {
#endif

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

// Queues the panel [group][term][pitch] of the samples of `from`.
cudaError_t cuda_gemm_load(const struct cuda_gemm *gemm, void *panel, const void *from);
// Queues outputs from sums [chunk][group][output channel][pitch], added in the order of chunks,
// with bias (stored like `to`; NULL: none) and activation.
cudaError_t cuda_gemm_store(const struct cuda_gemm *gemm, void *to, const void *sums,
                            const void *bias);
// Queues packed taps [group][term][pitch of output channels].
cudaError_t cuda_gemm_taps(const struct cuda_gemm *gemm, void *packed, const void *taps);
// Queues the gradient of the taps from sums [chunk][group][output channel][pitch of terms].
cudaError_t cuda_gemm_gradient(const struct cuda_gemm *gemm, void *gw, const void *sums);

#ifdef __cplusplus
}
#endif

#endif
