// SPDX-License-Identifier: MIT
// The directions of a layer as passes (cuda/kernels/pass.h): forward is one pass; backward data is
// one pass for each residue of gx, modulo the stride, that any tap contributes to (decision 12).
#ifndef PARTITA_CUDA_PASSES_H
#define PARTITA_CUDA_PASSES_H

#include "core/problem.h"
#include "cuda/kernels/pass.h"

// The pass of forward; backward weight uses the same pass for the positions of x and gy.
struct cuda_pass cuda_pass_forward(const struct shape *shape);

// Number of passes of backward data, SIZE_MAX on overflow; *ret_covers: whether they write all of
// gx.
size_t cuda_passes_backward(const struct shape *shape, bool *ret_covers);

// Pass i of backward data. Some passes may have no outputs: then axis[a].n is 0.
struct cuda_pass cuda_pass_backward(const struct shape *shape, size_t i);

#endif
