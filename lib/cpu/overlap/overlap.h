// SPDX-License-Identifier: MIT
// Common parts of overlap-add and overlap-save: the choice of the FFT size, the spectra of a
// filter, and the products that sum the channels of a group.
#ifndef PARTITA_OVERLAP_H
#define PARTITA_OVERLAP_H

#include "base/sizes.h"
#include "base/thread.h"
#include "core/plan.h"
#include "cpu/conv/signal_rates.h"
#include "fft/fft.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

// One transform of real samples holds the whole problem: x and the taps fit its first half, and so
// do the outputs. `mirrored`: the taps are reversed, and the outputs of the correlation are in the
// first half.
struct overlap_half {
    bool used, mirrored;
    ptrdiff_t at; // index of the sample of x at the transform's start
    size_t first; // backward weight: index of the gradient's first sample
};

// The plan's state. Every block of `hop` input frames, at most n - span + 1, takes one transform of
// n samples per channel. `before`: of these, those before a block's outputs with overlap-save, at
// least span - 1.
struct overlap {
    struct shape shape; // the problem that is computed: the plan's, or for backward data its
                        // adjoint
    struct overlap_half half;
    struct fft *fft;
    bool shared;   // all threads work on the same blocks (long.c), or one alone does so
    size_t chunks; // backward weight: chunks of terms, each with its own sums; else 0
    size_t n, hop, before;
};

static inline const struct overlap *overlap_of(const struct partita_plan *plan)
{
    return plan->state;
}

// Overlap-save: index of the first sample of x that the transform of the block from output `first`
// on reads.
static inline ptrdiff_t overlap_block_begin(const struct overlap *overlap, size_t first)
{
    return causal_first(&overlap->shape.axis[0]) + (ptrdiff_t)first - (ptrdiff_t)overlap->before;
}

// Fills *ret for a transform of n samples and returns true if that takes less than `limit` seconds.
// `moves`: how many times the engine copies each sample of a block in addition to transforming it.
typedef bool overlap_estimate_fn(const struct request *request, size_t n, double moves,
                                 double limit, struct estimate *ret);
overlap_estimate_fn overlap_estimate_filtering;

// Finds approximately the cheapest FFT size among those that have an estimate. If the request names
// a size, only that one is tried.
void overlap_search(const struct request *request, overlap_estimate_fn *estimate, double moves,
                    struct estimate *ret);

// Whether half of a transform of n samples holds the whole problem, for backward weight or for
// filtering.
bool overlap_fits_half(const struct shape *shape, size_t n, bool weight, struct overlap_half *ret);

// Number of blocks of `hop` outputs.
static inline size_t overlap_block_count(const struct shape *shape, size_t hop)
{
    const struct axis *axis = &shape->axis[0];
    return ceil_div((axis->out - 1) * axis->stride + 1, hop);
}

// Maximum bytes of the spectrum of n samples; needs no transform object.
size_t overlap_spectrum_bytes(const struct shape *shape, size_t n);

// Seconds of the transforms and products of one block. `fft`: of a transform there and back.
double overlap_block_seconds(const struct request *request, size_t n, double moves, double fft);

enum partita_status overlap_plan_create(struct partita_plan *plan, const struct request *request);
void overlap_plan_destroy(struct partita_plan *plan);
struct filter_bytes overlap_filter_bytes(const struct partita_plan *plan);
enum partita_status overlap_filter_pack(struct partita_filter *filter, const void *taps,
                                        const struct region *scratch);

// The buffers of one thread: the spectra of one group's inputs, one output spectrum, n samples,
// scratch. Backward weight: `output` has the spectra of one group's outputs, and with a lone chunk
// `sums` has the sums of its paths. Rows of x, and of y or gy, are copied to x_rows and y_rows;
// with channels first x_rows is `samples`.
struct overlap_buffers {
    char *inputs, *output, *sums, *samples, *scratch;
    char *x_rows, *y_rows;
};
struct overlap_buffers overlap_buffers_layout(const struct partita_plan *plan, struct arena *arena);
struct overlap_buffers overlap_worker_buffers(const struct partita_plan *plan, char *workspace,
                                              int worker);

