// SPDX-License-Identifier: MIT
// Kernels: pure loops over pointers, lengths and strides, no state, no allocation. Each slot has
// versions k_<op>_<type>_<isa>, in the file that has KERNEL(<op>), built once per instruction set.
// The comment on a slot is its contract, which tests/kernels checks; reference.c there has it in
// plain loops.
//
// A line of a spectrum is one cache line of real parts and one of imaginary parts: SPECTRUM_LANES
// bins. The layout is the same at every instruction set.
//
// Unless said otherwise pointers are aligned to their scalar only, and nothing outside the stated
// ranges is read or written. "samples" below are reals of the table's precision. Order of
// operations on one output never depends on its position or on n: a call may be split anywhere and
// gives the same bits.
#ifndef PARTITA_KERNELS_H
#define PARTITA_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "tile_kernels.h"

enum {
    FIR_SEGMENT = 64,                               // taps summed before a sum is rounded into y
    SPECTRUM_LANES_BYTES = 64,                      // the real lanes of a line
    SPECTRUM_LINE_BYTES = 2 * SPECTRUM_LANES_BYTES, // with the imaginary ones
    SPECTRUM_I16_BYTES = SPECTRUM_LINE_BYTES / 2    // a line of f32 in 16 bits
};

// Samples and taps of a filter: real; complex samples, interleaved, and real taps; both complex.
enum fir_type { FIR_REAL, FIR_REAL_TAPS, FIR_COMPLEX, FIR_TYPES };

// y[i] += sum over j < taps of h[j] * x[i - j], for i < n. Reads x[-(taps-1) .. n-1]. y does not
// overlap x or h. Sums are computed in segments of at most 64 taps, each rounded once into y.
// Tolerance relative to the exact sum: 4 u sqrt(taps), L2.
typedef void fir_fn(void *y, const void *x, const void *h, size_t n, size_t taps,
                    enum fir_type type);

// Which taps and samples the outputs of a resampler read: an output reads the row `branch` of the
// taps. The next one reads the row next_branch further on, modulo `branches`, and samples that are
// next_sample further on, and one more where the number of the row passes `branches`.
struct resample_position {
    size_t branches, pitch; // rows of taps, `pitch` reals apart
    size_t taps;            // of a row
    size_t branch, sample;  // of the output; samples between it and the output before
    size_t next_branch, next_sample;
};

static inline void resample_advance(struct resample_position *at)
{
    at->branch += at->next_branch;
    at->sample = at->next_sample;
    if (at->branch < at->branches) return;
    at->branch -= at->branches;
    at->sample++;
}

// y[i] += sum over j < taps of row[taps-1-j] * x[s - j], for outputs i < n with the rows and
// samples s of the positions, s = 0 for the first output. Of complex samples a row has every tap
// twice; of complex taps the first half of a row has the real part of every tap twice, the second
// half the imaginary parts. Rows are aligned to CONV_BLOCK_BYTES; behind a row's taps are zeros up
// to a multiple of that. Reads x[-(taps-1)] up to the last output's sample. Tolerance relative to
// the exact sum: 4 u sqrt(taps), L2.
typedef void resample_fn(void *y, const void *x, const void *h, const struct resample_position *at,
                         size_t n, enum fir_type type);

// y[b] = sum over t < terms of x[t*x_stride + b] * h[t*h_stride + b], complex products bin by bin,
// for b < n_lines lines; strides in lines. All pointers 64-byte aligned. The sum stays in registers
// over all terms, in order of t. y may equal x or h only when terms == 1.
typedef void cmac_fn(void *y, const void *x, size_t x_stride, const void *h, size_t h_stride,
                     size_t terms, size_t n_lines);

// The last spectra of a stream's input are a ring of slots. For each line of the spectrum its slots
// are adjacent, followed by copies of the first slots, so that the CMAC_SUMS - 1 spectra after a
// slot in time also follow it in memory. A kernel may read either of two that are the same.
enum { CMAC_SUMS = 4 };

// Lines of a filter in 16 bits (block floating point) have one word of 32 bits for each bin: a
// signed mantissa m of 16 bits for the real part in the lower half, one for the imaginary part in
// the upper half. Each stands for m * 2^16 * scale, rounded once to f32. `scale` is aligned to its
// scalar. The sum of a bin's real and imaginary part must be finite in x and in h. Roundings are
// relative to the product of the magnitudes of a bin of x and one of h, not to each product of
// their parts.

