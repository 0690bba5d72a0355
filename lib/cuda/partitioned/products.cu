// SPDX-License-Identifier: MIT
// Products of cuda/partitioned: of every output the sum over its cells and their partitions, for
// the tick's share of the bins of each level. Both spectra are read once, 16 bytes a thread, and
// nothing else is: sums stay in registers. Lanes take pieces of the share, groups of them cells in
// turn, or where these are few a cell's partitions.
#include "cuda/kernels/fft.cuh"
#include "cuda/kernels/launch.cuh"
#include "kernels.h"

namespace {
constexpr int LOG2_THREADS = 8;
static_assert(1 << LOG2_THREADS == CUDA_PRODUCT_THREADS, "");

// What a thread reads at once, and its sums.
template <typename T> using piece = vector_of<complex_of<T>>;

template <typename T>
inline __device__ void add_product(piece<T> &sum, const piece<T> &a, const piece<T> &b)
{
#pragma unroll
    for (int v = 0; v < piece<T>::N; v++) multiply_add(sum.at[v], a.at[v], b.at[v]);
}

// Adds the groups' sums up by a tree; group 0 has the result.
template <typename T> __device__ void reduce(piece<T> &sum, int lanes)
{
    piece<T> *shared = (piece<T> *)shared_memory;
    shared[threadIdx.x] = sum;
    for (int half = CUDA_PRODUCT_THREADS / 2; half >= lanes; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x >= half) continue;
        const piece<T> other = shared[threadIdx.x + half];
#pragma unroll
        for (int v = 0; v < piece<T>::N; v++) sum.at[v] = sum.at[v] + other.at[v];
        shared[threadIdx.x] = sum;
    }
}

// Reads 16 bytes with one instruction, which of numbers of two parts the compiler does not.
template <typename T> inline __device__ piece<T> load(const piece<T> *at)
{
    const vector_of<T> reals = *(const vector_of<T> *)at;
    piece<T> v;
#pragma unroll
    for (int i = 0; i < piece<T>::N; i++) v.at[i] = {reals.at[2 * i], reals.at[2 * i + 1]};
    return v;
}

// Adds n products, of places `step` apart: taps upwards, inputs downwards.
template <typename T>
inline __device__ void add_run(piece<T> &sum, const piece<T> *h, const piece<T> *x, int n,
                               int64_t step)
{
#pragma unroll 4
    for (; n > 0; n--) {
        add_product(sum, load(h), load(x));
        h += step;
        x -= step;
    }
}

// Adds partitions p, p + 2^log2_step, ... of a cell, `pieces` apart; h and x are those of partition
// 0 and slot 0. They meet the slots from `newest` down, and then those from the last one down.
template <typename T>
inline __device__ void add_cell(piece<T> &sum, const piece<T> *h, const piece<T> *x, int p,
                                int count, int log2_step, int newest, int slots, int64_t pieces)
{
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++, newest += slots) {
        const int end = newest + 1 < count ? newest + 1 : count, step = 1 << log2_step;
        const int n = p < end ? (end - p + step - 1) >> log2_step : 0;
        add_run(sum, h + p * pieces, x + (newest - p) * pieces, n, pieces << log2_step);
        p += n << log2_step;
    }
}

// Log2 of how many of `cells` cells 2^log2_groups groups take at once: as many as there are, but a
// power of two.
inline __device__ int log2_cells_at_once(int log2_groups, int cells)
{
    int log2 = 0;
    while (log2 < log2_groups && 2 << log2 <= cells) log2++;
    return log2;
}

// Blocks are [level][set][chunk of 2^log2_lanes lanes][output].
template <typename T>
__global__ void __launch_bounds__(CUDA_PRODUCT_THREADS, sizeof(T) == 8 ? 3 : 4)
    products_kernel(const __grid_constant__ cuda_partitions partitions,
                    const __grid_constant__ cuda_flow flow, int log2_lanes, int log2_chunks)
{
    const int64_t pieces = (int64_t)1 << (log2_lanes + log2_chunks);
    const unsigned outputs = partitions.outputs, above = blockIdx.x / outputs,
                   out = blockIdx.x - above * outputs;
    const int chunk = above & ((1 << log2_chunks) - 1), set = above >> log2_chunks & 1;
    const int number = above >> log2_chunks >> 1;
    const cuda_level &level = partitions.level[number];
    const cuda_cells &filter = flow.own_tick->filter[set];
    if (!filter.first_cell) return;
    const int phase = (flow.own_tick->tick + 1) & (level.ticks - 1),
              newest = flow.own_tick->newest[number];
    const int lane = (chunk << log2_lanes) + (threadIdx.x & ((1 << log2_lanes) - 1)),
              group = threadIdx.x >> log2_lanes;
    const piece<T> *taps =
        (const piece<T> *)filter.spectra[number] + phase * filter.line[number] * pieces + lane;
    const piece<T> *inputs = (const piece<T> *)flow.level[number].spectra +
                             (int64_t)phase * partitions.inputs * level.parts * pieces + lane;
    const int end = filter.first_cell[out + 1], first = filter.first_cell[out];
    const int log2_groups = LOG2_THREADS - log2_lanes,
              log2_cells = log2_cells_at_once(log2_groups, end - first);
    piece<T> sum = {};
    for (int c = first + (group & ((1 << log2_cells) - 1)); c < end; c += 1 << log2_cells) {
        const cuda_cell &cell = filter.cells[c];
        const auto &range = cell.level[number];
        const int slot = newest - range.first;
        add_cell(sum, taps + range.base * pieces, inputs + (int64_t)cell.in * level.parts * pieces,
                 group >> log2_cells, range.count, log2_groups - log2_cells,
                 slot < 0 ? slot + level.parts : slot, level.parts, pieces);
    }
    reduce(sum, 1 << log2_lanes);
    if (group) return;
    piece<T> *to = (piece<T> *)flow.level[number].sums;
    to[(((int64_t)set * outputs + out) * level.ticks + phase) * pieces + lane] = sum;
}

template <typename T>
cudaError_t launch(const cuda_partitions *partitions, const cuda_flow *flow, cudaStream_t stream)
{
    const int log2_pieces = partitions->log2_share - (piece<T>::N == 2);
    const int log2_lanes = log2_pieces < 5 ? log2_pieces : 5,
              log2_chunks = log2_pieces - log2_lanes;
    return queue(products_kernel<T>,
                 (partitions->n_levels * 2 * (int64_t)partitions->outputs) << log2_chunks,
                 dim3(CUDA_PRODUCT_THREADS), sizeof(piece<T>) * CUDA_PRODUCT_THREADS, stream,
                 *partitions, *flow, log2_lanes, log2_chunks);
}
} // namespace

cudaError_t cuda_load_partition_products(const cuda_partitions *partitions)
{
    return load_kernel(partitions->f64 ? products_kernel<double> : products_kernel<float>);
}

cudaError_t cuda_launch_partition_products(const cuda_partitions *partitions, const cuda_flow *flow,
                                           cudaStream_t stream)
{
    return partitions->f64 ? launch<double>(partitions, flow, stream)
                           : launch<float>(partitions, flow, stream);
}
