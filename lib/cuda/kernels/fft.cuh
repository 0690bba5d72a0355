// SPDX-License-Identifier: MIT
// Transforms in a thread block. n/16 threads hold 16 of the n points each in registers and exchange
// them through shared memory between passes. A pass divides each node, a polynomial modulo
// u^m - z^m, into its remainders modulo u^(m/R) - z_k^(m/R), k < R (Fiduccia 1972; Bernstein,
// Multidigit multiplication for mathematicians, 2001). All twiddle factors of a node are powers of
// one number, so the table has two numbers a node. Bins are not reordered.
//
// Before fft_block_forward and after fft_block_inverse thread t holds points t + j*threads as v[j];
// after fft_block_forward and before fft_block_inverse it holds 16 bins, which lie in memory as
// spectrum[j*threads + t]. An inverse multiplies by n.
#ifndef PARTITA_CUDA_FFT_CUH
#define PARTITA_CUDA_FFT_CUH

#include "complex.cuh"
#include "fft.h"

// a times c, or back by its conjugate.
template <bool BACK, typename T>
inline __device__ complex_of<T> rotate(complex_of<T> a, complex_of<T> c)
{
    return a * (BACK ? conjugated(c) : c);
}

// Twiddle factors of one node: c = e^(-2 pi i theta/R) where its modulus is
// u^m - e^(-2 pi i theta), and c^4.
template <typename T> struct __align__(4 * sizeof(T)) fft_twiddles
{
    complex_of<T> c, c4;
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

// v[k] = sum over j of v[j] w^(jk), w = e^(-2 pi i/R); BACK: with the conjugate of w.
template <typename T, bool BACK> inline __device__ void dft2(complex_of<T> &a, complex_of<T> &b)
{
    const complex_of<T> sum = a + b;
    b = a - b;
    a = sum;
}

template <typename T, bool BACK>
inline __device__ void dft4(complex_of<T> &a, complex_of<T> &b, complex_of<T> &c, complex_of<T> &d)
{
    const complex_of<T> s = a + c, t = a - c, p = b + d, q = b - d;
    const complex_of<T> r =
        BACK ? complex_of<T>{-q.im, q.re} : complex_of<T>{q.im, -q.re}; // q i or q/i
    a = s + p;
    b = t + r;
    c = s - p;
    d = t - r;
}

// a times e^(-2 pi i k/16), k = 1, 2, 3, 4, 6 or 9; BACK: times its conjugate.
template <typename T, bool BACK> inline __device__ complex_of<T> root16(complex_of<T> a, int k)
{
    const T c1 = (T)0.92387953251128675613, s1 = (T)0.38268343236508977173,
            c2 = (T)0.70710678118654752440;
    complex_of<T> w = {-c1, s1}; // 9
    if (k == 1) w = {c1, -s1};
    if (k == 2) w = {c2, -c2};
    if (k == 3) w = {s1, -c1};
    if (k == 4) w = {0, -1};
    if (k == 6) w = {-c2, -c2};
    return rotate<BACK>(a, w);
}

template <typename T, bool BACK> inline __device__ void dft8(complex_of<T> *v)
{
    dft4<T, BACK>(v[0], v[2], v[4], v[6]);
    dft4<T, BACK>(v[1], v[3], v[5], v[7]);
    complex_of<T> sum[8];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const complex_of<T> odd = k ? root16<T, BACK>(v[2 * k + 1], 2 * k) : v[1];
        sum[k] = v[2 * k] + odd;
        sum[k + 4] = v[2 * k] - odd;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = sum[k];
}

template <typename T, bool BACK> inline __device__ void dft16(complex_of<T> *v)
{
#pragma unroll
    for (int j = 0; j < 4; j++) dft4<T, BACK>(v[j], v[j + 4], v[j + 8], v[j + 12]);
        // Element k of column j is v[j + 4k].
#pragma unroll
    for (int k = 1; k < 4; k++)
#pragma unroll
        for (int j = 1; j < 4; j++) v[j + 4 * k] = root16<T, BACK>(v[j + 4 * k], j * k);
#pragma unroll
    for (int k = 0; k < 4; k++) dft4<T, BACK>(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
        // Sum k + 4i is v[4k + i].
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int i = k + 1; i < 4; i++) {
            const complex_of<T> sum = v[4 * k + i];
            v[4 * k + i] = v[4 * i + k];
            v[4 * i + k] = sum;
        }
}

template <typename T, int R, bool BACK> inline __device__ void dft(complex_of<T> *v)
{
    if (R == 2) dft2<T, BACK>(v[0], v[1]);
    if (R == 4) dft4<T, BACK>(v[0], v[1], v[2], v[3]);
    if (R == 8) dft8<T, BACK>(v);
    if (R == 16) dft16<T, BACK>(v);
}

// v[j] times c^j, or back.
template <typename T, int R, bool BACK>
inline __device__ void rotate_powers(complex_of<T> *v, const fft_twiddles<T> &node)
{
    const complex_of<T> c2 = node.c * node.c, power[4] = {{1, 0}, node.c, c2, c2 * node.c};
    const complex_of<T> c8 = node.c4 * node.c4, fourth[4] = {{1, 0}, node.c4, c8, c8 * node.c4};
#pragma unroll
    for (int j = 1; j < R; j++) {
        if (j % 4) v[j] = rotate<BACK>(v[j], power[j % 4]);
        if (j / 4) v[j] = rotate<BACK>(v[j], fourth[j / 4]);
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
    constexpr int LOG2_R = 1 + (R > 2) + (R > 4) + (R > 8);
    const int log2_step = log2_node - LOG2_R, step = 1 << log2_step;
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

template <typename T, int R, bool BACK>
inline __device__ void fft_radix_pass(const fft_thread<T> &fft, const fft_twiddles<T> *twiddles,
                                      int log2_node, complex_of<T> *v)
{
#pragma unroll
    for (int i = 0; i < 16 / R; i++) {
        const fft_twiddles<T> node =
            twiddles[fft_sum_of<R>(fft.log2_points, log2_node, fft.thread, i).node];
        if (!BACK) rotate_powers<T, R, false>(v + i * R, node);
        dft<T, R, BACK>(v + i * R);
        if (BACK) rotate_powers<T, R, true>(v + i * R, node);
    }
}

// An inner pass: nodes of 2^log2_node points are divided by 2^log2_radix; `first` is the index of
// the first node's twiddles.
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

// The first pass has one node; of cyclic transforms its twiddles are 1.
template <typename T, bool BACK>
inline __device__ void fft_outer_pass(const fft_thread<T> &fft, complex_of<T> *v)
{
    if (!BACK && fft.negacyclic) rotate_powers<T, 16, false>(v, fft.twiddles[0]);
    dft<T, 16, BACK>(v);
    if (BACK && fft.negacyclic) rotate_powers<T, 16, true>(v, fft.twiddles[0]);
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
    fft_inner pass = {fft.log2_points - 4, CUDA_FFT_SECOND_RADIX(fft.log2_points), 1};
    while (pass.log2_node > 0) {
        __syncthreads();
        if (pass.log2_radix == 1) fft_down<T, 2>(fft, pass, v);
        else if (pass.log2_radix == 2) fft_down<T, 4>(fft, pass, v);
        else if (pass.log2_radix == 3) fft_down<T, 8>(fft, pass, v);
        else fft_down<T, 16>(fft, pass, v);
        pass.first += 1 << (fft.log2_points - pass.log2_node);
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
            pass.first -= 1 << (fft.log2_points - pass.log2_node);
        }
        fft_get<T, 16>(fft, fft.log2_points, v);
    }
    fft_outer_pass<T, true>(fft, v);
}

#endif
