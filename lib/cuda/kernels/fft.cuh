// SPDX-License-Identifier: MIT
// Transforms in a thread block. n/16 threads hold 16 of the n points each in registers and exchange
// them through shared memory between passes. A pass divides each node, a polynomial modulo
// u^m - z^m, into its remainders modulo u^(m/R) - z_k^(m/R), k < R (Fiduccia 1972; Bernstein,
// Multidigit multiplication for mathematicians, 2001). Twiddle factors are a node's, not a point's:
// R/2 numbers each way. Bins are not reordered.
//
// A forward pass divides by two log2 R times. Its butterflies multiply before they add, and take
// six multiply-adds each with the factor as cosine and tangent (Linzer & Feig, Implementation of
// efficient FFT algorithms on fused multiply-add architectures, 1993). An inverse pass, which
// multiplies last, has such butterflies with the roots of unity and then powers of one factor.
//
// Before fft_block_forward and after fft_block_inverse thread t holds points t + j*threads as v[j];
// after fft_block_forward and before fft_block_inverse it holds 16 bins, which lie in memory as
// spectrum[j*threads + t]. An inverse multiplies by n.
#ifndef PARTITA_CUDA_FFT_CUH
#define PARTITA_CUDA_FFT_CUH

#include "complex.cuh"
#include "fft.h"

// Two of the R/2 numbers, at least two, of a node that a pass divides by R. They lie in the table
// as [pair][node]; forward is followed by inverse.
//   Forward, for the node u^m - e^(-2 pi i theta), -1/2 <= theta < 1/2: (cos, tan) of the factors
//   of its butterflies. Level l has 2^(l-1) nodes, and an odd one has the factor of the one before
//   times -i, so that there are 1, 1, 2 and 4 of e^(-2 pi i (theta + k)/2^l), with k in the order
//   of the nodes.
//   Inverse: c^(R/2), then c, c^2, .. c^(R/2-1) of c = e^(-2 pi i theta/R).
template <typename T> struct __align__(4 * sizeof(T)) fft_twiddles
{
    complex_of<T> first, second;
};

// A thread in one of the transforms of its block.
template <typename T> struct fft_thread {
    const fft_twiddles<T> *twiddles;
    complex_of<T> *shared; // cuda_fft_shared bytes
    int log2_points, last, thread;
    bool negacyclic;
};

template <typename T>
inline __device__ fft_thread<T> fft_thread_at(const cuda_fft_form &form, void *shared, int thread)
{
    return {(const fft_twiddles<T> *)form.twiddles,
            (complex_of<T> *)shared,
            form.log2_points,
            form.last,
            thread,
            form.negacyclic};
}

// a + w b and a - w b, w = cos (1 + i tan), or with -i w if ROTATED. Each component of w b is
// rounded once before it is multiplied by the cosine, so the error does not grow with the tangent.
template <bool ROTATED, typename T>
inline __device__ void fft_butterfly(complex_of<T> &a, complex_of<T> &b, T cosine, T tangent)
{
    const complex_of<T> r = {b.re - tangent * b.im, b.im + tangent * b.re};
    const complex_of<T> w = ROTATED ? complex_of<T>{r.im, -r.re} : r;
    b = {a.re - cosine * w.re, a.im - cosine * w.im};
    a = {a.re + cosine * w.re, a.im + cosine * w.im};
}

// The same with w = 1; BACK: with i instead of -i.
template <bool BACK, bool ROTATED, typename T>
inline __device__ void fft_add_butterfly(complex_of<T> &a, complex_of<T> &b)
{
    complex_of<T> w = b;
    if (ROTATED) w = BACK ? complex_of<T>{-b.im, b.re} : complex_of<T>{b.im, -b.re};
    b = a - w;
    a = a + w;
}

inline __host__ __device__ constexpr int fft_log2(int radix)
{
    return 1 + (radix > 2) + (radix > 4) + (radix > 8);
}

// Levels of butterflies leave the remainders in the order of reversed bits; this puts them in
// order.
template <typename T, int R> inline __device__ void put_in_order(complex_of<T> *v)
{
    constexpr int BITS = fft_log2(R);
#pragma unroll
    for (int k = 0; k < R; k++) {
        const int reversed =
            ((k & 1) << 3 | (k & 2) << 1 | (k & 4) >> 1 | (k & 8) >> 3) >> (4 - BITS);
        if (reversed <= k) continue;
        const complex_of<T> other = v[reversed];
        v[reversed] = v[k];
        v[k] = other;
    }
}

