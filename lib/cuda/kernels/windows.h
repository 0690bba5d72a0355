// SPDX-License-Identifier: MIT
// Windows of rows of samples, in C and CUDA: which samples a window holds, and which outputs its
// samples become. A row is one channel's signal, or one path's taps, in an array of them. All
// arrays are in device memory.
#ifndef PARTITA_CUDA_WINDOWS_H
#define PARTITA_CUDA_WINDOWS_H

#include "fft.h"

// Sample i < length of window b of a row has position q = first + b*hop + i. It is sample q/step of
// the row if that is an integer in [0, size), counted from the row's end if `reversed`, and zero
// otherwise. Rows may be requested in another order than that of the array: row (g*outer + o)*inner
// + i is number pitch*((g*inner + i)*outer + o) of the array; outer = inner = pitch = 1: in order.
struct cuda_windows {
    int64_t size, step;
    int64_t count, first, hop, length; // count: windows of a row
    int64_t outer, inner, pitch;
    bool complex_samples, reversed, conjugated;
    double scale; // factor of every sample
};

// Maps row i of one array to a row of another. i is written in mixed radix n, the last digit being
// the least significant; the other array's row is the sum of digit[d]*step[d].
enum { CUDA_ROW_DIGITS = 3 };
struct cuda_row_map {
    int64_t n[CUDA_ROW_DIGITS], step[CUDA_ROW_DIGITS];
};

// Outputs of a window of a row: sample skip + i, i < hop, of window b is output b*hop + i, of which
// every stride-th is stored, `size` samples in all.
struct cuda_outputs {
    int64_t skip, hop, stride, size;
    bool relu;
};

#endif
