// SPDX-License-Identifier: MIT
// cuda/separable: the engine, and the interface of its kernel between C and CUDA.
#ifndef PARTITA_CUDA_SEPARABLE_H
#define PARTITA_CUDA_SEPARABLE_H

#include "cuda/kernels/pass.h"

struct engine;

extern const struct engine cuda_separable;

enum { CUDA_SEPARABLE_TAPS = 32 }; // of an axis, at most

// A pass of stride and dilation 1 along rows and columns, where each output channel reads one input
// channel. It filters with the taps of one axis after the other, first along columns, then along
// rows. Taps are [channel][axis][pitch], rows' before columns', in the order of the sum.
struct cuda_separable_form {
    int pitch;           // elements from the taps of one axis to the next
    size_t shared_bytes; // of a thread block
    double blocks;
    double slots; // cost of an output in multiply-adds, by counting
};
CUDA_C struct cuda_separable_form cuda_separable_form_of(const struct cuda_pass *pass, bool f64);

CUDA_C cudaError_t cuda_separable_queue(const struct cuda_pass *pass, bool f64,
                                        const struct cuda_arrays *arrays);

#endif
