// SPDX-License-Identifier: MIT
// Kernels for parts of two sizes (lib/divisions.h): sums over the pairs that begin at one output,
// and adding what their inverses hold to the outputs.
#ifndef PARTITA_CUDA_INTERVALS_H
#define PARTITA_CUDA_INTERVALS_H

#include "cuda/kernels/spectra.h"

#ifdef __cplusplus
extern "C" {
#endif

// Intervals of one division. Lines and arrays are those of `pairs`, whose blocks are parts here:
// left those of the taps, right those of the signal that are held; first and count are intervals;
// run and add mean nothing. Interval r begins at unit begin + r*(taps_units + signal_units); parts
// i of the taps that have pairs there are those with i = residue + r modulo signal_units.
struct cuda_intervals {
    struct cuda_pairs pairs;
    int64_t taps_units, signal_units; // sizes of parts over their greatest common divisor
    int64_t signals;                  // parts of the signal, those that are not held included
    int64_t begin, residue;
    int64_t position;   // of the output that interval `first` begins at
    int64_t apart, hop; // outputs from one interval to the next; of one
};

// Queue the sums [lines][count][planes][points] of all pairs of each interval.
cudaError_t cuda_launch_intervals(const struct cuda_kit *kit,
                                  const struct cuda_intervals *intervals, cudaStream_t stream);

// Queue adding the intervals' samples to the outputs, from these sums, long ones transformed back.
// The sink's bias and relu are left to cuda_launch_finish (sums.h) when all are added.
cudaError_t cuda_launch_add_intervals(const struct cuda_kit *kit,
                                      const struct cuda_intervals *intervals,
                                      const struct cuda_sink *sink, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
