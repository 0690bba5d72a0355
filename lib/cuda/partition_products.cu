// SPDX-License-Identifier: MIT
// Products of cuda/partitioned: of every output the sum over its cells and their partitions, for the tick's share of
// the bins of each level. Both spectra are read once, 16 bytes a thread, and nothing else is: sums stay in registers.
#include "bins.cuh"
#include "grid.cuh"
#include "partitions.h"

namespace {
// What a thread reads at once.
template <typename T> struct __align__(16) piece
{
    static constexpr int BINS = 16 / sizeof(bin<T>);
    bin<T> bins[BINS];
};

// Of one bin: the parts that the real part is the difference of are kept apart, since those of the packed bin are two
// results.
template <typename T> struct sum {
    T real, minus, imaginary;
};

template <typename T> __device__ void add_product(sum<T> *s, const piece<T> &a, const piece<T> &b)
{
    for (int v = 0; v < piece<T>::BINS; v++) {
        s[v].real += a.bins[v].re * b.bins[v].re;
        s[v].minus += a.bins[v].im * b.bins[v].im;
        s[v].imaginary += a.bins[v].re * b.bins[v].im;
        s[v].imaginary += a.bins[v].im * b.bins[v].re;
    }
}

// Lanes take pieces of the share, groups of them take partitions in turn; lanes * groups threads.
template <typename T> int lanes_of(const cuda_partitions &partitions)
{
    const int lanes = partitions.share / piece<T>::BINS;
    return lanes < 32 ? lanes : 32;
}

// Adds the groups' sums up by a tree; group 0 has the result.
template <typename T> __device__ void reduce(sum<T> *own, int lanes)
{
    sum<T> *shared = (sum<T> *)shared_memory;
    constexpr int BINS = piece<T>::BINS;
    for (int v = 0; v < BINS; v++) shared[v * CUDA_PARTITION_THREADS + threadIdx.x] = own[v];
    for (int half = CUDA_PARTITION_THREADS / 2; half >= lanes; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        for (int v = 0; v < BINS; v++) {
            const sum<T> other = shared[v * CUDA_PARTITION_THREADS + threadIdx.x + half];
            own[v] = {own[v].real + other.real, own[v].minus + other.minus, own[v].imaginary + other.imaginary};
            shared[v * CUDA_PARTITION_THREADS + threadIdx.x] = own[v];
        }
    }
}

// Blocks are [level][set][output][chunk of lanes].
template <typename T>
__global__ void __launch_bounds__(CUDA_PARTITION_THREADS, sizeof(T) == 8 ? 3 : 4)
    products_kernel(const __grid_constant__ cuda_partitions partitions, const __grid_constant__ cuda_flow flow,
                    int lanes)
{
    constexpr int BINS = piece<T>::BINS;
    const int pieces = partitions.share / BINS, groups = CUDA_PARTITION_THREADS / lanes;
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
    sum<T> sums[BINS] = {};
    for (int c = filter.first_cell[out]; c < filter.first_cell[out + 1]; c++) {
        const cuda_cell &cell = filter.cells[c];
        const int count = cell.level[block].count, first = cell.level[block].first;
        const piece<T> *h = taps + cell.level[block].base * pieces;
        const piece<T> *x = inputs + (int64_t)cell.in * level.parts * pieces;
#pragma unroll 4
        for (int p = group; p < count; p += groups) {
            const int slot = newest - first - p;
            add_product(sums, h[(int64_t)p * pieces], x[(int64_t)(slot < 0 ? slot + level.parts : slot) * pieces]);
        }
    }
    reduce(sums, lanes);
    if (group) return;
    bin<T> *to = (bin<T> *)flow.level[block].sums + ((int64_t)set * partitions.outputs + out) * level.points +
                 (int64_t)phase * partitions.share + lane * BINS;
    for (int v = 0; v < BINS; v++) {
        const bool packed = !partitions.complex && phase == 0 && lane == 0 && v == 0;
        to[v] = packed ? bin<T>{sums[v].real, sums[v].minus} : bin<T>{sums[v].real - sums[v].minus, sums[v].imaginary};
    }
}

template <typename T> cudaError_t launch(const cuda_partitions *partitions, const cuda_flow *flow, cudaStream_t stream)
{
    const int lanes = lanes_of<T>(*partitions);
    const int64_t chunks = partitions->share / piece<T>::BINS / lanes;
    const size_t bytes = sizeof(sum<T>) * piece<T>::BINS * CUDA_PARTITION_THREADS;
    return queue(products_kernel<T>, partitions->n_levels * 2 * partitions->outputs * chunks,
                 dim3(CUDA_PARTITION_THREADS), bytes, stream, *partitions, *flow, lanes);
}
} // namespace

cudaError_t cuda_launch_products(const cuda_partitions *partitions, const cuda_flow *flow, cudaStream_t stream)
{
    return partitions->f64 ? launch<double>(partitions, flow, stream) : launch<float>(partitions, flow, stream);
}
