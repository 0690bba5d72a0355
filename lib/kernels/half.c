// SPDX-License-Identifier: MIT
// Samples stored in two bytes, to f32 and back: IEEE 754 binary16 and bfloat16, the upper half of
// an f32. Integer arithmetic and selections that the compiler vectorises: the same bits with every
// instruction set, and whatever the caller does with denormal numbers.
#include "names.h"

#if REAL_BYTES == 4

typedef union {
    float value;
    uint32_t bits;
} word;

enum {
    SIGN = 1u << 15,
    F16_MIN_NORMAL = 1u << 10, // the least normal number of binary16 ..
    F16_INFINITE = 31u << 10   // .. and NaN
};

// Of an f32.
#define MAGNITUDE 0x7fffffffu
#define INFINITE (255u << 23)
#define REBIAS (112u << 23) // between the exponents of f32 and binary16

static inline float f32_of_f16(uint16_t half)
{
    const uint32_t magnitude = half & (SIGN - 1u);
    const word denormal = {.value = (float)(int32_t)magnitude * 0x1p-24f};
    const uint32_t normal = (magnitude << 13) + REBIAS + (magnitude >= F16_INFINITE ? REBIAS : 0);
    const word ret = {.bits = (magnitude < F16_MIN_NORMAL ? denormal.bits : normal) |
                              (uint32_t)(half & SIGN) << 16};
    return ret.value;
}

static inline uint16_t f16_of_f32(float value)
{
    const word given = {.value = value};
    const uint32_t magnitude = given.bits & MAGNITUDE, sign = given.bits >> 16 & SIGN;
    // To the nearest even: half a unit of the last place less one, and one if that place is odd.
    const uint32_t normal = (magnitude - REBIAS + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    // Beside 0.5 the units of f32 are those of the denormal numbers of binary16.
    const word kept = {.bits = magnitude}, shifted = {.value = kept.value + 0.5f},
               half = {.value = 0.5f};
    const uint32_t denormal = shifted.bits - half.bits;
    const uint32_t nan =
        F16_INFINITE | F16_MIN_NORMAL >> 1 | (magnitude >> 13 & (F16_MIN_NORMAL - 1u));
    uint32_t ret = magnitude < (113u << 23) ? denormal : normal;
    ret = ret > F16_INFINITE || magnitude >= INFINITE ? F16_INFINITE : ret;
    ret = magnitude > INFINITE ? nan : ret;
    return (uint16_t)(ret | sign);
}

static inline float f32_of_bf16(uint16_t half)
{
    const word ret = {.bits = (uint32_t)half << 16};
    return ret.value;
}

static inline uint16_t bf16_of_f32(float value)
{
    const word given = {.value = value};
    const uint32_t rounded = (given.bits + 0x7fffu + (given.bits >> 16 & 1u)) >> 16,
                   nan = given.bits >> 16 | 0x40u;
    return (uint16_t)((given.bits & MAGNITUDE) > INFINITE ? nan : rounded);
}

#define CONVERT(op, to, from, convert)                                                             \
    void KERNEL(op)(void *restrict y_, const void *restrict x_, size_t n)                          \
    {                                                                                              \
        to *restrict y = y_;                                                                       \
        const from *restrict x = x_;                                                               \
        for (size_t i = 0; i < n; i++) y[i] = convert(x[i]);                                       \
    }
CONVERT(widen_f16, float, uint16_t, f32_of_f16)
CONVERT(narrow_f16, uint16_t, float, f16_of_f32)
CONVERT(widen_bf16, float, uint16_t, f32_of_bf16)
CONVERT(narrow_bf16, uint16_t, float, bf16_of_f32)

void KERNEL(pair)(void *restrict y_, const void *first_, const void *second_, size_t step, size_t n)
{
    uint32_t *restrict y = y_;
    const uint16_t *first = first_, *second = second_;
    for (size_t i = 0; i < n && step == 1; i++) y[i] = first[i] | (uint32_t)second[i] << 16;
    for (size_t i = 0; i < n && step > 1; i++)
        y[i] = first[i * step] | (uint32_t)second[i * step] << 16;
}

#else
typedef int no_half; // f64 has no storage in two bytes
#endif
