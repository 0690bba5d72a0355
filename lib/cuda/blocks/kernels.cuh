// SPDX-License-Identifier: MIT
#ifndef PARTITA_CUDA_BLOCKS_KERNELS_CUH
#define PARTITA_CUDA_BLOCKS_KERNELS_CUH

#include "cuda/kernels/outputs.cuh"
#include "kernels.h"

constexpr int MAX_TERMS = 64; // products summed in a row before they are rounded into a sum of sums

inline __device__ int64_t row_of(const cuda_row_map &map, int64_t i)
{
    int64_t row = 0;
#pragma unroll
    for (int d = CUDA_ROW_DIGITS - 1; d >= 0; d--) row += take(&i, map.n[d]) * map.step[d];
    return row;
}

#endif
