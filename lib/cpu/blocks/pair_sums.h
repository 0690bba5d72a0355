// SPDX-License-Identifier: MIT
// Sums of products of two signals in segments. Each signal is cut into disjoint segments of half a
// transform, each segment transformed once, zeros behind it. Products of all pairs of segments that
// meet in an output block are summed in the spectrum. The halves by which neighbouring sums overlap
// are added there too, so every output block takes one inverse transform and nothing is ever added
// to samples. (theory.md, section 7; decision 10.)
#ifndef PARTITA_PAIR_SUMS_H
#define PARTITA_PAIR_SUMS_H

#include "base/thread.h"
#include "fft/fft.h"
#include "kernels/kernels.h"

// Spectra that lie line by line: the first lines of all spectra side by side, then all second
// lines. Products of all pairs then read memory from front to back. Between the spectra of two
// lines lie at least SEGMENT_MARGIN places for zeros, so that sums which are made at once need no
// special ends.
enum { SEGMENT_MARGIN = CMAC_SUMS - 1 };

struct segment_spectra {
    char *lines;
    size_t count; // spectra
};

// Bytes of `count` spectra of so many lines, SIZE_MAX if that is more than memory.
size_t segment_spectra_bytes(size_t lines, size_t count);

// What transforms segments of one size.
struct segment_transform {
    const struct fft *fft;
    const struct kernels *kernels;
    size_t sample_bytes;
    size_t length; // samples of a segment: half a transform
    size_t lines;  // of a spectrum
};

struct segment_transform segment_transform(const struct fft *fft, const struct kernels *kernels,
                                           size_t sample_bytes);

// What one thread needs to transform a segment.
struct segment_buffers {
    char *samples, *spectrum, *scratch;
};

struct segment_buffers segment_buffers_layout(const struct segment_transform *transform,
                                              struct arena *arena);
size_t segment_buffers_bytes(const struct segment_transform *transform);

// Spectrum `index` = transform of buffers->samples, of which the first `length` are given and the
// rest is zeroed here.
void segment_forward(const struct segment_transform *transform,
                     const struct segment_spectra *spectra, size_t index,
                     struct segment_buffers *buffers);

// buffers->samples[length] = the first half of what the spectrum holds, the transform's gain taken
// out. The spectrum is destroyed.
void segment_inverse(const struct segment_transform *transform, void *spectrum,
                     struct segment_buffers *buffers);

// Writes the zeros beside spectra 0 .. used-1, line by line. Needed of the right operand of sums.
void segment_spectra_margins(const struct segment_transform *transform,
                             const struct segment_spectra *spectra, size_t used, int threads);

// Moves `count` spectra to the front, on up to `threads` threads.
void segment_spectra_shift(const struct segment_transform *transform,
                           const struct segment_spectra *spectra, size_t from, size_t count,
                           int threads);

// Sums over pairs: left's segment i and right's segment j meet in output block i + j, or with
// `lags` j - i, left conjugated: block t then holds the lags from t * length on.
struct pair_sums {
    const struct segment_transform *transform;
    struct segment_spectra left, right;
    ptrdiff_t right_first; // index of the segment that right's first spectrum is of,
    size_t right_count;    // and how many of them there are
    bool lags;
    ptrdiff_t first; // output blocks first .. first + count - 1
    size_t count;
    char *out;          // count + 1 spectra; pair_sums_out says which one is an output block's
    char *work;         // pair_sums_bytes a thread,
    size_t work_stride; // from one thread to the next
    bool add;           // to what is in `out`: several channels are summed
    bool gather;        // the last channel: then add the overlapping halves
};

// What one thread needs, by the spectra of the left operand.
size_t pair_sums_bytes(size_t left_count);

// Runs all sums on up to `threads` threads, a few lines of all outputs a task.
void pair_sums_run(struct pair_sums *sums, int threads);

// The spectrum of output block first + i.
char *pair_sums_out(const struct pair_sums *sums, size_t i);

#endif
