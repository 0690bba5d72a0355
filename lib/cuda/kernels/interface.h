// SPDX-License-Identifier: MIT
// Included by every interface between C and CUDA: the types of the run-time; CUDA_C, the linkage of
// functions that one language defines and both call; and what both compute.
#ifndef PARTITA_CUDA_INTERFACE_H
#define PARTITA_CUDA_INTERFACE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define CUDA_C extern "C"
#else
#define CUDA_C
#endif

// The least power of two from n on, at most `max`.
static inline int power_of_two(int64_t n, int max)
{
    int power = 1;
    while (power < n && power < max) power *= 2;
    return power;
}

#endif
