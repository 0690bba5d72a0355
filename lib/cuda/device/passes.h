// SPDX-License-Identifier: MIT
// The directions of a layer as passes (kernels.h): forward is one; backward data is one for each
// residue of gx, modulo the stride, that any tap reaches (decision 12).
#ifndef PARTITA_CUDA_PASSES_H
#define PARTITA_CUDA_PASSES_H

#include "core/problem.h"
#include "cuda/kernels/pass.h"

// The pass of forward; that of backward weight reads its positions from the same.
struct cuda_pass cuda_pass_forward(const struct shape *shape);

// How many passes backward data has, SIZE_MAX if more than fit; whether they reach all of gx.
size_t cuda_passes_backward(const struct shape *shape, bool *ret_covers);

// One of them, i below that number. Some may have no outputs: axis[a].n is 0.
struct cuda_pass cuda_pass_backward(const struct shape *shape, size_t i);

#endif
