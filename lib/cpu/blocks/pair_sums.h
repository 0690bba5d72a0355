// SPDX-License-Identifier: MIT
// Sums of products of two signals in blocks. Each signal is split into disjoint blocks of half
// a transform. Each block is transformed once, followed by zeros. The products of all pairs of
// blocks that contribute to an output block are summed in the spectrum. The halves by which
// neighbouring sums overlap are added there too, so every output block takes one inverse transform
// and is written once. (theory.md, section 7; decision 10.)
#ifndef PARTITA_PAIR_SUMS_H
#define PARTITA_PAIR_SUMS_H

#include "base/ranges.h"
#include "base/thread.h"
#include "fft/fft.h"
#include "kernels/kernels.h"

// Spectra stored line by line: the first lines of all spectra are adjacent, then all second lines,
// and so on. Products of all pairs then read memory in order. Between the last spectrum of one line
// and the first of the next there is space for at least BLOCK_MARGIN spectra of zeros, so that
// sums that are computed together need no special cases at the ends.
enum {
    BLOCK_MARGIN = CMAC_SUMS - 1,
    MIN_IN_FLIGHT = 8, // output blocks that are summed at once: enough for several threads, and
    PER_TAP_BLOCK = 2, // at least twice the blocks of the left operand, which are all read
};

struct block_spectra {
    char *lines;
    size_t count; // spectra
};

// Bytes of `count` spectra of `lines` lines; SIZE_MAX on overflow.
size_t block_spectra_bytes(size_t lines, size_t count);

// The transform of blocks of one size, the threads that work on them, and the memory of these
// threads: `work`, for each its buffers and then those of sums.
struct block_transform {
    struct fft *fft; // NULL: there are none
    const struct kernels *kernels;
    size_t sample_bytes;
    int threads;
    size_t samples, spectra, narrow; // bytes of the buffers
    char *work;
    size_t work_stride; // from one thread to the next
};

// Samples of a block of half a transform.
static inline size_t block_length(const struct block_transform *transform)
{
    return transform->fft->n / 2;
}

// The buffers of one thread: samples, one or more spectra, scratch of transforms, and a block of
// taps before it is widened to complex samples.
struct block_buffers {
    char *samples, *spectrum, *scratch, *narrow;
};

struct block_buffers block_buffers_of(const struct block_transform *transform, int worker);
size_t block_buffers_bytes(const struct block_transform *transform);

// Spectrum `index` = transform of x[length], which may be buffers->samples, and zeros.
void block_forward(const struct block_transform *transform, const struct block_spectra *spectra,
                   size_t index, const void *x, struct block_buffers *buffers);

// The blocks of several channels of a signal: spectrum i of channel c is the transform of the
// samples from first + i * length on of x + c * size, which are zero outside [0, size).
struct block_inputs {
    const struct block_transform *transform;
    const char *x;
    size_t size;
    ptrdiff_t first;
    struct block_spectra spectra; // of channel 0; those of the others follow
    size_t from, end;             // the spectra that block_inputs_forward computes
};

struct block_spectra block_inputs_spectra(const struct block_inputs *inputs, size_t channel);
void block_inputs_forward(struct block_inputs *inputs, size_t channels);

// x[length] = the first half of the inverse transform of the spectrum, which is destroyed. x may be
// buffers->samples. The result has the transform's gain: callers divide the left operand by it.
void block_inverse(const struct block_transform *transform, void *x, void *spectrum,
                   struct block_buffers *buffers);

// Writes the zeros around spectra 0 .. used-1 of each line. The right operand of sums needs them.
void block_spectra_margins(const struct block_transform *transform,
                           const struct block_spectra *spectra, size_t used);

// Moves `count` spectra to the front.
void block_spectra_shift(const struct block_transform *transform,
                         const struct block_spectra *spectra, size_t from, size_t count);

// Sums over pairs: block i of `left` and block j of `right` contribute to output block i + j.
// With `lags` they contribute to block j - i and `left` is conjugated; block t then holds the lags
// from t * length on.
struct pair_sums {
    const struct block_transform *transform;
    struct block_spectra left, right;
    struct range right_blocks; // those of right's spectra
    bool lags;
    ptrdiff_t first; // output blocks first .. first + count - 1
    size_t count;
    char *out;   // count + 1 spectra; pair_sums_out says which one is an output block's
    bool add;    // add to the contents of `out`: several channels are summed
    bool gather; // after the last channel: add the overlapping halves
};

// Bytes that one thread needs if the left operand has that many spectra.
size_t pair_sums_bytes(size_t left_count);

// Runs all sums; a task computes a few lines of all outputs.
void pair_sums_run(struct pair_sums *sums);

// The spectrum of output block first + i.
char *pair_sums_out(const struct pair_sums *sums, size_t i);

#endif
