// SPDX-License-Identifier: MIT
// Kernels of cuda/blocks and of kept spectra: spectra of parts of lines, sums of their products,
// and the way back.
//
// A part has as many samples as a transform has points, and zeros behind it: of real samples the
// turned transform (fft.h), modulo u^points + i; of complex ones two planes, modulo u^points - 1
// and u^points + 1. So moving samples by a part is a factor of -i, or 1 and -1, whatever the order
// of the bins is (docs/theory.md, 7).
#ifndef PARTITA_CUDA_SPECTRA_H
#define PARTITA_CUDA_SPECTRA_H

#include "windows.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the kernels know of a plan's transform.
struct cuda_kit {
    struct cuda_fft_form form;
    int64_t points, planes; // planes: 1 of real samples, 2 of complex ones
    bool f64, within;       // a thread block
    const void *twist; // what a long turned transform's samples, or those of the second plane, are
                       // multiplied by
};

// Which of an array's lines goes with line i of others: i has digits below n, the last the least,
// and the line is the sum of digit[d]*step[d].
enum { CUDA_DIGITS = 3 };
struct cuda_digits {
    int64_t n[CUDA_DIGITS], step[CUDA_DIGITS];
};

// Where results go: of a line's positions 0 .. end-1 those at multiples of `stride`.
struct cuda_sink {
    void *y;
    int64_t line, lines, length; // the first line of y, how many, samples of each
    int64_t stride, end;
    const void *bias; // [channels]; NULL: none
    int64_t channels; // of consecutive lines
    bool complex, relu, reversed;
};

// Sums of products. Blocks `left` of some lines and blocks `right` of others meet in output block
// left + right. Of every line of outputs blocks first .. first + count - 1 are made, each with what
// the sum of the block before it reaches into it.
struct cuda_pairs {
    int64_t lines; // of outputs
    struct cuda_digits left_lines,
        right_lines;    // of each of them the first pair of lines; left_first is added to its
    int64_t left_first; // number on the left
    int64_t terms, left_term,
        right_term; // pairs that are summed, and how far it is from one to the next
    int64_t left_count, right_count; // blocks of a line
    int64_t right_first;             // which block the right lines' first one is
    int64_t first, count, run;       // run: blocks that one thread makes
    bool add;                        // to what is there
    const void *left, *right;        // [lines][blocks][planes][points]
    void *out;                       // [lines of outputs][count][planes][points]
};

// Windows of outputs, each of which sees all of both operands (decision 10): window w of a line of
// outputs is the sum over channels and parts of the taps, part i of them meeting the window of x
// from x.first + w*hop - i*part on.
struct cuda_lags {
    struct cuda_windows taps, x; // taps: [parts]
    const void *taps_samples, *x_samples;
    struct cuda_digits taps_lines, x_lines; // of each line of outputs the first channel's
    int64_t channels, taps_term, x_term;
    int64_t hop;
    int64_t first, items, windows; // items [line][window], from `first` on
    int64_t runs;                  // that the elements [channel][part] of an item are cut into
};

// Queue spectra [lines][windows][planes][points], or for long transforms the points that are to be
// transformed.
cudaError_t cuda_launch_parts(const struct cuda_kit *kit, void *to,
                              const struct cuda_windows *windows, int64_t lines, const void *x,
                              cudaStream_t stream);

// Queue the results that spectra [lines][blocks][planes][points] hold, long ones transformed back;
// block 0 begins at position `first`.
cudaError_t cuda_launch_results(const struct cuda_kit *kit, const struct cuda_sink *sink,
                                const void *from, int64_t first, int64_t blocks,
                                cudaStream_t stream);

// Queue the spectra [blocks][planes][points] of the same blocks the other way round, complex
// samples conjugated: block i is the conjugate of block blocks-1-i, moved on by a part, so that
// none of its samples stands before the block. Pairs with them meet in output block right - left +
// blocks: what is convolution of them is correlation with `from`.
cudaError_t cuda_launch_mirrored(const struct cuda_kit *kit, void *to, const void *from,
                                 int64_t blocks, cudaStream_t stream);

cudaError_t cuda_launch_pairs(const struct cuda_kit *kit, const struct cuda_pairs *pairs,
                              cudaStream_t stream);

// Bytes of shared memory of a thread block that sums: of a transform and of a spectrum.
static inline size_t cuda_lags_shared(size_t points, bool f64)
{
    return cuda_fft_shared(points, f64) + points * 2 * (f64 ? 8 : 4);
}

// Queue sums [items][runs][points] of runs of elements; the sums of groups of CUDA_LAGS_GROUP of
// `runs` such sums each; the outputs of items whose sums are [items][points].
enum { CUDA_LAGS_GROUP = 32 };
cudaError_t cuda_launch_lags(const struct cuda_kit *kit, const struct cuda_lags *lags, void *sums,
                             cudaStream_t stream);
cudaError_t cuda_launch_lags_add(const struct cuda_kit *kit, void *to, const void *from,
                                 int64_t items, int64_t runs, cudaStream_t stream);
cudaError_t cuda_launch_lags_results(const struct cuda_kit *kit, const struct cuda_sink *sink,
                                     const struct cuda_lags *lags, const void *sums,
                                     cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
