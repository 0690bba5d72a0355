// SPDX-License-Identifier: MIT
// Complex transforms of small tiles in shared memory, by all threads of a block: passes of radix 8,
// 6, 4, 3 and 2 in offset, decimation in frequency forward, in time inverse, so that nothing is put
// in order; tables are those of geometry/tile_tables.h. Neighbouring threads take neighbouring
// lines, which lie an odd number of elements apart along rows and one apart along columns: no two
// of them meet in a bank, and all read the same factors. Source: Gentleman & Sande, Fast Fourier
// transforms - for fun and profit (1966).
#ifndef PARTITA_CUDA_TILE_FFT_CUH
#define PARTITA_CUDA_TILE_FFT_CUH

#include "cuda/kernels/complex.cuh"
#include "kernels.h"

// -i a
template <typename T> inline __device__ complex_of<T> rotate_back(complex_of<T> a)
{
    return {a.im, -a.re};
}

template <typename T> inline __device__ void cuda_tile_radix(complex_of<T> (&a)[2])
{
    const complex_of<T> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
}

template <typename T> inline __device__ void cuda_tile_radix(complex_of<T> (&a)[3])
{
    const T sine = (T)0.86602540378443864676;
    const complex_of<T> sum = a[1] + a[2], difference = a[1] - a[2];
    const complex_of<T> middle = {a[0].re - sum.re / 2, a[0].im - sum.im / 2};
    const complex_of<T> rotated =
        rotate_back(complex_of<T>{sine * difference.re, sine * difference.im});
    a[0] = a[0] + sum;
    a[1] = middle + rotated;
    a[2] = middle - rotated;
}

template <typename T> inline __device__ void cuda_tile_radix(complex_of<T> (&a)[4])
{
    const complex_of<T> even = a[0] + a[2], even_rotated = a[0] - a[2], odd = a[1] + a[3];
    const complex_of<T> odd_rotated = rotate_back(a[1] - a[3]);
    a[0] = even + odd;
    a[1] = even_rotated + odd_rotated;
    a[2] = even - odd;
    a[3] = even_rotated - odd_rotated;
}

// By primes: 3 x 2 without factors.
template <typename T> inline __device__ void cuda_tile_radix(complex_of<T> (&a)[6])
{
    complex_of<T> even[3] = {a[0], a[2], a[4]}, odd[3] = {a[3], a[5], a[1]};
    cuda_tile_radix(even);
    cuda_tile_radix(odd);
    a[0] = even[0] + odd[0];
    a[3] = even[0] - odd[0];
    a[4] = even[1] + odd[1];
    a[1] = even[1] - odd[1];
    a[2] = even[2] + odd[2];
    a[5] = even[2] - odd[2];
}

template <typename T> inline __device__ void cuda_tile_radix(complex_of<T> (&a)[8])
{
    const T root = (T)0.70710678118654752440;
    complex_of<T> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    cuda_tile_radix(even);
    cuda_tile_radix(odd);
    odd[1] = {root * (odd[1].re + odd[1].im), root * (odd[1].im - odd[1].re)};
    odd[2] = rotate_back(odd[2]);
    odd[3] = {root * (odd[3].im - odd[3].re), -root * (odd[3].im + odd[3].re)};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        a[k] = even[k] + odd[k];
        a[k + 4] = even[k] - odd[k];
    }
}

// Division by a number that many threads and elements share: for (n + 1)*by up to 2^32, which what
// fits shared memory is. With inverse = (2^32 - e)/by, 1 <= e <= by, it takes less than 1/by off (n
// + 1)/by, but something.
struct divider {
    int by;
    unsigned inverse;

    __device__ divider(int by, unsigned inverse) : by(by), inverse(inverse)
    {
    }

    explicit __device__ divider(int by) : by(by), inverse(UINT32_MAX / (unsigned)by)
    {
    }

    __device__ int quotient(int n) const
    {
        return (int)(((uint64_t)(unsigned)n * inverse + inverse) >> 32);
    }

    // Takes the last digit, of base `by`, off a number.
    __device__ int take_digit(int *number) const
    {
        const int quotient = this->quotient(*number), digit = *number - quotient * by;
        *number = quotient;
        return digit;
    }
};

// Lines of a transform: `inner` of them inner_step elements apart, `outer` times, of every one of
// `tiles` tiles.
struct lines {
    divider inner, outer, tiles;
    int inner_step, outer_step, tile_step;
};

