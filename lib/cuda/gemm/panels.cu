// SPDX-License-Identifier: MIT
// Panels of cuda/gemm, the implicit matrices of a convolution (Chetlur et al., cuDNN: efficient
// primitives for deep learning, 2014). Neighbouring threads have neighbouring positions, so that
// panels and sums are read and written in whole lines of memory.
#include "cuda/kernels/pass.cuh"
#include "cuda/kernels/storage.cuh"
#include "kernels.h"

namespace {
// The item and output of a position. There are less than 2^31 of them.
struct position_index {
    uint32_t item, z, y, x;
};

inline __device__ position_index position_of(const cuda_pass &pass, int64_t position)
{
    const uint32_t nx = (uint32_t)pass.axis[2].n, ny = (uint32_t)pass.axis[1].n,
                   nz = (uint32_t)pass.axis[0].n;
    uint32_t rest = (uint32_t)position;
    position_index ret;
    ret.x = rest % nx, rest /= nx;
    ret.y = rest % ny, rest /= ny;
    ret.z = rest % nz, ret.item = rest / nz;
    return ret;
}

// A term, the same for all threads of a block.
struct term_index {
    int64_t channel, t0, t1, t2;

    __device__ term_index(const cuda_pass &pass, int64_t term)
    {
        t2 = take(&term, pass.axis[2].taps);
        t1 = take(&term, pass.axis[1].taps);
        t0 = take(&term, pass.axis[0].taps);
        channel = term;
    }

    __device__ void next(const cuda_pass &pass)
    {
        if (++t2 < pass.axis[2].taps) return;
        t2 = 0;
        if (++t1 < pass.axis[1].taps) return;
        t1 = 0;
        if (++t0 < pass.axis[0].taps) return;
        t0 = 0;
        channel++;
    }
};

inline __host__ __device__ int64_t terms_of(const cuda_pass &pass)
{
    return pass.from * pass.axis[0].taps * pass.axis[1].taps * pass.axis[2].taps;
}

// Whether a sample that an output meets exists, and where it is in its channel.
struct sample_index {
    bool within;
    int64_t at;

