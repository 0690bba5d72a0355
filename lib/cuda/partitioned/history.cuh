// SPDX-License-Identifier: MIT
// Frames and outputs on the device: a ring of the last frames of
// every input, which of them were not finite, and the outputs that depend on those; and the fade of
// outputs. The host's versions are lib/stream/history.c and the kernels `blend`.
#ifndef PARTITA_CUDA_HISTORY_CUH
#define PARTITA_CUDA_HISTORY_CUH

#include <math.h>

#include "cuda/kernels/launch.cuh"
#include "frames.h"

inline __device__ int64_t ring_index(int64_t at, int64_t ring)
{
    if (at < 0) return at + ring;
    return at < ring ? at : at - ring;
}

inline __device__ bool is_nonfinite(const cuda_partition_layout &layout,
                                    const cuda_partition_memory &memory, int64_t channel,
                                    uint64_t frame)
{
    return frame < memory.nonfinite_until[channel] &&
           memory.nonfinite[channel * layout.history + (int64_t)(frame % layout.history)];
}

// New frames of an input.
template <typename T> struct taken_frames {
    uint64_t now; // the first one
    int last;     // frames of the step before
    int n;
    const T *from; // NULL: silence
};

// Advances the outputs that depend on a sample that is not finite over the step before.
template <typename T>
inline __device__ void advance_affected(const cuda_partition_layout &layout,
                                        const cuda_partition_memory &memory, int64_t channel,
                                        const taken_frames<T> &frames)
{
    if (!memory.nonfinite_until[channel]) return;
    for (uint64_t frame = frames.now - frames.last; frame < frames.now; frame++)
        if (frame >= (uint64_t)layout.latency &&
            is_nonfinite(layout, memory, channel, frame - layout.latency))
            memory.affected_until[channel] = frame + layout.span;
}

// Appends frames to the ring. A thread block does so, of a power of two of threads, with shared
// memory for a number of each.
template <typename T>
inline __device__ void take_frames(const cuda_partition_layout &layout,
                                   const cuda_partition_memory &memory, int64_t channel,
                                   const taken_frames<T> &frames)
{
    const int reals = layout.complex ? 2 : 1, threads = blockDim.x;
    const int64_t at = (int64_t)(frames.now % layout.history);
    T *to = (T *)memory.x + channel * layout.history * reals;
    uint64_t *newest = (uint64_t *)shared_memory, last_bad = 0;
    if (threadIdx.x == 0) advance_affected(layout, memory, channel, frames);
    __syncthreads();
    for (int i = threadIdx.x; i < frames.n; i += threads) {
        const int64_t index = ring_index(at + i, layout.history);
        T sample[2] = {0, 0};
        for (int r = 0; r < reals; r++)
            sample[r] = frames.from ? frames.from[(int64_t)i * reals + r] : T(0);
        const bool finite = isfinite(sample[0]) && isfinite(sample[1]);
        for (int r = 0; r < reals; r++) to[index * reals + r] = finite ? sample[r] : T(0);
        memory.nonfinite[channel * layout.history + index] = !finite;
        if (!finite) last_bad = frames.now + i + 1;
    }
    newest[threadIdx.x] = last_bad;
    for (int half = threads / 2; half; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half && newest[threadIdx.x + half] > newest[threadIdx.x])
            newest[threadIdx.x] = newest[threadIdx.x + half];
    }
    if (threadIdx.x == 0 && newest[0]) memory.nonfinite_until[channel] = newest[0];
}

// An output of a step that begins with frame `now`.
struct affected_output {
    uint64_t now, frame;
    int64_t channel;     // of the filter
    int64_t first_input; // of those that the filter reads
};

// Whether an output may depend on an input's sample that is not finite.
inline __device__ bool is_affected_by(const cuda_partition_layout &layout,
                                      const cuda_partition_memory &memory,
                                      const affected_output &output, int64_t input)
{
    const uint64_t now = output.now, frame = output.frame, latency = layout.latency,
                   span = layout.span;
    if (frame < memory.affected_until[input]) return true;
    const uint64_t until = memory.nonfinite_until[input];
    if (!until || now >= until + latency) return false;
    uint64_t from = frame + 1 > span ? frame + 1 - span : 0;
    if (from < now) from = now;
    if (from < latency) from = latency;
    for (; from <= frame; from++)
        if (is_nonfinite(layout, memory, input, from - latency)) return true;
    return false;
}

inline __device__ bool is_affected(const cuda_partition_layout &layout,
                                   const cuda_partition_memory &memory, const cuda_paths &filter,
                                   const affected_output &output)
{
    for (size_t p = filter.first_path[output.channel]; p < filter.first_path[output.channel + 1];
         p++)
        if (is_affected_by(layout, memory, output, output.first_input + filter.paths[p].in))
            return true;
    return false;
}

struct fade_frames {
    uint64_t begin, n;
};

// Fades y towards the incoming filter's output.
template <typename T>
inline __device__ void blend(const fade_frames &fade, uint64_t frame, T y[2], const T incoming[2])
{
    const double slope = 1 / ((double)fade.n + 1);
    const T weight = (T)((double)(frame - fade.begin + 1) * slope);
    for (int r = 0; r < 2; r++) {
        const T change = incoming[r] - y[r];
        y[r] = fma(change, weight, y[r]);
    }
}

// All bits are set, as on the host.
template <typename T> inline __device__ void set_nan(T *y)
{
    for (unsigned *word = (unsigned *)y; word < (unsigned *)(y + 1); word++) *word = ~0u;
}

#endif
