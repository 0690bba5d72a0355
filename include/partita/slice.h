// SPDX-License-Identifier: MIT
// Which part of a full result to compute.
#ifndef PARTITA_SLICE_H
#define PARTITA_SLICE_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

// Which outputs to compute, with SciPy's names.
enum partita_mode {
    PARTITA_RANGE = 0, // [first, last) of the full result, which is zero outside its bounds
    PARTITA_FULL,      // everything: n + m - 1 samples
    PARTITA_SAME,      // n samples, centred on the full result
    PARTITA_VALID,     // where both operands overlap completely: max(n, m) - min(n, m) + 1 samples
};

// A slice of a result; NULL or all zeros means PARTITA_FULL. `first` and `last` are used only with
// PARTITA_RANGE. For convolution they index the full result from 0; for correlation they are lags:
// y[lag] = sum_i x[i + lag] conj(h[i]), and the full result holds the lags -(m-1) to n-1.
struct partita_slice {
    enum partita_mode mode;
    ptrdiff_t first, last;
};

// Number of samples in a slice of x[n] with h[m]; 0 if the slice is empty or malformed, or n or m
// is 0.
// Threads: any.
PARTITA_API size_t partita_slice_size(enum partita_op op, size_t n, size_t m,
                                      const struct partita_slice *slice);

// The problem whose outputs are a slice of x[n] with h[m]. It serves callers of partita_convolve or
// partita_correlate who need options, for example a device: plan it and call partita_forward_once.
// Errors:  PARTITA_ERR_ARG if the slice is empty or malformed, or n or m is 0.
// Threads: any.
PARTITA_API enum partita_status partita_slice_problem(enum partita_op op, enum partita_type type,
                                                      size_t n, size_t m,
                                                      const struct partita_slice *slice,
                                                      struct partita_problem *ret_problem);

#ifdef __cplusplus
}
#endif

#endif