// The remainders of a node of R points. Its twiddles are `apart` pairs from each other; a level
// loads its own, so that few registers hold them.
template <typename T, int R>
inline __device__ void divide_node(complex_of<T> *v, const fft_twiddles<T> *twiddles, int apart)
{
    complex_of<T> w[8];
#pragma unroll
    for (int level = 0; level < fft_log2(R); level++) {
        const int half = R >> (level + 1), first = (1 << level) / 2;
#pragma unroll
        for (int i = 0; i < (first > 1 ? first : 2) && level != 1; i += 2) {
            const fft_twiddles<T> two = twiddles[(first + i) / 2 * apart];
            w[first + i] = two.first;
            w[first + i + 1] = two.second;
        }
#pragma unroll
        for (int i = 0; i < R / 2; i++) {
            const int node = i / half, at = i + half * node;
            const complex_of<T> factor = w[first + node / 2];
            if (node % 2) fft_butterfly<true>(v[at], v[at + half], factor.re, factor.im);
            else fft_butterfly<false>(v[at], v[at + half], factor.re, factor.im);
        }
    }
    put_in_order<T, R>(v);
}

// v[k] = sum over j of v[j] e^(-2 pi i jk/R); BACK: of e^(2 pi i jk/R).
template <typename T, int R, bool BACK> inline __device__ void dft(complex_of<T> *v)
{
    // (cos, tan) of the eighth of a revolution, of a sixteenth and of three; the other factors, 0,
    // 1, 2 and 4, are 1.
    const T cosine[3] = {(T)0.70710678118654752440, (T)0.92387953251128675613,
                         (T)0.38268343236508977173};
    const T tangent[3] = {1, (T)0.41421356237309504880, (T)2.41421356237309504880};
#pragma unroll
    for (int level = 0; level < fft_log2(R); level++) {
        const int half = R >> (level + 1);
#pragma unroll
        for (int i = 0; i < R / 2; i++) {
            const int node = i / half, at = i + half * node;
            const int factor = (1 << level) / 2 + node / 2, which = factor < 6 ? 0 : factor - 5;
            const bool one = factor != 3 && factor < 5;
            const T c = BACK && node % 2 ? -cosine[which] : cosine[which],
                    t = BACK ? tangent[which] : -tangent[which];
            if (one && node % 2) fft_add_butterfly<BACK, true>(v[at], v[at + half]);
            else if (one) fft_add_butterfly<BACK, false>(v[at], v[at + half]);
            else if (node % 2) fft_butterfly<true>(v[at], v[at + half], c, t);
            else fft_butterfly<false>(v[at], v[at + half], c, t);
        }
    }
    put_in_order<T, R>(v);
}

// v[j] times c^-j.
template <typename T, int R>
inline __device__ void fft_rotate_back(complex_of<T> *v, const fft_twiddles<T> *twiddles, int apart)
{
    constexpr int HALF = R / 2;
#pragma unroll
    for (int i = 0; i < HALF; i += 2) {
        const fft_twiddles<T> two = twiddles[i / 2 * apart];
#pragma unroll
        for (int j = 0; j < HALF && i == 0; j++) v[HALF + j] = v[HALF + j] * conjugated(two.first);
        if (i > 0) v[i] = v[i] * conjugated(two.first);
        if (i > 0) v[HALF + i] = v[HALF + i] * conjugated(two.first);
        if (HALF == 1) continue;
        v[i + 1] = v[i + 1] * conjugated(two.second);
        v[HALF + i + 1] = v[HALF + i + 1] * conjugated(two.second);
    }
}

// One of a thread's 16/R sums in a pass over nodes of 2^log2_node points: its node, the index of
// its first point in shared memory, and the distance to the next.
struct fft_sum {
    int node, at, step;
};

// One number is left free behind every 16, so that neither rows nor columns share a bank; short
// transforms, whose columns are narrower, need none.
inline __device__ int fft_padded(int at, int log2_points)
{
    return at + (log2_points < 8 ? 0 : at >> 4);
}

template <int R>
inline __device__ fft_sum fft_sum_of(int log2_points, int log2_node, int thread, int i)
{
    const int log2_step = log2_node - fft_log2(R), step = 1 << log2_step;
    const int sum = thread + (i << (log2_points - 4)), node = sum >> log2_step;
    return {node, fft_padded((node << log2_node) + (sum & (step - 1)), log2_points),
            fft_padded(step, log2_points)};
}

template <typename T, int R>
inline __device__ void fft_get(const fft_thread<T> &fft, int log2_node, complex_of<T> *v)
{
#pragma unroll
    for (int i = 0; i < 16 / R; i++) {
        const fft_sum sum = fft_sum_of<R>(fft.log2_points, log2_node, fft.thread, i);
#pragma unroll
        for (int j = 0; j < R; j++) v[i * R + j] = fft.shared[sum.at + j * sum.step];
    }
}

template <typename T, int R>
inline __device__ void fft_put(const fft_thread<T> &fft, int log2_node, const complex_of<T> *v)
{
#pragma unroll
    for (int i = 0; i < 16 / R; i++) {
        const fft_sum sum = fft_sum_of<R>(fft.log2_points, log2_node, fft.thread, i);
#pragma unroll
        for (int j = 0; j < R; j++) fft.shared[sum.at + j * sum.step] = v[i * R + j];
    }
}

