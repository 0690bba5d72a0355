// SPDX-License-Identifier: MIT
// What overlap-add and overlap-save share: the choice of the FFT size, the filter's spectra, the
// products that sum the channels of a group, and the stream that collects input into blocks and
// pays them out.
#ifndef PARTITA_SPECTRAL_H
#define PARTITA_SPECTRAL_H

#include "core/plan.h"
#include "fft/fft.h"

// Where one transform of real samples holds everything: x and the taps in its first half, and the
// outputs come to lie there too, or the taps do backwards, and the outputs of the correlation come
// to lie there.
struct spectral_half {
    bool used, mirrored;
    ptrdiff_t at; // sample of x at the transform's start
    size_t first; // backward weight: where the gradient begins
};

// Whether halves of n samples do; for backward weight, or for filtering.
bool spectral_fits_half(const struct shape *shape, size_t n, bool weight,
                        struct spectral_half *ret);

// The plan's state: one transform of n samples a channel for every block of `hop` input frames, at
// most n - span + 1.
struct spectral {
    struct shape shape; // what is run: the plan's problem, or of backward data its adjoint
    struct spectral_half half;
    struct fft *fft;
    bool together; // all threads work on one block
    size_t n, hop;
};

// Of all FFT sizes that `consider` fills an estimate for, if it takes fewer seconds than `limit`,
// about the cheapest. A request for a single size is kept to.
typedef bool spectral_consider_fn(const struct request *request, size_t n, double moves,
                                  double limit, struct estimate *ret);
void spectral_search(const struct request *request, spectral_consider_fn *consider, double moves,
                     struct estimate *ret);

// Blocks of `hop` outputs; bytes of the spectrum of n samples at most, without a transform at hand.
size_t spectral_blocks(const struct shape *shape, size_t hop);
size_t spectral_bytes(const struct shape *shape, size_t n);

// Seconds of `channels` transforms, half a pair of them each, and `cells` products with spectra
// that lie at hand, of one block; `moves` as for spectral_filtering.
double spectral_block_seconds(const struct request *request, size_t n, double moves);

// Fills *ret for filtering, if a transform of n samples takes fewer seconds than `limit`. `moves`
// says how many times the engine moves each sample of a block besides transforming it.
spectral_consider_fn spectral_filtering;

enum partita_status spectral_plan_create(struct partita_plan *plan, const struct request *request);
void spectral_plan_destroy(struct partita_plan *plan);
enum partita_status spectral_filter_create(struct partita_filter *filter, const void *taps);

// Half of the transform from samples at `at` of x[size], in place where it lies inside; `samples`
// holds n of them.
void spectral_forward_half(const struct spectral *spectral, void *spectrum, const char *x,
                           char *samples, char *scratch);

// Working memory of one thread: the spectra of one group's inputs, one output spectrum, n samples,
// FFT scratch.
struct spectral_work {
    char *inputs, *output, *samples, *scratch;
};

size_t spectral_work_bytes(const struct shape *shape, const struct fft *fft);
struct spectral_work spectral_work_cut(const struct shape *shape, const struct fft *fft,
                                       struct arena *arena);

// The spectrum of output `channel` from those of its group's inputs: a sum of products.
void spectral_sum(const struct partita_filter *filter, size_t channel, struct spectral_work *work);

// samples[n] of output `channel`: the sum, then one inverse transform.
void spectral_output(const struct partita_filter *filter, size_t channel,
                     struct spectral_work *work);

// Whether products may take the place of the inputs' spectra, which nobody else wants.
bool spectral_in_place(const struct shape *shape);

// Whether several threads do well to work on one transform together: the functions below.
bool spectral_is_long(const struct shape *shape, const struct fft *fft);

// The transform of x[n], on up to `threads` threads.
void spectral_long_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                           int threads);

// work->samples[n] of output `channel`, the only one of its group, from its input x[n], which may
// be work->samples.
void spectral_long_filter(const struct partita_filter *filter, size_t channel, const void *x,
                          struct spectral_work *work, int threads);

// y[i] = x[i * stride], i < n samples.
void spectral_long_copy(void *y, const void *x, size_t stride, size_t n, size_t bytes, int threads);

// A stream that works block by block. Latency hop - 1: the first output of a block leaves with its
// last input.
struct block_stream {
    size_t history; // samples kept before the block's own in `window`
    size_t *fill;   // input frames of the current block so far
    size_t *set;    // which set of outputs belongs to the stream's own filter
    char *window;  // [in_channels][n]: history, then the block, then whatever the engine keeps zero
    char *ready;   // [2 sets][out_channels][hop]: outputs of the last complete block
    char *overlap; // [out_channels][span - 1], overlap-add only
    char *faded;   // [hop] outputs of one channel while fading
    struct spectral_work work;
};

// The place of an output channel's block in a set.
char *block_stream_ready(const struct partita_stream *stream, size_t set, size_t channel);

// `history` is span-1 for overlap-save; overlap-add passes 0 and gets an overlap array.
enum partita_status block_stream_open(struct partita_stream *stream, size_t history, bool overlap);
void block_stream_reset(struct partita_stream *stream);
struct region block_stream_region(struct partita_stream *stream);

// A block is worked on with both filters as soon as there are two.
size_t block_stream_swap_begin(struct partita_stream *stream);
size_t block_stream_swap_end(struct partita_stream *stream);
void block_stream_load(const struct partita_plan *plan, struct partita_load *ret);

// Takes frames up to the end of the block; when it is complete, calls run_block, which turns
// windows into `ready`.
struct step block_stream_step(struct partita_stream *stream, const struct frames *frames,
                              void (*run_block)(struct partita_stream *stream));

#endif
