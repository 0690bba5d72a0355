// SPDX-License-Identifier: MIT
// cuda/separable in one pass over memory: a thread block brings a tile with its halo to shared
// memory, filters it along the columns of the array into a second tile, and that along its rows,
// from where outputs are stored. A thread sums SPAN neighbouring outputs at a time, so that its
// reads serve all of them. Source: the tile with halo is that of V. Podlozhnyuk, Image Convolution
// with CUDA (2007), which makes two passes.
#include "cuda/kernels/pass.cuh"
#include "separable.h"

namespace {
constexpr int SPAN = 8, WIDTH = 64, HEIGHT = 64; // neighbouring outputs of a thread; of a tile
constexpr int TAPS = 4;                          // of a group
constexpr int WARP = 32, WARPS = CUDA_PASS_THREADS / WARP;

// Shared memory: taps of rows and columns, samples, sums along columns. Rows of samples are an odd
// number of groups apart: four neighbours in one and four in the next do not meet in the same
// banks.
template <int GROUPS> struct tile {
    static constexpr int TAPS_OF_AXIS = GROUPS * TAPS, ROWS = HEIGHT + TAPS_OF_AXIS;
    static constexpr int COLUMNS = WIDTH + TAPS_OF_AXIS,
                         PITCH = COLUMNS % SPAN ? COLUMNS : COLUMNS + TAPS;
    static constexpr int SUMS_PITCH = WIDTH + TAPS, SAMPLES_AT = 2 * TAPS_OF_AXIS;
    static constexpr int SUMS_AT = SAMPLES_AT + ROWS * PITCH, SIZE = SUMS_AT + ROWS * SUMS_PITCH;
};

// SPAN sums over a window of samples. Groups of taps are whole but for the last: a tap beyond it
// meets no sample, not even as 0.
template <int GROUPS, typename T>
inline __device__ void add_tap_products(T *sum, const T *window, const T *taps, int n_taps)
{
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        T w[TAPS];
        load_vectors<TAPS>(w, taps + g * TAPS);
        if ((g + 1) * TAPS <= n_taps) {
#pragma unroll
            for (int k = 0; k < TAPS; k++)
#pragma unroll
                for (int r = 0; r < SPAN; r++) sum[r] += w[k] * window[g * TAPS + k + r];
        } else {
#pragma unroll
            for (int k = 0; k < TAPS - 1; k++)
                if (g * TAPS + k < n_taps)
#pragma unroll
                    for (int r = 0; r < SPAN; r++) sum[r] += w[k] * window[g * TAPS + k + r];
        }
    }
}

// Samples from (row, column) on of a plane, zeros outside. A thread's columns are the same in all
// rows, and are read before one of them is waited for.
template <int GROUPS, typename T>
__device__ void load_samples(const cuda_pass &pass, const T *plane, int64_t row, int64_t column,
                             T *samples)
{
    typedef tile<GROUPS> part;
    constexpr int COLUMNS = (part::COLUMNS + WARP - 1) / WARP;
    const cuda_axis *axis = pass.axis;
    const int rows = HEIGHT + (int)axis[1].taps - 1, lane = threadIdx.x % WARP,
              first = threadIdx.x / WARP;
    const T *line = plane + (row + first) * axis[2].from_size + column + lane;
    bool within[COLUMNS];
#pragma unroll
    for (int k = 0; k < COLUMNS; k++)
        within[k] = in_bounds(column + lane + k * WARP, axis[2].from_size);
#pragma unroll 2
    for (int i = first; i < rows; i += WARPS, line += WARPS * axis[2].from_size) {
        const bool row_within = in_bounds(row + i, axis[1].from_size);
        T held[COLUMNS];
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) held[k] = row_within && within[k] ? line[k * WARP] : 0;
#pragma unroll
        for (int k = 0; k < COLUMNS; k++)
            if (lane + k * WARP < part::COLUMNS)
                samples[i * part::PITCH + lane + k * WARP] = held[k];
    }
}

template <int GROUPS, typename T>
__device__ void filter_columns(const cuda_pass &pass, const T *samples, const T *taps, T *sums)
{
    typedef tile<GROUPS> part;
    constexpr int SPANS = WIDTH / SPAN; // of a row; eight threads have four of each of two rows
    const int rows = HEIGHT + (int)pass.axis[1].taps - 1, items = (rows + 1) / 2 * 2 * SPANS;
    for (int i = threadIdx.x; i < items; i += CUDA_PASS_THREADS) {
        const int span = i % 4 + i / 8 % (SPANS / 4) * 4, row = i / 4 % 2 + i / (2 * SPANS) * 2;
        if (row >= rows) continue;
        T window[SPAN + part::TAPS_OF_AXIS], sum[SPAN] = {};
        load_vectors<SPAN + part::TAPS_OF_AXIS>(window, samples + row * part::PITCH + span * SPAN);
        add_tap_products<GROUPS>(sum, window, taps, (int)pass.axis[2].taps);
#pragma unroll
        for (int k = 0; k < SPAN; k += vector_of<T>::N) {
            vector_of<T> out;
#pragma unroll
            for (int j = 0; j < vector_of<T>::N; j++) out.at[j] = sum[k + j];
            *(vector_of<T> *)(sums + row * part::SUMS_PITCH + span * SPAN + k) = out;
        }
    }
}

// The outputs of a tile.
template <typename T> struct separable_output {
    T *plane;
    int64_t row, column; // of its first
    T bias;
};

