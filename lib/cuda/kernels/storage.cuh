// SPDX-License-Identifier: MIT
// Samples in the caller's arrays as the scalars of sums, and back, rounded to the nearest even.
// IEEE 754 binary16 and bfloat16 by integer arithmetic, with the bits of lib/kernels/half.c on the
// CPU; a NaN stays one.
#ifndef PARTITA_CUDA_STORAGE_CUH
#define PARTITA_CUDA_STORAGE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "pass.h"

struct f16 {
    uint16_t bits;
};

struct bf16 {
    uint16_t bits;
};

// The type of sums of samples that are stored as S.
template <typename S> struct sum_of {
    typedef float type;
};
template <> struct sum_of<double> {
    typedef double type;
};

inline __device__ uint32_t bits_of(float value)
{
    union {
        float value;
        uint32_t bits;
    } word;
    word.value = value;
    return word.bits;
}

inline __device__ float float_of(uint32_t bits)
{
    union {
        uint32_t bits;
        float value;
    } word;
    word.bits = bits;
    return word.value;
}

template <typename T> inline __device__ T widened(T value)
{
    return value;
}

inline __device__ float widened(bf16 value)
{
    return float_of((uint32_t)value.bits << 16);
}

inline __device__ float widened(f16 value)
{
    constexpr uint32_t REBIAS = 112u << 23, MIN_NORMAL = 1u << 10, INFINITE = 31u << 10;
    const uint32_t magnitude = value.bits & 0x7fffu, sign = (value.bits & 0x8000u) << 16;
    const float denormal = (float)(int32_t)magnitude * 0x1p-24f;
    const uint32_t normal = (magnitude << 13) + REBIAS + (magnitude >= INFINITE ? REBIAS : 0);
    return float_of((magnitude < MIN_NORMAL ? bits_of(denormal) : normal) | sign);
}

template <typename T> inline __device__ void narrow(T *to, T value)
{
    *to = value;
}

inline __device__ void narrow(bf16 *to, float value)
{
    const uint32_t bits = bits_of(value), rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const bool nan = (bits & 0x7fffffffu) > 255u << 23;
    to->bits = (uint16_t)(nan ? bits >> 16 | 0x40u : rounded);
}

inline __device__ void narrow(f16 *to, float value)
{
    constexpr uint32_t REBIAS = 112u << 23, INFINITE = 31u << 10;
    const uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
    // To the nearest even: half a unit of the last place less one, and one if that place is odd.
    const uint32_t normal = (magnitude - REBIAS + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    // Beside 0.5 the units of f32 are those of the denormal numbers of binary16.
    const uint32_t denormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    uint32_t ret = magnitude < 113u << 23 ? denormal : normal;
    if (ret > INFINITE || magnitude >= 255u << 23) ret = INFINITE;
    if (magnitude > 255u << 23) ret = INFINITE | 0x200u | (magnitude >> 13 & 0x3ffu);
    to->bits = (uint16_t)(ret | (bits >> 16 & 0x8000u));
}

// Calls a function object with a stored zero.
template <typename Use> inline cudaError_t with_storage(cuda_storage storage, Use use)
{
    switch (storage) {
    case CUDA_STORED_F32:
        return use(0.0f);
    case CUDA_STORED_F64:
        return use(0.0);
    case CUDA_STORED_F16:
        return use(f16());
    case CUDA_STORED_BF16:
        return use(bf16());
    default:
        return cudaErrorInvalidValue;
    }
}

#endif
