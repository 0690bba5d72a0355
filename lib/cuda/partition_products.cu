// SPDX-License-Identifier: MIT
// Products of cuda/partitioned: of every output the sum over its cells and their partitions, for the tick's share of
// the bins of each level. Both spectra are read once, 16 bytes a thread, and nothing else is: sums stay in registers.
#include "fft.cuh"
#include "grid.cuh"
#include "partitions.h"

namespace {
// What a thread reads at once, and its sums.
template <typename T> using piece = vector_of<complex_of<T>>;

template <typename T> inline __device__ void add_product(piece<T> &sum, const piece<T> &a, const piece<T> &b)
{
#pragma unroll
    for (int v = 0; v < piece<T>::N; v++) multiply_add(sum.at[v], a.at[v], b.at[v]);
}

// Lanes take pieces of the share, groups of them take partitions in turn; lanes * groups threads.
template <typename T> int lanes_of(const cuda_partitions &partitions)
{
    const int lanes = partitions.share / piece<T>::N;
    return lanes < 32 ? lanes : 32;
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

// Blocks are [level][set][output][chunk of lanes].
template <typename T>
__global__ void __launch_bounds__(CUDA_PRODUCT_THREADS, sizeof(T) == 8 ? 3 : 4)
    products_kernel(const __grid_constant__ cuda_partitions partitions, const __grid_constant__ cuda_flow flow,
                    int lanes)
{
    const int pieces = partitions.share / piece<T>::N, groups = CUDA_PRODUCT_THREADS / lanes;
    int64_t block = blockIdx.x;
    const int chunk = take(&block, pieces / lanes), out = take(&block, partitions.outputs), set = take(&block, 2);
    const cuda_level &level = partitions.level[block];
    const cuda_cells &filter = flow.own_tick->filter[set];
    if (!filter.first_cell) return;
    const uint64_t blocks = (flow.own_tick->tick + 1) / level.ticks; // complete ones
    const int phase = (flow.own_tick->tick + 1) % level.ticks, newest = (blocks + level.parts - 1) % level.parts;
    const int lane = chunk * lanes + threadIdx.x % lanes, group = threadIdx.x / lanes;
    const piece<T> *taps = (const piece<T> *)filter.spectra[block] + phase * filter.line[block] * pieces + lane;
    const piece<T> *inputs =
        (const piece<T> *)flow.level[block].spectra + (int64_t)phase * partitions.inputs * level.parts * pieces + lane;
    piece<T> sum = {};
    for (int c = filter.first_cell[out]; c < filter.first_cell[out + 1]; c++) {
        const cuda_cell &cell = filter.cells[c];
        const int count = cell.level[block].count, first = cell.level[block].first;
        const piece<T> *h = taps + cell.level[block].base * pieces;
        const piece<T> *x = inputs + (int64_t)cell.in * level.parts * pieces;
#pragma unroll 4
        for (int p = group; p < count; p += groups) {
            const int slot = newest - first - p;
            add_product(sum, h[(int64_t)p * pieces], x[(int64_t)(slot < 0 ? slot + level.parts : slot) * pieces]);
        }
    }
    reduce(sum, lanes);
    if (group) return;
    piece<T> *to = (piece<T> *)flow.level[block].sums;
    to[(((int64_t)set * partitions.outputs + out) * level.ticks + phase) * pieces + lane] = sum;
}

template <typename T> cudaError_t launch(const cuda_partitions *partitions, const cuda_flow *flow, cudaStream_t stream)
{
    const int lanes = lanes_of<T>(*partitions);
    const int64_t chunks = partitions->share / piece<T>::N / lanes;
    return queue(products_kernel<T>, partitions->n_levels * 2 * (int64_t)partitions->outputs * chunks,
                 dim3(CUDA_PRODUCT_THREADS), sizeof(piece<T>) * CUDA_PRODUCT_THREADS, stream, *partitions, *flow,
                 lanes);
}
} // namespace

cudaError_t cuda_load_partition_products(const cuda_partitions *partitions)
{
    return load_kernel(partitions->f64 ? products_kernel<double> : products_kernel<float>);
}

cudaError_t cuda_launch_partition_products(const cuda_partitions *partitions, const cuda_flow *flow,
                                           cudaStream_t stream)
{
    return partitions->f64 ? launch<double>(partitions, flow, stream) : launch<float>(partitions, flow, stream);
}