// Stores them with bias and activation. A NaN stays one.
template <int GROUPS, typename T>
__device__ void filter_rows(const cuda_pass &pass, const T *sums, const T *taps,
                            const separable_output<T> &output)
{
    typedef tile<GROUPS> part;
    const cuda_axis *axis = pass.axis;
    const int64_t row = output.row, column = output.column;
    for (int i = threadIdx.x; i < WIDTH * HEIGHT / SPAN; i += CUDA_PASS_THREADS) {
        const int x = i % WIDTH, y = i / WIDTH * SPAN;
        if (column + x >= axis[2].n || row + y >= axis[1].n) continue;
        T window[SPAN + part::TAPS_OF_AXIS], sum[SPAN] = {};
#pragma unroll
        for (int k = 0; k < SPAN + part::TAPS_OF_AXIS; k++)
            window[k] = sums[(y + k) * part::SUMS_PITCH + x];
        add_tap_products<GROUPS>(sum, window, taps, (int)axis[1].taps);
        T *to = output.plane + (row + y) * axis[2].to_size + column + x;
        const int64_t left = axis[1].n - row - y;
        const int n = left < SPAN ? (int)left : SPAN;
#pragma unroll
        for (int r = 0; r < SPAN; r++, to += axis[2].to_size) {
            T value = sum[r] + output.bias;
            if (pass.relu && value < 0) value = 0;
            if (r < n) *to = value;
        }
    }
}

// Thread blocks that a processor is to hold at once, as registers for windows allow.
template <typename T> constexpr int separable_resident(int groups)
{
    if (sizeof(T) == 4) return groups >= 7 ? 3 : 4;
    return groups == 8 ? 1 : 2;
}

// Blocks are [item][channel][tile of rows][tile of columns].
template <typename T, int GROUPS>
__global__ void __launch_bounds__(CUDA_PASS_THREADS, separable_resident<T>(GROUPS))
    separable_kernel(const __grid_constant__ cuda_pass pass, T *to, const T *from, const T *taps,
                     const T *bias)
{
    typedef tile<GROUPS> part;
    const cuda_axis *axis = pass.axis;
    T *const shared = (T *)shared_memory;
    int64_t block = blockIdx.x;
    const int64_t column = take(&block, ceiling(axis[2].n, WIDTH)) * WIDTH;
    const int64_t row = take(&block, ceiling(axis[1].n, HEIGHT)) * HEIGHT;
    const int64_t plane = block, channel = plane % pass.groups;
    if (threadIdx.x < 2 * part::TAPS_OF_AXIS)
        shared[threadIdx.x] = taps[channel * 2 * part::TAPS_OF_AXIS + threadIdx.x];
    load_samples<GROUPS>(pass, from + plane * from_plane(pass), met(axis[1], row, 0),
                         met(axis[2], column, 0), shared + part::SAMPLES_AT);
    __syncthreads();
    filter_columns<GROUPS>(pass, shared + part::SAMPLES_AT, shared + part::TAPS_OF_AXIS,
                           shared + part::SUMS_AT);
    __syncthreads();
    const separable_output<T> output = {to + plane * to_plane(pass), row, column,
                                        bias ? bias[channel] : 0};
    filter_rows<GROUPS>(pass, shared + part::SUMS_AT, shared, output);
}

static_assert(CUDA_SEPARABLE_TAPS == 8 * TAPS, "groups of taps are 1 to 8");

int groups_of(const cuda_pass &pass)
{
    const int64_t max =
        pass.axis[1].taps > pass.axis[2].taps ? pass.axis[1].taps : pass.axis[2].taps;
    return (int)ceiling(max, TAPS);
}

int64_t separable_blocks(const cuda_pass &pass)
{
    return ceiling(pass.axis[2].n, WIDTH) * ceiling(pass.axis[1].n, HEIGHT) * pass.groups *
           pass.batch;
}

} // namespace

// Slots of an output: products along columns, of the rows of the halo too, those along rows, and
// the rest, counted from the machine code (sm_90, f32; decision 21).
cuda_separable_form cuda_separable_form_of(const cuda_pass *pass, bool f64)
{
    enum { REST = 32 };
    const double rows = (double)pass->axis[1].taps, columns = (double)pass->axis[2].taps;
    cuda_separable_form form;
    form.pitch = groups_of(*pass) * TAPS;
    form.blocks = (double)separable_blocks(*pass);
    form.slots = columns * (HEIGHT + rows - 1) / HEIGHT + rows + REST;
    form.shared_bytes = with_constant<1, 2, 3, 4, 5, 6, 7, 8>(groups_of(*pass), [=](auto groups) {
        return tile<decltype(groups)::value>::SIZE * (f64 ? sizeof(double) : sizeof(float));
    });
    return form;
}

cudaError_t cuda_separable_queue(const cuda_pass *pass, bool f64, const cuda_arrays *arrays)
{
    return with_scalar(f64, [=](auto zero) {
        return with_constant<1, 2, 3, 4, 5, 6, 7, 8>(groups_of(*pass), [=](auto groups) {
            constexpr int GROUPS = decltype(groups)::value;
            return queue(separable_kernel<decltype(zero), GROUPS>, separable_blocks(*pass),
                         dim3(CUDA_PASS_THREADS), tile<GROUPS>::SIZE * sizeof zero, *pass,
                         arrays->to, arrays->from, arrays->taps, arrays->bias);
        });
    });
}