// Spectrum of input c of a group, from the samples of a window.
void overlap_transform(const struct overlap *overlap, size_t c, const void *samples,
                       struct overlap_buffers *buffers);

// Groups of one item of the batch that a task takes, `count` of them from `first` on: one, but with
// channels last those that have channels of the same rows.
struct overlap_groups {
    size_t item, first, count;
};
size_t overlap_max_groups(const struct shape *shape);
struct overlap_groups overlap_groups_at(const struct shape *shape, size_t item, size_t index);

// Rows of the channels of such groups. Channels of an array with channels last are transposed,
// OVERLAP_ROWS of them at a time, from or to a buffer; others are rows of the array itself.
struct overlap_rows {
    bool transposed;
    size_t offset, bytes;  // of the first channel in the array; of a sample
    size_t channels, size; // of the array: channels, positions
    size_t count;          // channels that are read or written
    ptrdiff_t first;       // position of the rows' first samples
    size_t n, pitch;       // samples of a row; from row to row of the buffer
};
enum { OVERLAP_ROWS = 16 };

// Bytes of a buffer of rows, for transforms of n samples; 0 if channels come first.
size_t overlap_rows_bytes(const struct shape *shape, size_t n);

// Rows of all channels of some groups: the samples that a transform reads of the window that begins
// at sample `first`; a block's outputs.
struct overlap_rows overlap_input_rows(const struct overlap *overlap,
                                       const struct overlap_groups *groups, ptrdiff_t first);
struct overlap_rows overlap_output_rows(const struct overlap *overlap,
                                        const struct overlap_groups *groups,
                                        const struct block_outputs *outputs);

// Channels in ascending order from 0 to count-1. overlap_read_row: the row of a channel of x, zero
// outside the array; with the first of several rows all of them are read. overlap_row_to: where the
// row of a channel of y is to be stored; then overlap_write_row, which with the last one writes
// all, if they are transposed. `rows`: the buffer.
const char *overlap_read_row(const struct partita_plan *plan, const struct overlap_rows *layout,
                             char *rows, const char *x, size_t channel);
char *overlap_row_to(const struct overlap_rows *layout, char *rows, char *y, size_t channel);
void overlap_write_row(const struct partita_plan *plan, const struct overlap_rows *layout, char *y,
                       const char *rows, size_t channel);

// The spectrum of output `channel` from those of its group's inputs: a sum of products; then
// samples[n] by one inverse transform.
void overlap_sum(const struct partita_filter *filter, size_t channel,
                 struct overlap_buffers *buffers);
void overlap_output(const struct partita_filter *filter, size_t channel,
                    struct overlap_buffers *buffers);

// Whether one transform at a time is faster than one for each thread, with the functions below.
bool overlap_is_long(const struct overlap *overlap);

// The transform of x[n], on up to `threads` threads.
void overlap_long_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                          int threads);

// All outputs of channel `channel`, the only one of its group, from its input x, last block first.
void overlap_long_filter(const struct partita_filter *filter, size_t channel, char *y,
                         const char *x, const struct overlap_buffers *buffers);

// The stream of overlap-save (stream.c). It keeps the samples of a transform of each input; a
// quarter more than a block, since a step looks up which of its inputs were not finite a block
// later.
static inline size_t overlap_history_frames(size_t n, size_t hop)
{
    return size_max(n, hop + hop / 4);
}
void *overlap_stream_layout(const struct partita_stream *stream, struct arena *arena);
struct step overlap_stream_step(struct partita_stream *stream, const struct frames *frames);
struct region overlap_stream_region(struct partita_stream *stream);
size_t overlap_swap_begin(struct partita_stream *stream);
size_t overlap_swap_end(struct partita_stream *stream);
void overlap_stream_load(const struct partita_plan *plan, struct partita_load *ret);

// Backward weight by the blocks of overlap-save (weight.c): makes the estimate; the bytes of
// workspace that all threads share, once the transform has been created; runs a call.
void overlap_weight_estimate(const struct request *request, struct estimate *ret);
size_t overlap_weight_shared(const struct overlap *overlap);
void overlap_weight_run(const struct partita_plan *plan, const struct operands *operands,
                        char *workspace);

#endif
