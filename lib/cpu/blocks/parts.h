// SPDX-License-Identifier: MIT
// Two signals in parts: each cut into disjoint blocks of half a transform, each block transformed
// once, zeros behind it. Products of all pairs of blocks that meet in an output block are summed in
// the spectrum; the halves by which neighbouring sums overlap are brought together there too, so
// every output block is gathered by one inverse transform and nothing is ever added to samples.
// (theory.md, section 7; decision 10.)
#ifndef PARTITA_PARTS_H
#define PARTITA_PARTS_H

#include "base/thread.h"
#include "fft/fft.h"
#include "kernels/kernels.h"

// A run of spectra that lie tile by tile (a tile is a block of a spectrum, as in kernels.h): of all
// spectra their first blocks side by side, then of all the next ones. Products of all pairs then
// read memory from front to back. Between the spectra of two tiles lie at least PARTS_MARGIN places
// for zeros, so that sums which are made at once need no ends of their own.
enum { PARTS_MARGIN = CMAC_SUMS - 1 };

struct parts {
    char *tiles;
    size_t count; // spectra
};

// What works on parts of one size.
struct parts_kit {
    const struct fft *fft;
    const struct kernels *kernels;
    size_t sample_bytes;
    size_t block; // samples of a part: half a transform
    size_t tiles; // of a spectrum
};

struct parts_kit parts_kit(const struct fft *fft, const struct kernels *kernels,
                           size_t sample_bytes);

// Bytes of `count` spectra of so many tiles, SIZE_MAX if that is more than memory.
size_t parts_bytes(size_t tiles, size_t count);

// Writes the zeros beside spectra 0 .. used-1, tile by tile. Needed on the right of parts_sum.
void parts_margins(const struct parts_kit *kit, const struct parts *parts, size_t used,
                   int threads);

// What one thread needs to transform a part.
struct parts_work {
    char *samples, *spectrum, *scratch;
};

struct parts_work parts_work_cut(const struct parts_kit *kit, struct arena *arena);

// Spectrum `index` = transform of work->samples, of which the first `block` are given and the rest
// is zeroed here.
void parts_forward(const struct parts_kit *kit, const struct parts *parts, size_t index,
                   struct parts_work *work);

// work->samples[block] = the first half of what the spectrum holds, the transform's gain taken out.
// It is destroyed.
void parts_inverse(const struct parts_kit *kit, void *spectrum, struct parts_work *work);

// Sums over pairs: left's block i and right's block j meet in output block i + j, or with `lags` j
// - i, left conjugated: block t then holds the lags from t * block on.
struct pairs {
    const struct parts_kit *kit;
    struct parts left, right;
    ptrdiff_t right_first; // index of the block that right's first spectrum is of,
    size_t right_count;    // and how many of them there are
    bool lags;
    ptrdiff_t first; // output blocks first .. first + count - 1
    size_t count;
    char *out;   // count + 1 spectra one after the other; parts_out says which an output block is
    char *work;  // [threads] of parts_sum_bytes
    bool add;    // to what is in `out`: several channels are summed
    bool gather; // the last channel: then bring the overlapping halves together
};

size_t parts_sum_bytes(size_t left_count);

// Moves `count` spectra to the front of the run, on up to `threads` threads.
void parts_shift(const struct parts_kit *kit, const struct parts *parts, size_t from, size_t count,
                 int threads);

// Runs all sums on up to `threads` threads, a few tiles of all outputs a task.
void parts_sum(struct pairs *pairs, int threads);

// The spectrum of output block first + i.
char *parts_out(const struct pairs *pairs, size_t i);

#endif
