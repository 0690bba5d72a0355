// SPDX-License-Identifier: MIT
#ifndef PARTITA_CUDA_TAP_MAP_CUH
#define PARTITA_CUDA_TAP_MAP_CUH

#include "launch.cuh"
#include "tap_map.h"

// The taps of a branch of one input and one output channel of a group.
struct tap_path {
    int64_t first; // index into the caller's taps
    int64_t branch[3];

    __device__ tap_path(const cuda_tap_map &map, int64_t group, int64_t c, int64_t k, int64_t rest)
        : first(map.branches_out ? (group * map.in + c) * map.out + k
                                 : (group * map.out + k) * map.in + c)
    {
#pragma unroll
        for (int a = 2; a >= 0; a--) {
            branch[a] = take(&rest, map.axis[a].branches);
            first *= map.axis[a].kernel;
        }
    }

    // Index of tap k; below 0: there is none, it counts as 0.
    __device__ int64_t index(const cuda_tap_map &map, int k0, int k1, int k2) const
    {
        const int k[3] = {k0, k1, k2};
        int64_t index = 0;
#pragma unroll
        for (int a = 0; a < 3; a++) {
            const auto &axis = map.axis[a];
            const int64_t nth = map.reversed ? axis.taps - 1 - k[a] : k[a];
            const int64_t tap = branch[a] + axis.period * nth;
            if (k[a] >= axis.taps || tap >= axis.kernel) return -1;
            index = index * axis.kernel + (map.flip ? axis.kernel - 1 - tap : tap);
        }
        return first + index;
    }
};

#endif
