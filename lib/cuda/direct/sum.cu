// SPDX-License-Identifier: MIT
// The first two rungs of cuda/direct: one thread an output, samples through the caches, taps from
// memory or from constant memory (Hwu, Kirk and El Hajj, Programming Massively Parallel Processors,
// chapter 7). Constant memory is that of the launch's parameters: nothing is shared between
// launches, so calls on several threads cannot meet in it.
#include "cuda/kernels/grid.cuh"

namespace {
// Taps as the caller has them.
template <typename T> struct memory_taps {
    const T *w;

    // Those of one pair of channels in row t1 of plane t0, `step` apart.
    __device__ const T *row(const cuda_pass &pass, int64_t channel, int64_t c, int64_t t0,
                            int64_t t1) const
    {
        const int64_t g = channel / pass.to, k = channel % pass.to;
        return w + g * pass.tap_group + k * pass.tap_to + c * pass.tap_from +
               tap_index(pass, t0, t1, 0);
    }

    __device__ int64_t step(const cuda_pass &pass) const
    {
        return pass.axis[2].tap_step;
    }
};

// Those of a run of output channels from `first` on, in the order of the sum.
template <typename T> struct constant_taps {
    int64_t first;
    T w[CUDA_CONSTANT_BYTES / sizeof(T)];

    __device__ const T *row(const cuda_pass &pass, int64_t channel, int64_t c, int64_t t0,
                            int64_t t1) const
    {
        const cuda_axis *axis = pass.axis;
        const int64_t pair = (channel - first) * pass.from + c;
        return w + ((pair * axis[0].taps + t0) * axis[1].taps + t1) * axis[2].taps;
    }

    __device__ int64_t step(const cuda_pass &) const
    {
        return 1;
    }
};

template <typename T, typename Taps>
__device__ T sum_of(const cuda_pass &pass, const T *from, const Taps &taps, int64_t channel,
                    int64_t z, int64_t y, int64_t x)
{
    const cuda_axis *axis = pass.axis;
    T sum = 0;
    for (int64_t c = 0; c < pass.from; c++, from += from_plane(pass))
        for (int64_t t0 = 0; t0 < axis[0].taps; t0++) {
            const int64_t plane = met(axis[0], z, t0);
            if (!inside(plane, axis[0].from_size)) continue;
            for (int64_t t1 = 0; t1 < axis[1].taps; t1++) {
                const int64_t row = met(axis[1], y, t1);
                if (!inside(row, axis[1].from_size)) continue;
                const T *samples = from + (plane * axis[1].from_size + row) * axis[2].from_size;
                const T *w = taps.row(pass, channel, c, t0, t1);
                int64_t column = met(axis[2], x, 0);
                for (int64_t t2 = 0; t2 < axis[2].taps;
                     t2++, column += axis[2].from_dilation, w += taps.step(pass))
                    if (inside(column, axis[2].from_size)) sum += samples[column] * *w;
            }
        }
    return sum;
}

// Blocks are [item][channel of first_channel ..][run of CUDA_THREADS positions]: a block has one
// output channel, so that its threads read the same tap at the same time.
template <typename T, typename Taps>
__global__ void __launch_bounds__(CUDA_THREADS, sizeof(T) == 8 ? 2 : 3)
    direct_kernel(const __grid_constant__ cuda_pass pass, T *to, const T *from,
                  const __grid_constant__ Taps taps, const T *bias, int64_t first_channel,
                  int64_t channels)
{
    const cuda_axis *axis = pass.axis;
    const int64_t positions = axis[0].n * axis[1].n * axis[2].n;
    int64_t block = blockIdx.x;
    int64_t position = take(&block, ceiling(positions, CUDA_THREADS)) * CUDA_THREADS + threadIdx.x;
    const int64_t channel = first_channel + take(&block, channels), item = block;
    if (position >= positions) return;
    const int64_t x = take(&position, axis[2].n), y = take(&position, axis[1].n), z = position;
    const T *samples =
        from + (item * pass.groups + channel / pass.to) * pass.from * from_plane(pass);
    store(pass, to, item, channel, z, y, x, sum_of(pass, samples, taps, channel, z, y, x), bias);
}

template <typename T, typename Taps>
cudaError_t launch(const cuda_pass *pass, void *to, const void *from, const Taps &taps,
                   const void *bias, int64_t first_channel, int64_t channels, cudaStream_t stream)
{
    const int64_t positions = pass->axis[0].n * pass->axis[1].n * pass->axis[2].n;
    return queue(direct_kernel<T, Taps>, ceiling(positions, CUDA_THREADS) * channels * pass->batch,
                 dim3(CUDA_THREADS), 0, stream, *pass, (T *)to, (const T *)from, taps,
                 (const T *)bias, first_channel, channels);
}

template <typename T>
void gather_taps(const cuda_pass *pass, const T *w, int64_t first, int64_t channels,
                 constant_taps<T> *ret)
{
    const cuda_axis *axis = pass->axis;
    T *next = ret->w;
    ret->first = first;
    for (int64_t channel = first; channel < first + channels; channel++)
        for (int64_t c = 0; c < pass->from; c++) {
            const T *pair = w + channel / pass->to * pass->tap_group +
                            channel % pass->to * pass->tap_to + c * pass->tap_from;
            for (int64_t t0 = 0; t0 < axis[0].taps; t0++)
                for (int64_t t1 = 0; t1 < axis[1].taps; t1++)
                    for (int64_t t2 = 0; t2 < axis[2].taps; t2++)
                        *next++ = pair[tap_index(*pass, t0, t1, t2)];
        }
}

template <typename T>
cudaError_t launch_constant(const cuda_pass *pass, void *to, const void *from, const void *w,
                            const void *bias, cudaStream_t stream)
{
    constant_taps<T> taps;
    const int64_t of_channel =
        pass->from * pass->axis[0].taps * pass->axis[1].taps * pass->axis[2].taps;
    const int64_t all = pass->groups * pass->to,
                  most = (int64_t)(sizeof taps.w / sizeof(T)) / of_channel;
    for (int64_t first = 0; first < all; first += most) {
        const int64_t channels = all - first < most ? all - first : most;
        gather_taps(pass, (const T *)w, first, channels, &taps);
        const cudaError_t error = launch<T>(pass, to, from, taps, bias, first, channels, stream);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}
} // namespace

cudaError_t cuda_launch_plain(const cuda_pass *pass, bool f64, void *to, const void *from,
                              const void *taps, const void *bias, cudaStream_t stream)
{
    const int64_t channels = pass->groups * pass->to;
    if (f64) {
        const memory_taps<double> w = {(const double *)taps};
        return launch<double>(pass, to, from, w, bias, 0, channels, stream);
    }
    const memory_taps<float> w = {(const float *)taps};
    return launch<float>(pass, to, from, w, bias, 0, channels, stream);
}

cudaError_t cuda_launch_constant(const cuda_pass *pass, bool f64, void *to, const void *from,
                                 const void *taps, const void *bias, cudaStream_t stream)
{
    return f64 ? launch_constant<double>(pass, to, from, taps, bias, stream)
               : launch_constant<float>(pass, to, from, taps, bias, stream);
}
