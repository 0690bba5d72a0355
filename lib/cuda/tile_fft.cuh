// SPDX-License-Identifier: MIT
// Complex transforms of small tiles in shared memory, by all threads of a block: passes of radix 8, 6, 4, 3 and 2 in
// place, decimation in frequency forward, in time inverse, so that nothing is put in order; tables are those of
// ../cpu/tile_transform.h. Neighbouring threads take neighbouring lines, which lie an odd number of elements apart
// along rows and one apart along columns: no two of them meet in a bank, and all read the same factors. Source:
// Gentleman & Sande, Fast Fourier transforms - for fun and profit (1966).
#ifndef PARTITA_CUDA_TILE_FFT_CUH
#define PARTITA_CUDA_TILE_FFT_CUH

#include "complex.cuh"
#include "tiles_kernels.h"

// -i a.
template <typename T> inline __device__ complex_of<T> turn_back(complex_of<T> a)
{
    return {a.im, -a.re};
}

template <typename T> inline __device__ void dft(complex_of<T> (&a)[2])
{
    const complex_of<T> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
}

template <typename T> inline __device__ void dft(complex_of<T> (&a)[3])
{
    const T sine = (T)0.86602540378443864676;
    const complex_of<T> sum = a[1] + a[2], difference = a[1] - a[2];
    const complex_of<T> middle = {a[0].re - sum.re / 2, a[0].im - sum.im / 2};
    const complex_of<T> turned = turn_back(complex_of<T>{sine * difference.re, sine * difference.im});
    a[0] = a[0] + sum;
    a[1] = middle + turned;
    a[2] = middle - turned;
}

template <typename T> inline __device__ void dft(complex_of<T> (&a)[4])
{
    const complex_of<T> even = a[0] + a[2], even_turned = a[0] - a[2], odd = a[1] + a[3];
    const complex_of<T> odd_turned = turn_back(a[1] - a[3]);
    a[0] = even + odd;
    a[1] = even_turned + odd_turned;
    a[2] = even - odd;
    a[3] = even_turned - odd_turned;
}

// By primes: 3 x 2 without factors.
template <typename T> inline __device__ void dft(complex_of<T> (&a)[6])
{
    complex_of<T> even[3] = {a[0], a[2], a[4]}, odd[3] = {a[3], a[5], a[1]};
    dft(even);
    dft(odd);
    a[0] = even[0] + odd[0];
    a[3] = even[0] - odd[0];
    a[4] = even[1] + odd[1];
    a[1] = even[1] - odd[1];
    a[2] = even[2] + odd[2];
    a[5] = even[2] - odd[2];
}

template <typename T> inline __device__ void dft(complex_of<T> (&a)[8])
{
    const T root = (T)0.70710678118654752440;
    complex_of<T> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    dft(even);
    dft(odd);
    odd[1] = {root * (odd[1].re + odd[1].im), root * (odd[1].im - odd[1].re)};
    odd[2] = turn_back(odd[2]);
    odd[3] = {root * (odd[3].im - odd[3].re), -root * (odd[3].im + odd[3].re)};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        a[k] = even[k] + odd[k];
        a[k + 4] = even[k] - odd[k];
    }
}

// Division by a number that many threads and elements share: for n*by below 2^31, which what fits shared memory is.
struct divider {
    int by;
    unsigned inverse;

    explicit __device__ divider(int by) : by(by), inverse(0x80000000u / (unsigned)by + 1)
    {
    }

    // Takes the last digit, of base `by`, off a number.
    __device__ int take(int *number) const
    {
        const int quotient = (int)((uint64_t)(unsigned)*number * inverse >> 31), digit = *number - quotient * by;
        *number = quotient;
        return digit;
    }
};

// Lines of a transform: `inner` of them inner_step elements apart, `outer` times, of every one of `tiles` tiles.
struct lines {
    int inner, inner_step, outer, outer_step, tiles, tile_step;
};

