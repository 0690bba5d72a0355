// SPDX-License-Identifier: MIT
// See samples_dither in samples.h. The generator is the finalizer of SplitMix64 (Steele, Lea,
// Flood, "Fast splittable pseudorandom number generators", 2014), applied to the position.
#include <math.h>

#include "samples.h"

// Uniform on all 64 bits.
static uint64_t scramble(uint64_t position)
{
    uint64_t z = position * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void samples_dither(double *y, const void *x, bool as_double, size_t n, unsigned bits,
                    uint64_t position)
{
    const double step = ldexp(1, 1 - (int)bits - 32); // of the integers, times 2^-32
    for (size_t i = 0; i < n; i++) {
        const uint64_t z = scramble(position + i);
        const double noise = (double)(uint32_t)z - (double)(uint32_t)(z >> 32);
        y[i] = (as_double ? ((const double *)x)[i] : (double)((const float *)x)[i]) + noise * step;
    }
}