// One input's ring and the partitions of a filter that it is multiplied by.
struct cmac_path {
    const void *x;           // the ring
    const void *h;           // for each line the adjacent partitions first .. first+count-1
    const float *scale;      // i16: of each line of h, in the order of the lines
    size_t first, count;     // partitions
    size_t x_pitch, h_pitch; // from one line of the spectrum to the next, in lines; the same for
                             // all paths of a call
};

// What is prefetched after the lines of a call: the operands of the next call, of another stream.
struct cmac_next {
    size_t lines;      // by which the path's x and h are prefetched instead of `ahead`
    const void *x, *h; // as in struct cmac_path, with the same pitches; of the line `first` on
    size_t first;
};

// Further paths of a call, whose products are added to fewer sums than those of the call.
struct cmac_more {
    const struct cmac_path *paths;
    size_t n_paths, sums; // 1 or 2
};

// Which partitions are multiplied by which spectra.
struct cmac_terms {
    size_t slots, newest;      // partition p is multiplied by the slot `multiple * p` before the
                               // newest,
    size_t multiple;           // a distance of less than one round of the ring
    size_t sums;               // 1, 2 or 4: sum k uses the slot k after that
    bool overwrite[CMAC_SUMS]; // the sum begins with 0, not with the contents of y
    bool i16;                  // h has 16 bits; of f32 alone
    size_t ahead;              // lines by which h is prefetched, and x by some fifty products; 0:
                               // neither
    bool x_near;               // x is in a near cache and is not prefetched
    const struct cmac_next *next; // calls of one path, with `ahead`; NULL: nothing after the lines
    const struct cmac_more *more; // [n_more] after the paths of the call, in order
    size_t n_more;
};

// y[k][line] += sum over paths and their partitions p of x[slot_p + k][line] * h[p][line], complex
// products bin by bin, for lines first .. end-1 and k < terms->sums, or the sums of terms->more.
// All pointers 64-byte aligned. The sums stay in registers, in order of paths and partitions, and
// each sum has the same bits for every number of sums. Each h is read once for as many sums as
// there are registers for. y does not overlap the operands. Prefetched addresses may lie beyond the
// operands.
typedef void cmac_partitions_fn(void *const *y, const struct cmac_terms *terms,
                                const struct cmac_path *paths, size_t n_paths, size_t first,
                                size_t end);

// y[i] += x[i], i < n samples.
typedef void add_fn(void *y, const void *x, size_t n);

// y[i] = s * x[i], i < n samples; y == x allowed.
typedef void scale_fn(void *y, const void *x, double s, size_t n);

// The bits, without the sign, of the sample of largest magnitude among n; infinities and NaN count
// as larger than any number. 0: all samples are zero.
typedef uint64_t peak_fn(const void *x, size_t n);

// y[i] += (x[i] - y[i]) * (first + i/per_frame) * slope, i < n < 2^31: a fade from y to x in
// frames of per_frame samples, 1 or 2. Weights are rounded to the samples' precision.
typedef void blend_fn(void *y, const void *x, size_t n, size_t per_frame, double first,
                      double slope);

// Spectrum y of n bins from interleaved complex x[n]; unused lanes of the last line become 0. y
// aligned.
typedef void split_fn(void *y, const void *x, size_t n);

// Interleaved complex y[n] from the first n bins of a spectrum x. x aligned.
typedef void join_fn(void *y, const void *x, size_t n);

// Layers. Positions of a packed input are its samples in memory order, so that a tap is an offset
// and one loop serves any rank, dilation and number of channels. n is always a multiple of a block;
// the caller does not store the sums that it does not need.
enum {
    CONV_CHANNELS = 8,          // output channels computed at once
    CONV_BLOCK_BYTES = 64,      // n counts whole blocks of that many bytes
    CONV_AHEAD_BYTES = 8 << 10, // prefetch distance at which x arrives from memory in time
};

// Rows of adjacent cache lines that a later call reads or writes, line after line. `at` is a
// number, for prefetched lines may lie beyond the array.
struct conv_prefetch {
    uintptr_t at;       // the next line
    size_t left, lines; // lines that are left of this row; lines of the other rows
    size_t skip;        // bytes from the end of a row to the start of the next, modulo 2^64
    size_t count;       // lines that a call prefetches, at most its terms
};