// One butterfly, its elements `step` apart; w NULL: all factors are 1. The inverse is the mirrored forward one with
// real and imaginary parts exchanged.
template <int RADIX, bool INVERSE, typename T>
inline __device__ void butterfly(complex_of<T> *z, int step, const complex_of<T> *w)
{
    complex_of<T> a[RADIX];
#pragma unroll
    for (int k = 0; k < RADIX; k++) {
        a[k] = z[k * step];
        if (INVERSE) a[k] = {a[k].im, a[k].re};
    }
    if (INVERSE && w)
#pragma unroll
        for (int k = 1; k < RADIX; k++) a[k] = a[k] * w[k - 1];
    dft(a);
    if (!INVERSE && w)
#pragma unroll
        for (int k = 1; k < RADIX; k++) a[k] = a[k] * w[k - 1];
#pragma unroll
    for (int k = 0; k < RADIX; k++) {
        if (INVERSE) a[k] = {a[k].im, a[k].re};
        z[k * step] = a[k];
    }
}

// One pass over blocks of `length`.
template <int RADIX, bool INVERSE, typename T>
inline __device__ void pass(complex_of<T> *z, const cuda_dft &plan, const lines &of, int length, const complex_of<T> *w)
{
    const divider quotient(length / RADIX), inner(of.inner), outer(of.outer), tiles(of.tiles);
    const int n = of.inner * of.outer * of.tiles * (plan.n / RADIX), step = quotient.by * plan.step;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int rest = i, at = inner.take(&rest) * of.inner_step;
        at += outer.take(&rest) * of.outer_step;
        at += tiles.take(&rest) * of.tile_step;
        const int j = quotient.take(&rest);
        butterfly<RADIX, INVERSE>(z + at + (rest * length + j) * plan.step, step,
                                  j ? w + (j - 1) * (RADIX - 1) : nullptr);
    }
}

template <bool INVERSE, typename T>
inline __device__ void pass_of(complex_of<T> *z, const cuda_dft &plan, const lines &of, int p, int length,
                               const complex_of<T> *twiddle)
{
    const complex_of<T> *w = twiddle + plan.twiddle[p];
    switch (plan.radix[p]) {
    case 2:
        pass<2, INVERSE>(z, plan, of, length, w);
        break;
    case 3:
        pass<3, INVERSE>(z, plan, of, length, w);
        break;
    case 4:
        pass<4, INVERSE>(z, plan, of, length, w);
        break;
    case 6:
        pass<6, INVERSE>(z, plan, of, length, w);
        break;
    default:
        pass<8, INVERSE>(z, plan, of, length, w);
    }
    __syncthreads();
}

// Forward from natural order to the passes' own; inverse, without 1/n, from there to natural order.
template <bool INVERSE, typename T>
inline __device__ void transform_axis(complex_of<T> *z, const cuda_dft &plan, const lines &of,
                                      const complex_of<T> *twiddle)
{
    int length = INVERSE ? 1 : plan.n;
    for (int i = 0; i < plan.passes; i++) {
        const int p = INVERSE ? plan.passes - 1 - i : i;
        if (INVERSE) length *= plan.radix[p];
        pass_of<INVERSE>(z, plan, of, p, length, twiddle);
        if (!INVERSE) length /= plan.radix[p];
    }
}

// All axes of `pairs` tiles: of their `planes` planes and `rows` rows, others being zeros (forward) or not wanted
// (inverse). Begins and ends with a barrier.
template <bool INVERSE, typename T>
inline __device__ void transform(complex_of<T> *z, const cuda_tiles &tiles, int pairs, int planes, int rows)
{
    const cuda_dft *axis = tiles.dft;
    const complex_of<T> *twiddle = (const complex_of<T> *)tiles.tables.twiddle;
    const lines along[3] = {{axis[2].n, 1, axis[1].n, axis[1].step, pairs, tiles.elements},
                            {axis[2].n, 1, planes, axis[0].step, pairs, tiles.elements},
                            {rows, axis[1].step, planes, axis[0].step, pairs, tiles.elements}};
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const int a = INVERSE ? i : 2 - i;
        transform_axis<INVERSE>(z, axis[a], along[a], twiddle);
    }
}

#endif
