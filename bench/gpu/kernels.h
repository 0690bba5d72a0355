// SPDX-License-Identifier: MIT
// Kernels of bench_gpu: padding, products and cropping around cuFFT's transforms, a separable
// filter in two passes, and fetching single samples. All queue their work on the thread's default
// stream and return whether that succeeded. A row is a contiguous sequence of samples or of bins.
#ifndef BENCH_GPU_KERNELS_H
#define BENCH_GPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TWO_PASSES_RADIUS = 8 };

struct bin {
    float re, im;
};

struct rows {
    size_t count, length, padded; // samples of a row, and of a row with its zeros
};

// The pitch of padded rows of reals, which leaves space for in-place transforms.
static inline size_t rows_pitch(struct rows rows)
{
    return rows.padded + 2;
}

// Pads rows of reals with zeros, as reals rows_pitch apart or as complex numbers; `reversed`: from
// the last sample to the first.
bool pad_to_real(float *to, const float *from, struct rows rows, bool reversed);
bool pad_to_complex(struct bin *to, const float *from, struct rows rows, bool reversed);
bool pad_complex(struct bin *to, const struct bin *from, struct rows rows);

// The first samples of each row; of complex numbers the real parts.
bool crop_real(float *to, const float *from, struct rows rows);
bool crop_complex(float *to, const struct bin *from, struct rows rows);

// spectra[row][bin] *= filters[row % n_filters][bin] / points
bool multiply_rows(struct bin *spectra, const struct bin *filters, size_t rows, size_t bins,
                   size_t n_filters, size_t points);

// Overlap-save with blocks of `hop` new samples in transforms of `points`. gather_windows copies
// windows of a signal that begin points - hop samples before their block, with zeros outside the
// signal; multiply_windows computes the products of all windows with all filters, divided by
// points; scatter_windows copies the valid end of each result into y [n_filters][n_out].
struct windows {
    size_t n, n_out, points, hop, count, n_filters;
};
bool gather_windows(struct bin *to, const struct bin *x, struct windows windows);
bool multiply_windows(struct bin *to, const struct bin *spectra, const struct bin *filters,
                      struct windows windows);
bool scatter_windows(struct bin *y, const struct bin *from, struct windows windows);

// Copies samples of `words` times 4 bytes each: to[i] = from[at[i]].
bool gather_words(void *to, const void *from, const size_t *at, size_t n, size_t words);

// Filters a plane along its rows or its columns, with zeros outside. Both filters have 2 *
// TWO_PASSES_RADIUS + 1 taps.
struct two_passes {
    float row[2 * TWO_PASSES_RADIUS + 1], column[2 * TWO_PASSES_RADIUS + 1];
    int width, height;
};
bool filter_rows(float *to, const float *from, const struct two_passes *filter);
bool filter_columns(float *to, const float *from, const struct two_passes *filter);

// Correlates a plane with taps [2 * TWO_PASSES_RADIUS + 1][2 * TWO_PASSES_RADIUS + 1], with zeros
// outside, in one pass with the taps in constant memory. The rungs of the ladder differ in how a
// thread block reads samples.
struct stencil {
    float taps[2 * TWO_PASSES_RADIUS + 1][2 * TWO_PASSES_RADIUS + 1];
    int width, height;
};
typedef bool stencil_fn(float *to, const float *from, const struct stencil *stencil);
stencil_fn stencil_in_memory;   // each from memory
stencil_fn stencil_in_cache;    // a tile of its outputs in shared memory, the halo through caches
stencil_fn stencil_input_tile;  // a thread loads one sample; those of the halo have no output
stencil_fn stencil_output_tile; // a thread has one output, and loads several samples of the tile

#ifdef __cplusplus
}
#endif

#endif
