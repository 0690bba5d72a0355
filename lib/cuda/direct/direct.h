// SPDX-License-Identifier: MIT
// cuda/direct and, by names of their own, each of the ways it chooses from.
#ifndef PARTITA_CUDA_DIRECT_H
#define PARTITA_CUDA_DIRECT_H

#include "core/engine.h"

extern const struct engine cuda_direct, cuda_direct_plain, cuda_direct_constant, cuda_direct_halo,
    cuda_direct_cached;

#endif