// `table`: the twiddles of the pass.
template <typename T, int R, bool BACK>
inline __device__ void fft_radix_pass(const fft_thread<T> &fft, const fft_twiddles<T> *table,
                                      int log2_node, complex_of<T> *v)
{
    const int nodes = 1 << (fft.log2_points - log2_node);
#pragma unroll
    for (int i = 0; i < 16 / R; i++) {
        const fft_twiddles<T> *const twiddles =
            table + fft_sum_of<R>(fft.log2_points, log2_node, fft.thread, i).node;
        if (BACK) {
            dft<T, R, true>(v + i * R);
            fft_rotate_back<T, R>(v + i * R, twiddles + CUDA_FFT_PAIRS(fft_log2(R)) * nodes, nodes);
        } else divide_node<T, R>(v + i * R, twiddles, nodes);
    }
}

// An inner pass: nodes of 2^log2_node points are divided by 2^log2_radix; `first` is where its
// twiddles begin.
struct fft_inner {
    int log2_node, log2_radix, first;
};

// Forward: points come from shared memory, as the pass before left them, and go back to the same
// addresses unless they are bins.
template <typename T, int R>
inline __device__ void fft_down(const fft_thread<T> &fft, const fft_inner &pass, complex_of<T> *v)
{
    fft_get<T, R>(fft, pass.log2_node, v);
    fft_radix_pass<T, R, false>(fft, fft.twiddles + pass.first, pass.log2_node, v);
    if (pass.log2_node > pass.log2_radix) fft_put<T, R>(fft, pass.log2_node, v);
}

// The inverse of it.
template <typename T, int R>
inline __device__ void fft_up(const fft_thread<T> &fft, const fft_inner &pass, complex_of<T> *v)
{
    if (pass.log2_node > pass.log2_radix) fft_get<T, R>(fft, pass.log2_node, v);
    fft_radix_pass<T, R, true>(fft, fft.twiddles + pass.first, pass.log2_node, v);
    fft_put<T, R>(fft, pass.log2_node, v);
}

// The first pass has one node; of cyclic transforms its factors are roots of unity.
template <typename T, bool BACK>
inline __device__ void fft_outer_pass(const fft_thread<T> &fft, complex_of<T> *v)
{
    if (fft.negacyclic) fft_radix_pass<T, 16, BACK>(fft, fft.twiddles, fft.log2_points, v);
    else dft<T, 16, BACK>(v);
}

// Of both directions of a pass that divides `nodes` nodes.
inline __device__ int fft_pass_twiddles(int log2_radix, int nodes)
{
    return 2 * CUDA_FFT_PAIRS(log2_radix) * nodes;
}

// A copy that the compiler takes for another value, so that addresses are computed where they are
// used instead of being kept in registers across a loop.
template <typename T> inline __device__ fft_thread<T> fft_recompute(fft_thread<T> fft)
{
    asm volatile("" : "+r"(fft.thread));
    return fft;
}

// All threads of the block take part. The caller needs no barrier between its own use of the shared
// memory and a transform, but one afterwards.
template <typename T>
inline __device__ void fft_block_forward(const fft_thread<T> &fft, complex_of<T> v[16])
{
    fft_outer_pass<T, false>(fft, v);
    if (fft.log2_points == 4) return;
    __syncthreads();
    fft_put<T, 16>(fft, fft.log2_points, v);
    fft_inner pass = {fft.log2_points - 4, CUDA_FFT_SECOND_RADIX(fft.log2_points),
                      fft_pass_twiddles(4, 1)};
    while (pass.log2_node > 0) {
        __syncthreads();
        if (pass.log2_radix == 1) fft_down<T, 2>(fft, pass, v);
        else if (pass.log2_radix == 2) fft_down<T, 4>(fft, pass, v);
        else if (pass.log2_radix == 3) fft_down<T, 8>(fft, pass, v);
        else fft_down<T, 16>(fft, pass, v);
        pass.first += fft_pass_twiddles(pass.log2_radix, 1 << (fft.log2_points - pass.log2_node));
        pass.log2_node -= pass.log2_radix;
        pass.log2_radix = 4;
    }
}

template <typename T>
inline __device__ void fft_block_inverse(const fft_thread<T> &fft, complex_of<T> v[16])
{
    if (fft.log2_points > 4) {
        const int longest = fft.log2_points - 4, second = CUDA_FFT_SECOND_RADIX(fft.log2_points);
        fft_inner pass = {longest == second ? second : 4, longest == second ? second : 4, fft.last};
        __syncthreads();
        for (;;) {
            if (pass.log2_radix == 1) fft_up<T, 2>(fft, pass, v);
            else if (pass.log2_radix == 2) fft_up<T, 4>(fft, pass, v);
            else if (pass.log2_radix == 3) fft_up<T, 8>(fft, pass, v);
            else fft_up<T, 16>(fft, pass, v);
            __syncthreads();
            if (pass.log2_node == longest) break;
            pass.log2_radix = longest - pass.log2_node == second ? second : 4;
            pass.log2_node += pass.log2_radix;
            pass.first -=
                fft_pass_twiddles(pass.log2_radix, 1 << (fft.log2_points - pass.log2_node));
        }
        fft_get<T, 16>(fft, fft.log2_points, v);
    }
    fft_outer_pass<T, true>(fft, v);
}

#endif
