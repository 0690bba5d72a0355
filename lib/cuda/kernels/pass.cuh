// SPDX-License-Identifier: MIT
// Positions of the samples and taps of a pass, and the end of a sum.
#ifndef PARTITA_CUDA_PASS_CUH
#define PARTITA_CUDA_PASS_CUH

#include "launch.cuh"
#include "pass.h"

// The sample that output j meets with tap t; outside [0, from_size) in padding.
inline __device__ int64_t met(const cuda_axis &axis, int64_t j, int64_t t)
{
    return axis.from_first + axis.from_step * j + axis.from_dilation * t;
}

// Index, within the taps of one pair of channels, of tap t2 of row t1 of plane t0.
inline __device__ int64_t tap_index(const cuda_pass &pass, int64_t t0, int64_t t1, int64_t t2)
{
    const cuda_axis *axis = pass.axis;
    const int64_t plane = axis[0].tap_first + axis[0].tap_step * t0,
                  row = axis[1].tap_first + axis[1].tap_step * t1;
    return (plane * axis[1].kernel + row) * axis[2].kernel + axis[2].tap_first +
           axis[2].tap_step * t2;
}

// Samples of one channel of the arrays that a pass reads and writes.
inline __device__ int64_t from_plane(const cuda_pass &pass)
{
    return pass.axis[0].from_size * pass.axis[1].from_size * pass.axis[2].from_size;
}

inline __device__ int64_t to_plane(const cuda_pass &pass)
{
    return pass.axis[0].to_size * pass.axis[1].to_size * pass.axis[2].to_size;
}

// Where one output goes: channels are counted over all groups.
struct output_index {
    int64_t item, channel, z, y, x;
};

// Stores the sum of an output with bias and activation. A NaN stays one.
template <typename T>
inline __device__ void store_pass_output(const cuda_pass &pass, T *to, const output_index &at,
                                         T sum, const T *bias)
{
    const cuda_axis *axis = pass.axis;
    const int64_t plane = axis[0].to_first + axis[0].to_step * at.z,
                  row = axis[1].to_first + axis[1].to_step * at.y;
    const int64_t column = axis[2].to_first + axis[2].to_step * at.x;
    if (bias) sum += bias[at.channel];
    if (pass.relu && sum < 0) sum = 0;
    to[(at.item * pass.groups * pass.to + at.channel) * to_plane(pass) +
       (plane * axis[1].to_size + row) * axis[2].to_size + column] = sum;
}

#endif