// y[k*y_stride + i] += sum over t < terms of w[t*w_term + k*w_channel] * x[offset[t] + i], for
// k < channels <= CONV_CHANNELS, i < n. The sum is rounded once into y, in order of t; overwrite:
// y is overwritten by the sum. x is prefetched `ahead` bytes before its use; 0: x is in a cache.
// Tolerance of the sum: 4 u sqrt(terms), relative L2. Also `count` lines of `prefetch` are fetched
// into the L2 cache, one with each of the first terms, so that memory works while products are
// summed; it moves on by them. prefetch may be NULL. past_caches: y is in no cache and is written
// past them, with `overwrite`; its rows are aligned to CONV_BLOCK_BYTES. A fence must follow before
// other threads read y.
struct conv_operands {
    void *y;
    const void *x, *w;
    const size_t *offset;
    size_t y_stride, w_term, w_channel, terms, channels, n, ahead;
    bool overwrite, past_caches;
};

typedef void conv_fn(const struct conv_operands *operands, struct conv_prefetch *prefetch);

// conv_pairs: the same with a pair of bf16 in place of each scalar of w and x: a term adds the
// product of the upper halves, then that of the lower ones, each rounded to nearest even. Denormal
// numbers count as 0, also as sums, whatever the caller does with them. Tolerance: that of twice as
// many terms. Source: VDPBF16PS, Intel 64 and IA-32 Architectures Software Developer's Manual,
// volume 2.

// w[k*w_stride + t] += sum over i < n of y[k*y_stride + i] * x[offset[t] + i], for k < channels, t
// < terms; n is a multiple of a block. Each lane has its own sum; the lanes are added in a tree.
// Tolerance of the sum: 4 u sqrt(n), relative L2. While the first terms are summed, the n scalars
// from `ahead` on are prefetched into the L2 cache; they need not be memory. NULL: none.
struct conv_weight_operands {
    void *w;
    const void *y, *x, *ahead;
    const size_t *offset;
    size_t w_stride, y_stride, channels, terms, n;
};
typedef void conv_weight_fn(const struct conv_weight_operands *operands);

// y[r*n + i] = x[r*x_stride + i], r < rows, i < n: rows without gaps. May write into the block
// after the last row's end, and read up to a block beyond the end of any row.
typedef void conv_rows_fn(void *y, const void *x, size_t x_stride, size_t rows, size_t n);

// How a sum is finished as it is stored.
struct conv_finish {
    const void *bias; // one real; NULL: 0
    bool each;        // a bias for each sample, with a y_step of 1
    bool relu;        // negative results become 0
};

// y[i*y_step] = the finished sum[i], i < n (any n). y == sum allowed with y_step 1.
typedef void conv_store_fn(void *y, size_t y_step, const void *sum, size_t n,
                           const struct conv_finish *finish);

// Planes in lanes: a position holds one sample of each of 16 planes of f32 or 8 of f64. With every
// instruction set it is a block of CONV_BLOCK_BYTES, aligned to 64 bytes. Each plane has its own
// taps.
enum { MAX_SPAN_TAPS = 8 };

// Adjacent taps: tap t of the span is multiplied by position offset + t.
struct tap_span {
    size_t offset, taps; // 1 .. MAX_SPAN_TAPS
};

// y[i*y_stride][lane] = x[lane][i*step] for i < n, 0 in lanes whose x is NULL. Fast with a step of
// 1, and where the planes of the lanes are adjacent samples.
typedef void lanes_read_fn(void *y, size_t y_stride, const void *const *x, size_t step, size_t n);

// y[lane][i*step] = x[i][lane] + bias[lane] for i < n, of lanes whose y is not NULL; with relu
// negative results become 0. bias is a block; NULL: 0. Fast where lanes_read is.
typedef void lanes_write_fn(void *const *y, size_t step, const void *x, size_t n, const void *bias,
                            bool relu);

// y[i] += sum over spans and their taps t of w[t] * x[offset + t + i], lane by lane, for i < n; w
// holds a block for each tap, span after span. The sum is rounded once into y, in order of w.
// Tolerance of the sum: 4 u sqrt(taps), relative L2.
typedef void lanes_conv_fn(void *y, const void *x, const void *w, const struct tap_span *spans,
                           size_t n_spans, size_t n);

