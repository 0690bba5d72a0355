// SPDX-License-Identifier: MIT
// Winograd's transforms of one tile in registers, along one axis. Points come in pairs +-p
// (winograd_matrix.h), whose rows have equal even parts and opposite odd parts: each part is
// computed once. Extents are constants, so that a tile stays in registers; coefficients are
// parameters of the launch, which multiply-adds read as they go; counts of outputs and taps are the
// same for all threads.
#ifndef PARTITA_CUDA_WINOGRAD_CUH
#define PARTITA_CUDA_WINOGRAD_CUH

#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/storage.cuh"

#include "base/winograd_matrix.h"

template <typename T> struct winograd_points {
    enum { PAIRS = WINOGRAD_EXTENT / 2 - 1 };
    T p[PAIRS];
    // Product of (x^2 - q^2) over all pairs, and over all but one: coefficients of 1, x^2, .., of
    // which the last is 1.
    T all[PAIRS + 1], others[PAIRS][PAIRS];
    T power[PAIRS][WINOGRAD_EXTENT]; // p^k
    T taps[PAIRS][WINOGRAD_EXTENT];  // that over the divisor of p's row of G
    T first;                         // the first row's only entry
};

template <typename T> winograd_points<T> winograd_points_of(int extent)
{
    winograd_points<T> points = {};
    const size_t n = extent;
    if (n == 1) return points;
    double row[WINOGRAD_EXTENT];
    winograd_input_row(n, 0, row);
    for (size_t k = 0; k < n / 2; k++) points.all[k] = (T)row[2 * k];
    points.first = (T)winograd_taps_entry(n, 2, 0, 0);
    for (size_t pair = 0; pair < n / 2 - 1; pair++) {
        points.p[pair] = (T)winograd_pair(n, pair);
        winograd_input_row(n, 1 + 2 * pair, row);
        for (size_t k = 0; k < n / 2 - 1; k++) points.others[pair][k] = (T)row[2 + 2 * k];
        for (size_t k = 0; k + 1 < n; k++) {
            points.power[pair][k] = (T)winograd_output_entry(n, n, k, 1 + 2 * pair);
            points.taps[pair][k] = (T)winograd_taps_entry(n, n, k, 1 + 2 * pair);
        }
    }
    return points;
}

// Sum of c[k] * x[from + 2k], k <= DEGREE; the last coefficient is 1.
template <int DEGREE, typename T>
inline __device__ T alternate_sum(const T *x, int from, const T *c)
{
    T sum = x[from + 2 * DEGREE];
#pragma unroll
    for (int k = DEGREE - 1; k >= 0; k--) sum += c[k] * x[from + 2 * k];
    return sum;
}

// y = B' x, `E` of both.
template <int E, typename T>
inline __device__ void input_transform(T *y, const T *x, const winograd_points<T> &points)
{
    y[0] = alternate_sum<E / 2 - 1>(x, 0, points.all);
    y[E - 1] = alternate_sum<E / 2 - 1>(x, 1, points.all);
#pragma unroll
    for (int pair = 0; pair < E / 2 - 1; pair++) {
        const T even = alternate_sum<E / 2 - 2>(x, 2, points.others[pair]);
        const T odd = alternate_sum<E / 2 - 2>(x, 1, points.others[pair]);
        y[1 + 2 * pair] = even + points.p[pair] * odd;
        y[2 + 2 * pair] = even - points.p[pair] * odd;
    }
}

// y = A' x, `count` outputs.
template <int E, typename T>
inline __device__ void output_transform(T *y, const T *x, int count,
                                        const winograd_points<T> &points)
{
#pragma unroll
    for (int k = 0; k < E - 1; k++) {
        if (k >= count) break;
        T sum = k == 0 ? x[0] : 0;
#pragma unroll
        for (int pair = 0; pair < E / 2 - 1; pair++) {
            const T plus = x[1 + 2 * pair], minus = x[2 + 2 * pair];
            sum += points.power[pair][k] * (k % 2 ? plus - minus : plus + minus);
        }
        y[k] = k + 1 == count ? sum + x[E - 1] : sum;
    }
}

// y = G x, `count` taps.
template <int E, typename T>
inline __device__ void taps_transform(T *y, const T *x, int count, const winograd_points<T> &points)
{
    T parity[E / 2][2] = {}; // sums of even and of odd taps
    y[E - 1] = 0;
#pragma unroll
    for (int k = 0; k < E - 1; k++) {
        if (k >= count) break;
        if (k + 1 == count) y[E - 1] = x[k];
#pragma unroll
        for (int pair = 0; pair < E / 2 - 1; pair++)
            parity[pair][k % 2] += points.taps[pair][k] * x[k];
    }
    y[0] = points.first * x[0];
#pragma unroll
    for (int pair = 0; pair < E / 2 - 1; pair++) {
        y[1 + 2 * pair] = parity[pair][0] + parity[pair][1];
        y[2 + 2 * pair] = parity[pair][0] - parity[pair][1];
    }
}

enum winograd_transform { WINOGRAD_INPUT, WINOGRAD_OUTPUT, WINOGRAD_TAPS };

// One of them; an extent of 1 leaves the element alone.
template <winograd_transform TRANSFORM, int E, typename T>
inline __device__ void winograd_axis_transform(T *y, const T *x, int count,
                                               const winograd_points<T> &points)
{
    if constexpr (E == 1) y[0] = x[0];
    else if constexpr (TRANSFORM == WINOGRAD_INPUT) input_transform<E>(y, x, points);
    else if constexpr (TRANSFORM == WINOGRAD_OUTPUT) output_transform<E>(y, x, count, points);
    else taps_transform<E>(y, x, count, points);
}

// Along the first axis of a tile of `E0` by `E1`, column by column, in place.
template <winograd_transform TRANSFORM, int E0, int E1, typename T>
inline __device__ void winograd_columns(T (*v)[E1], int count, const winograd_points<T> &points)
{
    if constexpr (E0 > 1) {
#pragma unroll
        for (int j = 0; j < E1; j++) {
            T x[E0], y[E0] = {};
#pragma unroll
            for (int i = 0; i < E0; i++) x[i] = v[i][j];
            winograd_axis_transform<TRANSFORM, E0>(y, x, count, points);
#pragma unroll
            for (int i = 0; i < E0; i++) v[i][j] = y[i];
        }
    }
}

// Calls a function object with a stored zero and both extents, of which one at least
// is to be more than 1.
template <typename Use> cudaError_t with_extents(cuda_storage storage, const int n[2], Use use)
{
    return with_storage(storage, [=](auto zero) {
        return with_constant<1, 4, 6, 8>(n[0], [=](auto e0) {
            return with_constant<1, 4, 6, 8>(n[1], [=](auto e1) {
                if constexpr (decltype(e0)::value * decltype(e1)::value > 1)
                    return use(zero, e0, e1);
                else return cudaErrorInvalidValue;
            });
        });
    });
}

// Queues a kernel of these extents, which takes the points of both axes behind its layout.
template <typename T, typename Kernel, typename Layout, typename... Arguments>
cudaError_t queue_extents(Kernel *kernel, const int n[2], int64_t blocks, dim3 threads,
                          const Layout &layout, Arguments... arguments)
{
    return queue(kernel, blocks, threads, 0, layout, winograd_points_of<T>(n[0]),
                 winograd_points_of<T>(n[1]), arguments...);
}

#endif
