// SPDX-License-Identifier: MIT
// TF32 and the instruction mma.sync.m16n8k8, which needs compute capability 8.0. Source: PTX ISA,
// matrix fragments for mma.m16n8k8, which says which elements a lane holds.
#ifndef PARTITA_CUDA_MMA_CUH
#define PARTITA_CUDA_MMA_CUH

#include "storage.cuh"

// The nearest number of TF32, ties away from zero, as an f32 whose last 13 bits are 0; NaN stays
// NaN, and beyond the largest number there is infinity.
inline __device__ uint32_t tf32_of(float x)
{
#ifdef __CUDACC__
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
#else
    return hostdev_tf32(x);
#endif
}

// sum[n] += a b[n]: N instructions of a warp. a is 16 rows by 8 terms, b[n] 8 terms by 8 columns,
// sum[n] 16 rows by 8 columns. With r = lane / 4 and t = lane % 4 a lane has of a (row r and r + 8
// of term t, then of t + 4), of b (term t and t + 4 of column r), of sum (columns 2t and 2t + 1 of
// row r, then of r + 8).
template <int N>
inline __device__ void multiply_tf32(float (&sum)[N][4], const uint32_t (&a)[4],
                                     const uint32_t (&b)[N][2])
{
#ifdef __CUDACC__
#pragma unroll
    for (int n = 0; n < N; n++)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sum[n][0]), "+f"(sum[n][1]), "+f"(sum[n][2]), "+f"(sum[n][3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[n][0]), "r"(b[n][1]));
#else
    hostdev_mma(N, sum[0], a, b[0]);
#endif
}

#endif
