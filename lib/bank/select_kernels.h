// SPDX-License-Identifier: MIT
// Inner loops of channels of a channelizer, built once for each instruction set and precision, as
// those of lib/kernels are.
#ifndef PARTITA_SELECT_KERNELS_H
#define PARTITA_SELECT_KERNELS_H

#include "kernels/kernels.h"

// The index of a bin: the real at which its real part is in a spectrum; the imaginary part is a
// block of lanes behind. BINS_CONJUGATE: the value is the conjugate of the bin's.
#define BINS_CONJUGATE ((uint32_t)1 << 31)

// y = the sum over layers of x at the indices times h, bin by bin, for all bins of `lines` lines. A
// layer has a index for each bin and `lines` lines of h. The sum is in the order of the
// layers, so that a bin's bits depend on its own operands alone. y and h are aligned to 64 bytes.
typedef void select_fn(void *y, const void *x, const uint32_t *indices, const void *h, size_t lines,
                       size_t layers);

// y[i] = x[i] * fine[i % SELECT_FINE] * start * step^(i / SELECT_FINE), complex, i < n; x and y are
// interleaved and do not overlap; fine holds real parts, then imaginary parts. Powers are computed
// in double, their error grows with i.
enum { SELECT_FINE = 16 };
struct rotation {
    double start[2], step[2];
};
typedef void rotate_fn(void *y, const void *x, const void *fine, const struct rotation *rotation,
                       size_t n);

struct select_kernels {
    select_fn *select;
    rotate_fn *rotate;
};

// Never NULL: as kernels_select.
const struct select_kernels *select_kernels_of(enum cpu_isa isa, bool f64);

#endif
