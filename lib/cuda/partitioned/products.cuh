// SPDX-License-Identifier: MIT
// Products: of every output the sum over its paths and their partitions, for the quantum's share of
// the bins of each segment. Both spectra are read once, 16 bytes a thread (8 and a scale of those
// in 16 bits), and nothing else is: sums stay in registers. Lanes divide the share among them;
// groups of lanes divide the paths, or where these are few the partitions of a path.
#ifndef PARTITA_CUDA_PRODUCTS_CUH
#define PARTITA_CUDA_PRODUCTS_CUH

#include "cuda/kernels/windows.cuh"
#include "phases.cuh"
#include "spectra_i16.cuh"

namespace {
constexpr int LOG2_THREADS = 8;
static_assert(1 << LOG2_THREADS == CUDA_PRODUCT_THREADS, "");

template <typename T>
inline __device__ void add_bin_products(bin_vector<T> &sum, const bin_vector<T> &a,
                                        const bin_vector<T> &b)
{
#pragma unroll
    for (int v = 0; v < bin_vector<T>::N; v++) multiply_add(sum.at[v], a.at[v], b.at[v]);
}

// Adds the groups' sums up by a tree; group 0 has the result.
template <typename T> __device__ void add_groups(bin_vector<T> &sum, int lanes)
{
    bin_vector<T> *shared = (bin_vector<T> *)shared_memory;
    shared[threadIdx.x] = sum;
    for (int half = CUDA_PRODUCT_THREADS / 2; half >= lanes; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x >= half) continue;
        const bin_vector<T> other = shared[threadIdx.x + half];
#pragma unroll
        for (int v = 0; v < bin_vector<T>::N; v++) sum.at[v] = sum.at[v] + other.at[v];
        shared[threadIdx.x] = sum;
    }
}

// Adds n products of spectra `step` vectors apart: taps upwards, inputs downwards.
template <typename T, typename Taps>
inline __device__ void add_span(bin_vector<T> &sum, Taps h, const bin_vector<T> *x, int n,
                                int64_t step)
{
#pragma unroll 4
    for (; n > 0; n--) {
        add_bin_products(sum, h.load(), load_bins(x));
        h.advance(step);
        x -= step;
    }
}

// A path's spectra in one segment, from its first partition on and from slot 0 of its input on.
template <typename T, typename Taps> struct path_operands {
    Taps taps;
    const bin_vector<T> *inputs;
    int count;         // partitions
    int newest, slots; // the first partition meets slot `newest`, the next ones those before it
    int64_t share;     // vectors from one spectrum to the next
};

// Adds partitions p, p + 2^log2_step, ... of a path: they meet the slots from `newest` down, and
// then those from the last one down.
template <typename T, typename Taps>
inline __device__ void add_path(bin_vector<T> &sum, const path_operands<T, Taps> &path, int p,
                                int log2_step)
{
    int newest = path.newest;
#pragma unroll 1
    for (int part = 0; part < 2; part++, newest += path.slots) {
        const int end = newest + 1 < path.count ? newest + 1 : path.count, step = 1 << log2_step;
        const int n = p < end ? (end - p + step - 1) >> log2_step : 0;
        Taps taps = path.taps;
        taps.advance(p * path.share);
        add_span(sum, taps, path.inputs + (newest - p) * path.share, n, path.share << log2_step);
        p += n << log2_step;
    }
}

// Log2 of how many of `paths` paths 2^log2_groups groups take at once: as many as there are, but a
// power of two.
inline __device__ int log2_paths_at_once(int log2_groups, int paths)
{
    int log2 = 0;
    while (log2 < log2_groups && 2 << log2 <= paths) log2++;
    return log2;
}

// Blocks are [segment][set][chunk of 2^log2_lanes lanes][output], where the outputs of a bank are
// [slot with its set][output of the slot]. Taps: tap_bins<T> or tap_bins_i16.
template <typename T, typename Taps>
__global__ void __launch_bounds__(CUDA_PRODUCT_THREADS, sizeof(T) == 8 ? 3 : 4)
    partition_products_kernel(const __grid_constant__ cuda_partition_layout layout,
                              const __grid_constant__ cuda_partition_memory memory,
                              const __grid_constant__ cuda_partition_launch launch, int log2_lanes,
                              int log2_chunks)
{
    const int64_t share = (int64_t)1 << (log2_lanes + log2_chunks);
    const bool bank = launch.bank.slots;
    const unsigned outputs = bank ? launch.finished[0] * layout.group_outputs : layout.outputs,
                   above = blockIdx.x / outputs;
    unsigned out = blockIdx.x - above * outputs;
    const int chunk = above & ((1 << log2_chunks) - 1), row = above >> log2_chunks,
              number = bank ? row : row >> 1;
    int set = row & 1,
        owner = layout.groups == 1 && !bank ? 0 : out / layout.group_outputs; // group of channels
    unsigned filter_out = out; // within the outputs of the filter
    if (bank) {
        const unsigned job = launch.bank.finished[0][owner];
        filter_out -= owner * layout.group_outputs;
        owner = job >> 1, set = job & 1;
        out = owner * layout.group_outputs + filter_out;
    }
    const cuda_segment &segment = layout.segment[number];
    const cuda_quantum &now = quantum_of(memory, launch);
    const cuda_paths &filter = filter_of(launch, now, owner, set);
    if (now.fill + now.frames < layout.quantum || !filter.first_path) return;
    const int ahead = phase_of(launch, segment, owner),
              phase = (int)(now.number + 1 + ahead) & (segment.quanta - 1),
              newest = newest_block(segment, now.newest[number], now.number, ahead);
    const int lane = (chunk << log2_lanes) + (threadIdx.x & ((1 << log2_lanes) - 1)),
              group = threadIdx.x >> log2_lanes;
    const bin_vector<T> *inputs =
        (const bin_vector<T> *)memory.segment[number].spectra +
        ((int64_t)phase * layout.inputs + (bank ? owner * layout.group_inputs : 0)) *
            segment.partitions * share +
        lane;
    const int end = filter.first_path[filter_out + 1], first = filter.first_path[filter_out];
    const int log2_groups = LOG2_THREADS - log2_lanes,
              log2_paths = log2_paths_at_once(log2_groups, end - first);
    bin_vector<T> sum = {};
    for (int c = first + (group & ((1 << log2_paths) - 1)); c < end; c += 1 << log2_paths) {
        const cuda_path &path = filter.paths[c];
        const cuda_path_range &range = path.segment[number];
        const int slot = newest - range.first;
        const path_operands<T, Taps> operands = {
            Taps(path, (range.at + (int64_t)phase * range.columns) * share + lane),
            inputs + (int64_t)path.in * segment.partitions * share,
            range.count,
            slot < 0 ? slot + segment.partitions : slot,
            segment.partitions,
            share};
        add_path(sum, operands, group >> log2_paths, log2_groups - log2_paths);
    }
    add_groups(sum, 1 << log2_lanes);
    if (group) return;
    bin_vector<T> *to = (bin_vector<T> *)memory.segment[number].sums;
    to[(((int64_t)set * layout.outputs + out) * segment.quanta + phase) * share + lane] = sum;
}
} // namespace

#endif