// w[t] += sum over i < n of y[i] * x[offset + t + i], lane by lane, for the taps t of all spans, w
// as above. Tolerance of the sum: 4 u sqrt(n), relative L2.
typedef void lanes_weight_fn(void *w, const void *y, const void *x, const struct tap_span *spans,
                             size_t n_spans, size_t n);

// A correlation of one plane, whose rows follow each other. Along the rows (0) and along a row (1):
// y[p] sums over taps w[t] * x[step*p + first + t], with x = 0 outside [0, size).
struct plane_axis {
    size_t size, count, taps, step; // size: samples of x; count: outputs
    ptrdiff_t first;
};
struct plane_conv {
    const void *x, *w;
    void *y;
    struct plane_axis axis[2]; // both with a step of 1, or both with 2
    const void *next[2];       // the next call's x and y, which are prefetched; NULL: not
};
enum { PLANE_ROWS = 7 }; // the least number of rows of y

// Whether a column may have so many taps along the rows.
static inline bool plane_serves(size_t taps)
{
    return taps >= 1 && taps <= 7 && taps != 6;
}

// y = the sums plus the bias, one real; NULL: 0; with relu negative results become 0. w has the
// order of plane_next_tap; along a row there are any number of taps. Reads x nowhere but inside the
// plane. Tolerance: 4 u sqrt(taps), relative L2.
typedef void plane_conv_fn(const struct plane_conv *call, const void *bias, bool relu);

// The tap along the rows and that along a row of the next of w: columns one after the other, in
// them the taps that are multiplied by the same rows of x, from {0, 0} on.
static inline void plane_next_tap(const struct plane_axis axis[2], size_t tap[2])
{
    const size_t step = axis[0].step;
    tap[0] += step;
    if (tap[0] < axis[0].taps) return;
    tap[0] = tap[0] % step + 1;
    if (tap[0] < step && tap[0] < axis[0].taps) return;
    tap[0] = 0;
    tap[1]++;
}

// The gradient of the taps of one plane, with plane_serves(axis[0].taps): block t*axis[1].taps + u
// of w gains the sum over p and q of gy[p][q] * x[step*p + first + t][step*q + first + u], x being
// 0 outside, in any lanes. Only samples of x that an output meets are multiplied, maybe also by 0.
// Reads nothing outside the planes. Tolerance of a block's sum: 4 u sqrt(outputs), relative L2.
struct plane_weight {
    const void *x, *gy;
    void *w;
    struct plane_axis axis[2]; // both with a step of 1, or both with 2
    const void *next[2]; // the next call's x and gy: prefetched, need not be memory; NULL: not
};
typedef void plane_weight_fn(const struct plane_weight *call);

// A row of outputs of all channels of a layer in which every channel has taps of its own; samples
// and outputs are [position][channel].
struct channels_conv {
    const void *const *x; // [rows] rows of samples
    const void *w;        // [rows][axis.taps][w_pitch]
    void *y;
    const void *bias; // [channels]; NULL: 0
    size_t rows, channels, w_pitch;
    struct plane_axis axis; // along a row
    bool relu;              // negative results become 0
    // The first of next_rows rows that only the next call reads. They are prefetched, as are the
    // outputs behind those that are computed; none need be memory. 0 rows: nothing is.
    const void *next_x;
    size_t next_rows;
};

// Whether channels_conv serves rows of so many channels.
static inline bool channels_serve(const struct plane_axis *axis, size_t channels, size_t lanes)
{
    return (axis->step == 1 || axis->step == 2) && axis->taps % 2 == 1 && axis->taps >= 3 &&
           axis->taps <= 7 && axis->count >= 7 && channels >= lanes;
}

// y[p] = sum over rows r and taps t of w[r][t] * x[r][step*p + first + t], channel by channel, plus
// the bias. Positions outside are not read. Tolerance: 4 u sqrt(rows * taps), relative L2.
typedef void channels_conv_fn(const struct channels_conv *call);

// Complex elements of planes in lanes: block k*stride from re on holds real parts, the block `im`
// blocks after it the imaginary parts. 2n real blocks are such a row with stride 1 and im = n:
// element k is sample[k] + i sample[n + k].
struct lanes_row {
    void *re;
    size_t im, stride;
};

