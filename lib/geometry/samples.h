// SPDX-License-Identifier: MIT
// Copying samples: with strides, in windows that read zeros outside a signal, and taps in causal
// order; rows of an array in f32 and back.
#ifndef PARTITA_SAMPLES_H
#define PARTITA_SAMPLES_H

#include "core/storage.h"
#include "signal_blocks.h"

// y[i*y_stride] = x[i*x_stride] for i < n; strides in samples of `bytes` = 2, 4, 8 or 16.
void samples_copy(void *y, size_t y_stride, const void *x, size_t x_stride, size_t n, size_t bytes);

// The same backwards: y[i*y_stride] = x[(n-1-i)*x_stride].
void samples_reverse(void *y, size_t y_stride, const void *x, size_t x_stride, size_t n,
                     size_t bytes);

// The range of i < n for which first + i*stride is in [0, size).
struct inside {
    size_t begin, count;
};
struct inside samples_inside(size_t size, ptrdiff_t first, size_t stride, size_t n);

// y[i] = x[first + i*stride] for i < n, zero where that index is outside [0, size).
void samples_window(void *y, const void *x, size_t size, ptrdiff_t first, size_t stride, size_t n,
                    size_t bytes);

// The samples x[first] .. x[first+n-1]: where they are if all are in [0, size), else copied to y,
// with zeros for the others.
const void *samples_at(void *y, const void *x, size_t size, ptrdiff_t first, size_t n,
                       size_t bytes);

// Prefetches a cache line at each of n positions `step` bytes apart, for reading or writing, if
// that is more than a line: the hardware prefetches smaller steps.
void samples_prefetch(const void *at, size_t step, size_t n, bool write);

// g[first .. first+n-1] of one path from its taps in the caller's order: reversed and conjugated
// for correlation, with zeros between them by the dilation and beyond the span. All are written.
void causal_part(const struct shape *shape, void *g, const void *taps, size_t first, size_t n);

static inline void causal_taps(const struct shape *shape, void *g, const void *taps)
{
    causal_part(shape, g, taps, 0, shape->axis[0].span);
}

// The type of `fir` and `resample` for a problem: complex taps have complex samples.
static inline enum fir_type shape_fir_type(const struct shape *shape)
{
    if (shape->complex_taps) return FIR_COMPLEX;
    return shape->complex_signal ? FIR_REAL_TAPS : FIR_REAL;
}

// Rows of adjacent channels, `stride` scalars apart, of n samples that are `step` samples apart in
// an array of a type, from which samples_convert transposes them and widens those of two bytes;
// `store`: the reverse.
struct sample_rows {
    char *rows;
    size_t channels, stride, step, n;
};
void samples_convert(const struct kernels *kernels, enum partita_type type,
                     const struct sample_rows *rows, const void *array, bool store);

static inline void samples_move(const struct partita_plan *plan, const struct sample_rows *rows,
                                const void *array, bool store)
{
    samples_convert(plan->kernels, plan->shape.signal, rows, array, store);
}

#endif