// One butterfly, its elements `step` apart; its factors are from w[first] on, or all 1. The inverse
// is the mirrored forward one with real and imaginary parts exchanged.
template <int RADIX, bool INVERSE, typename T>
inline __device__ void cuda_tile_butterfly(complex_of<T> *z, int step, const complex_of<T> *w,
                                           int first, bool factors)
{
    complex_of<T> a[RADIX];
#pragma unroll
    for (int k = 0; k < RADIX; k++) {
        a[k] = z[k * step];
        if (INVERSE) a[k] = {a[k].im, a[k].re};
    }
    if (!INVERSE && factors)
#pragma unroll
        for (int k = 1; k < RADIX; k++) a[k] = a[k] * w[first + k - 1];
    cuda_tile_radix(a);
    if (INVERSE && factors)
#pragma unroll
        for (int k = 1; k < RADIX; k++) a[k] = a[k] * w[first + k - 1];
#pragma unroll
    for (int k = 0; k < RADIX; k++) {
        if (INVERSE) a[k] = {a[k].im, a[k].re};
        z[k * step] = a[k];
    }
}

// Pass p, over blocks of `length`. A butterfly's number has the digits line (inner, outer, tile),
// offset within its block and block; its element is the sum of their steps, here of what a number
// adds beyond what the next one's digits do.
template <int RADIX, bool INVERSE, typename T>
inline __device__ void cuda_tile_pass(complex_of<T> *z, const cuda_dft &plan, const lines &set,
                                      int p, int length, const complex_of<T> *w)
{
    const divider within(length / RADIX, plan.inverse[p]);
    const int n = set.inner.by * set.outer.by * set.tiles.by * (plan.n / RADIX),
              step = within.by * plan.step;
    const int of_outer = set.outer_step - set.inner.by * set.inner_step,
              of_tile = set.tile_step - set.outer.by * set.outer_step;
    const int of_offset = plan.step - set.tiles.by * set.tile_step,
              of_block = (length - within.by) * plan.step;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const int outer = set.inner.quotient(i), tile = set.outer.quotient(outer),
                  offset = set.tiles.quotient(tile);
        const int block = within.quotient(offset);
        const int at = i * set.inner_step + outer * of_outer + tile * of_tile + offset * of_offset +
                       block * of_block;
        cuda_tile_butterfly<RADIX, INVERSE>(z + at, step, w, plan.factors[p] + block * (RADIX - 1),
                                            block > 0);
    }
}

// The same of the plan's radix, one of these.
template <bool INVERSE, int RADIX, int... OTHERS, typename T>
inline __device__ void cuda_tile_pass_of(complex_of<T> *z, const cuda_dft &plan, const lines &set,
                                         int p, int length, const complex_of<T> *w)
{
    if constexpr (sizeof...(OTHERS) > 0)
        if (plan.radix[p] != RADIX)
            return cuda_tile_pass_of<INVERSE, OTHERS...>(z, plan, set, p, length, w);
    cuda_tile_pass<RADIX, INVERSE>(z, plan, set, p, length, w);
}

// Forward from natural order to the passes' own; inverse, without 1/n, from there to natural order.
template <bool INVERSE, typename T>
inline __device__ void cuda_tile_transform_axis(complex_of<T> *z, const cuda_dft &plan,
                                                const lines &set, const complex_of<T> *factors)
{
    int length = INVERSE ? 1 : plan.n;
    for (int i = 0; i < plan.passes; i++) {
        const int p = INVERSE ? plan.passes - 1 - i : i;
        if (INVERSE) length *= plan.radix[p];
        cuda_tile_pass_of<INVERSE, 2, 3, 4, 6, 8>(z, plan, set, p, length, factors);
        __syncthreads();
        if (!INVERSE) length /= plan.radix[p];
    }
}

// All axes of `pairs` tiles: of their `planes` planes and `rows` rows, others being zeros (forward)
// or not wanted (inverse). Begins and ends with a barrier.
template <bool INVERSE, typename T>
inline __device__ void cuda_tile_transform(complex_of<T> *z, const cuda_tiles &tiles, int pairs,
                                           int planes, int rows)
{
    const cuda_dft *axis = tiles.dft;
    const complex_of<T> *factors = (const complex_of<T> *)tiles.tables.factors;
    const divider n[3] = {{axis[0].n, axis[0].inverse_n},
                          {axis[1].n, axis[1].inverse_n},
                          {axis[2].n, axis[2].inverse_n}};
    const divider of_planes(planes), of_rows(rows), of_pairs(pairs);
    const lines along[3] = {
        {n[2], n[1], of_pairs, 1, axis[1].step, tiles.elements},
        {n[2], of_planes, of_pairs, 1, axis[0].step, tiles.elements},
        {of_rows, of_planes, of_pairs, axis[1].step, axis[0].step, tiles.elements}};
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const int a = INVERSE ? i : 2 - i;
        cuda_tile_transform_axis<INVERSE>(z, axis[a], along[a], factors);
    }
}

#endif