// to = the transform of from, lane by lane, in the order in which the passes leave it; to == from
// is allowed. With passes = 0 (n = 1) nothing is done. The inverse is multiplied by n; `from` is
// destroyed.
typedef void lanes_dft_fn(const struct lanes_row *to, const struct lanes_row *from,
                          const struct lanes_dft *dft);

// Transforms x, multiplies by h, which has the order of a transform's results, and transforms back
// into y without dividing by n; at least one pass. Elements of h and `work`, n of each, lie one
// after the other, im after re. x is kept unless y == x, which is allowed.
typedef void lanes_filter_fn(const struct lanes_row *y, const struct lanes_row *x, const void *h,
                             void *work, const struct lanes_dft *dft);

// y[k] = x[k] * h[k], complex, for k < n; conjugate: h[k] is conjugated; add: the product is added
// to y[k]. y == x allowed.
typedef void lanes_product_fn(const struct lanes_row *y, const struct lanes_row *x,
                              const struct lanes_row *h, size_t n, bool conjugate, bool add);

// The sum of n samples, by eight accumulators in double.
typedef double sum_fn(const void *x, size_t n);

// Samples stored in two bytes: y[i] = x[i], i < n, widened to f32 (exact) or narrowed from f32
// (rounded to nearest even; numbers that are too large become infinite, NaN stays NaN).
enum half { HALF_F16, HALF_BF16, HALF_TYPES };
typedef void convert_fn(void *restrict y, const void *restrict x, size_t n);

// y[i] = first[i*step] in the lower half, second[i*step] in the upper half of a word, i < n.
typedef void pair_fn(void *restrict y, const void *first, const void *second, size_t step,
                     size_t n);

// Tiles of a Winograd transform along one axis: element k of the tiles of row r is at offset[k] of
// x, with adjacent tiles; n is a multiple of a block (CONV_BLOCK_BYTES).
struct winograd_rows {
    size_t n, rows;                    // tiles of a row; rows
    size_t x_row_stride, y_row_stride; // from one row to the next
    size_t y_stride;                   // from one element of a result to the next
    const size_t *offset;
    size_t ahead; // what is that far behind y, or of winograd_output behind x, is prefetched; 0: no
};

// y[r*y_row_stride + i*y_stride + p] = sum over k of M[i][k] * x[r*x_row_stride + offset[k] + p], p
// < n, with M of winograd_matrix.h for `extent` = 4 to 8: winograd_input: B' (extent rows and
// columns); winograd_output: A' (`count` rows); winograd_taps: G (`count` columns). count is 2 to
// extent-1, for input 0. Each kernel has its own order of additions. Tolerance: 4 u
// sqrt(extent) of the sum of magnitudes. y does not overlap x.
typedef void winograd_fn(void *y, const void *x, size_t extent, size_t count,
                         const struct winograd_rows *rows);

// Rows of samples whose tiles begin `count` samples apart. The results of rows r, r + residues, ..
// are adjacent. Samples first .. last-1 of rows first_row .. last_row-1 exist, of which x is the
// first; others are zeros and are not read.
struct winograd_lines {
    size_t rows, pitch; // distance from one row to the next
    size_t first_row, last_row, first, last;
    ptrdiff_t ahead;  // what is that far behind the samples is prefetched; 0: no
    size_t tiles;     // of a row
    size_t residues;  // at least 1
    size_t y_residue; // from the results of row r to those of row r + 1 < residues
    size_t y_stride;  // from one element of a result to the next
};

// Transforms of the tiles of rows: y[r%residues*y_residue + r/residues*tiles + i*y_stride + t] =
// sum over k of M[i][k] * s[r][t*count + k], t < tiles, with M as above and s[r][c] = x[(r -
// first_row)*pitch + c - first] where that exists. winograd_input_lines: B', whose tiles overlap;
// winograd_taps_lines: G. Extent 1, with count 1, copies. May read as if tiles were rounded up to a
// multiple of a block and their samples to a multiple of count. Tolerance as above. y does not
// overlap x.
typedef void winograd_lines_fn(void *y, const void *x, size_t extent, size_t count,
                               const struct winograd_lines *lines);