    __device__ sample_index(const cuda_axis axis[3], int64_t plane, int64_t row, int64_t column)
        : within(in_bounds(plane, axis[0].from_size) && in_bounds(row, axis[1].from_size) &&
                 in_bounds(column, axis[2].from_size)),
          at((plane * axis[1].from_size + row) * axis[2].from_size + column)
    {
    }
};

// Blocks are [group][CUDA_GEMM_EACH terms][CUDA_THREADS positions]. POINT: there is one tap, so
// that all terms of a position are samples at one place.
template <typename S, typename T, bool POINT>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    gemm_load_kernel(const __grid_constant__ cuda_gemm gemm, T *panel, const S *from)
{
    const cuda_pass &pass = gemm.pass;
    const cuda_axis *axis = pass.axis;
    const int64_t terms = POINT ? pass.from : terms_of(pass), channel = from_plane(pass);
    int64_t block = blockIdx.x;
    const int64_t column = take(&block, ceiling(gemm.n, CUDA_THREADS)) * CUDA_THREADS + threadIdx.x;
    const int64_t first = take(&block, ceiling(terms, CUDA_GEMM_EACH)) * CUDA_GEMM_EACH,
                  group = block;
    if (column >= gemm.n) return;
    const position_index at = position_of(pass, gemm.first + column);
    const int64_t z = met(axis[0], at.z, 0), y = met(axis[1], at.y, 0), x = met(axis[2], at.x, 0);
    from += (at.item * pass.groups + group) * pass.from * channel;
    panel += (group * terms + first) * gemm.pitch + column;
    if (POINT) {
        const sample_index sample(axis, z, y, x);
        from += first * channel + sample.at;
#pragma unroll
        for (int i = 0; i < CUDA_GEMM_EACH; i++, panel += gemm.pitch, from += channel) {
            if (first + i >= terms) return;
            *panel = sample.within ? widened(*from) : 0;
        }
        return;
    }
    term_index term(pass, first);
#pragma unroll
    for (int i = 0; i < CUDA_GEMM_EACH; i++, panel += gemm.pitch, term.next(pass)) {
        const sample_index sample(axis, z + axis[0].from_dilation * term.t0,
                                  y + axis[1].from_dilation * term.t1,
                                  x + axis[2].from_dilation * term.t2);
        if (first + i >= terms) return;
        *panel = sample.within ? widened(from[term.channel * channel + sample.at]) : 0;
    }
}

// Blocks are [group][CUDA_GEMM_EACH channels][CUDA_THREADS positions].
template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    gemm_store_kernel(const __grid_constant__ cuda_gemm gemm, S *to, const T *sums, const S *bias)
{
    const cuda_pass &pass = gemm.pass;
    const cuda_axis *axis = pass.axis;
    int64_t block = blockIdx.x;
    const int64_t column = take(&block, ceiling(gemm.n, CUDA_THREADS)) * CUDA_THREADS + threadIdx.x;
    const int64_t first = take(&block, ceiling(pass.to, CUDA_GEMM_EACH)) * CUDA_GEMM_EACH,
                  channel = block * pass.to + first;
    if (column >= gemm.n) return;
    const position_index at = position_of(pass, gemm.first + column);
    const int64_t plane = axis[0].to_first + axis[0].to_step * at.z,
                  row = axis[1].to_first + axis[1].to_step * at.y;
    to += (at.item * pass.groups * pass.to + channel) * to_plane(pass) +
          (plane * axis[1].to_size + row) * axis[2].to_size + axis[2].to_first +
          axis[2].to_step * at.x;
    sums += channel * gemm.pitch + column;
#pragma unroll
    for (int i = 0; i < CUDA_GEMM_EACH; i++, to += to_plane(pass), sums += gemm.pitch) {
        if (first + i >= pass.to) return;
        T sum = *sums;
#pragma unroll 4
        for (int64_t chunk = 1; chunk < gemm.chunks; chunk++) sum += sums[chunk * gemm.chunk_plane];
        if (bias) sum += widened(bias[channel + i]);
        if (pass.relu && sum < 0) sum = 0; // a NaN stays one
        narrow(to, sum);
    }
}

// The caller's tap of a group, an output channel and a term.
inline __device__ int64_t caller_tap(const cuda_pass &pass, int64_t group, int64_t to,
                                     int64_t number)
{
    const term_index term(pass, number);
    return group * pass.tap_group + to * pass.tap_to + term.channel * pass.tap_from +
           tap_index(pass, term.t0, term.t1, term.t2);
}

// Blocks are [group][term][CUDA_THREADS output channels].
template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    gemm_taps_kernel(const __grid_constant__ cuda_gemm gemm, T *packed, const S *taps)
{
    const cuda_pass &pass = gemm.pass;
    const int64_t terms = terms_of(pass);
    int64_t block = blockIdx.x;
    const int64_t to = take(&block, ceiling(pass.to, CUDA_THREADS)) * CUDA_THREADS + threadIdx.x;
    const int64_t term = take(&block, terms), group = block;
    if (to >= pass.to) return;
    packed[(group * terms + term) * gemm.pitch + to] =
        widened(taps[caller_tap(pass, group, to, term)]);
}

// Blocks are [group][output channel][CUDA_THREADS terms].
template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    gemm_gradient_kernel(const __grid_constant__ cuda_gemm gemm, S *gw, const T *sums)
{
    const cuda_pass &pass = gemm.pass;
    const int64_t terms = terms_of(pass);
    int64_t block = blockIdx.x;
    const int64_t term = take(&block, ceiling(terms, CUDA_THREADS)) * CUDA_THREADS + threadIdx.x;
    const int64_t to = take(&block, pass.to), group = block;
    if (term >= terms) return;
    sums += (group * pass.to + to) * gemm.pitch + term;
    T sum = *sums;
    for (int64_t chunk = 1; chunk < gemm.chunks; chunk++) sum += sums[chunk * gemm.chunk_plane];
    narrow(&gw[caller_tap(pass, group, to, term)], sum);
}
} // namespace

cudaError_t cuda_gemm_queue(const cuda_gemm *gemm, cuda_layer_move move, void *to, const void *from,
                            const void *bias)
{
    const cuda_pass &pass = gemm->pass;
    const int64_t terms = terms_of(pass), positions = ceiling(gemm->n, CUDA_THREADS);
    const dim3 threads(CUDA_THREADS);
    return with_storage(gemm->storage, [=](auto zero) {
        typedef decltype(zero) S;
        typedef typename sum_of<S>::type T;
        if (move == CUDA_STORE)
            return queue(gemm_store_kernel<S, T>,
                         positions * ceiling(pass.to, CUDA_GEMM_EACH) * pass.groups, threads, 0,
                         *gemm, to, from, bias);
        if (move == CUDA_PACK)
            return queue(gemm_taps_kernel<S, T>,
                         ceiling(pass.to, CUDA_THREADS) * terms * pass.groups, threads, 0, *gemm,
                         to, from);
        if (move == CUDA_UNPACK)
            return queue(gemm_gradient_kernel<S, T>,
                         ceiling(terms, CUDA_THREADS) * pass.to * pass.groups, threads, 0, *gemm,
                         to, from);
        return queue(
            terms == pass.from ? gemm_load_kernel<S, T, true> : gemm_load_kernel<S, T, false>,
            positions * ceiling(terms, CUDA_GEMM_EACH) * pass.groups, threads, 0, *gemm, to, from);
    });
}
