// SPDX-License-Identifier: MIT
// cuda/separable: the engine, and what its kernel is asked to do in C and CUDA.
#ifndef PARTITA_CUDA_SEPARABLE_H
#define PARTITA_CUDA_SEPARABLE_H

#include "cuda/kernels/pass.h"

struct engine;

#ifdef __cplusplus
extern "C" {
#endif

extern const struct engine cuda_separable;

enum { CUDA_SEPARABLE_TAPS = 32 }; // of an axis, at most

// A pass of stride and dilation 1 along rows and columns, a channel from one channel: taps of an
// axis one after the other, first along columns, then along rows. Taps are
// [channel][axis][pitch], rows' before columns', in the order of the sum.
struct cuda_separable_form {
    int pitch;           // of an axis's taps
    size_t shared_bytes; // of a thread block
    double blocks;
    double slots; // times of a multiply-add that an output takes, counted
};
struct cuda_separable_form cuda_separable_form_of(const struct cuda_pass *pass, bool f64);

cudaError_t cuda_separable_queue(const struct cuda_pass *pass, bool f64,
                                 const struct cuda_pass_arrays *arrays, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