// Results of tiles, `cols` of them side by side, in rows of samples. Rows first_row .. last_row-1
// and samples first .. last-1 of them are stored, the first of these at y; others are not.
struct winograd_stores {
    size_t rows, x_row, x_stride; // of a tile, from one row of it to the next, and of elements
    size_t tiles, cols;
    size_t pitch;    // of y
    ptrdiff_t ahead; // what is that far behind whole vectors of y is prefetched; 0: no
    size_t first_row, last_row, first, last;
    const struct conv_finish *finish;
};

// Sample (t / cols * rows + i, t % cols * count + k) = the finished sum over j of M[k][j] *
// x[i*x_row + j*x_stride + t], i < rows, k < count, t < tiles, a multiple of cols, with M as above:
// winograd_store: A'. Extent 1, with count 1, copies. Reads as if each row of tiles were rounded up
// to a multiple of a block. Tolerance as above.
typedef void winograd_store_fn(void *y, const void *x, size_t extent, size_t count,
                               const struct winograd_stores *stores);

// y[i*y_stride + k] = x[k*x_stride + i], k < rows, i < n. x_stride is modulo 2^64: rows may lie one
// before the other. Reads between rows of x, but neither before the first nor behind the last;
// writes nothing else, some elements twice.
typedef void transpose_fn(void *y, size_t y_stride, const void *x, size_t x_stride, size_t rows,
                          size_t n);

struct fft_kernels; // passes of the native transform: fft_kernels.h

// The slots whose kernels are called like them, file by file; slots, prototypes and tables are made
// from this list.
// clang-format off
#define EACH_KERNEL(DO) \
    /* fir.c, resample.c */ DO(fir_fn, fir) DO(resample_fn, resample) \
    /* cmac.c */ DO(cmac_fn, cmac) DO(cmac_partitions_fn, cmac_partitions) \
    /* plain.c */ DO(peak_fn, peak) DO(blend_fn, blend) DO(add_fn, add) \
    DO(scale_fn, scale) DO(sum_fn, sum) DO(split_fn, split) DO(join_fn, join) \
    DO(conv_rows_fn, conv_rows) DO(conv_store_fn, conv_store) \
    /* conv.c, transpose.c */ DO(conv_fn, conv) DO(conv_weight_fn, conv_weight) \
    DO(transpose_fn, transpose) \
    /* winograd.c */ DO(winograd_fn, winograd_input) DO(winograd_fn, winograd_output) \
    DO(winograd_fn, winograd_taps) DO(winograd_lines_fn, winograd_input_lines) \
    DO(winograd_lines_fn, winograd_taps_lines) DO(winograd_store_fn, winograd_store) \
    /* lanes.c */ DO(lanes_read_fn, lanes_read) DO(lanes_write_fn, lanes_write) \
    DO(lanes_conv_fn, lanes_conv) DO(lanes_weight_fn, lanes_weight) \
    DO(channels_conv_fn, channels_conv) \
    /* plane.c */ DO(plane_conv_fn, plane_conv) DO(plane_weight_fn, plane_weight) \
    /* lanes_dft.c */ DO(lanes_dft_fn, lanes_dft) DO(lanes_dft_fn, lanes_dft_inverse) \
    DO(lanes_filter_fn, lanes_filter) DO(lanes_product_fn, lanes_product) \
    DO(tile_dft_fn, tile_forward) DO(tile_dft_fn, tile_inverse) \
    /* tile_lines.c */ DO(tile_clip_fn, tile_clip) DO(tile_scatter_fn, tile_scatter) \
    DO(tile_split_fn, tile_split) DO(tile_join_fn, tile_join) DO(tile_factors_fn, tile_factors) \
    DO(tile_scalars_fn, tile_scalars) DO(tile_gradient_fn, tile_gradient)
#define KERNEL_SLOT(type, op) type *op;

struct kernels {
    const char *isa; // "c", "avx2", "avx512", "neon"
    bool f64;
    EACH_KERNEL(KERNEL_SLOT)
    convert_fn *widen[HALF_TYPES], *narrow[HALF_TYPES]; // NULL for f64
    pair_fn *pair;                                      // likewise
    conv_fn *conv_pairs; // if cpu_sums_pairs(); NULL for f64 and other instruction sets
    const struct fft_kernels *fft;
};
// clang-format on

// The table for an instruction set and precision; for one that was not built, that of the next
// lower one. Never NULL.
const struct kernels *kernels_select(enum cpu_isa isa, bool f64);

#endif
