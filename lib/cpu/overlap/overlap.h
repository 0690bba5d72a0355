// SPDX-License-Identifier: MIT
// What overlap-add and overlap-save share: the choice of the FFT size, the spectra of a filter, and
// the products that sum the channels of a group.
#ifndef PARTITA_OVERLAP_H
#define PARTITA_OVERLAP_H

#include "base/sizes.h"
#include "base/thread.h"
#include "core/plan.h"
#include "fft/fft.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

// Where one transform of real samples holds everything: x and the taps in its first half, and the
// outputs come to lie there too, or the taps do backwards, and the outputs of the correlation come
// to lie there.
struct overlap_half {
    bool used, mirrored;
    ptrdiff_t at; // sample of x at the transform's start
    size_t first; // backward weight: where the gradient begins
};

// The plan's state: one transform of n samples a channel for every block of `hop` input frames, at
// most n - span + 1.
struct overlap {
    struct shape shape; // what is run: the plan's problem, or of backward data its adjoint
    struct overlap_half half;
    struct fft *fft;
    bool together; // all threads work on one block (long.c)
    size_t chunks; // backward weight: chunks of terms, each with its own sums
    size_t n, hop;
};

static inline const struct overlap *overlap_of(const struct partita_plan *plan)
{
    return plan->state;
}

// Fills *ret for a transform of n samples, if that takes fewer seconds than `limit`. `moves` says
// how many times the engine moves each sample of a block besides transforming it.
typedef bool overlap_estimate_fn(const struct request *request, size_t n, double moves,
                                 double limit, struct estimate *ret);
overlap_estimate_fn overlap_estimate_filtering;

// Of all FFT sizes that there is an estimate for, about the cheapest. A request for a single size
// is kept to.
void overlap_search(const struct request *request, overlap_estimate_fn *estimate, double moves,
                    struct estimate *ret);

// Whether halves of n samples hold everything; for backward weight, or for filtering.
bool overlap_fits_half(const struct shape *shape, size_t n, bool weight, struct overlap_half *ret);

// Blocks of `hop` outputs; bytes of the spectrum of n samples at most, without a transform at hand.
size_t overlap_block_count(const struct shape *shape, size_t hop);
size_t overlap_spectrum_bytes(const struct shape *shape, size_t n);

// Seconds of the transforms and products of one block.
double overlap_block_seconds(const struct request *request, size_t n, double moves);

enum partita_status overlap_plan_create(struct partita_plan *plan, const struct request *request);
void overlap_plan_destroy(struct partita_plan *plan);
enum partita_status overlap_filter_create(struct partita_filter *filter, const void *taps);

// What one thread needs: the spectra of one group's inputs, one output spectrum, n samples,
// scratch.
struct overlap_buffers {
    char *inputs, *output, *samples, *scratch;
};
struct overlap_buffers overlap_buffers_layout(const struct shape *shape, const struct fft *fft,
                                              struct arena *arena);
size_t overlap_buffers_bytes(const struct shape *shape, const struct fft *fft);

// Spectrum of input c of a group, of samples x[n].
void overlap_transform(const struct overlap *overlap, size_t c, const void *x,
                       struct overlap_buffers *buffers);

// Half of the transform from the samples of x[size] where the half begins.
void overlap_transform_half(const struct overlap *overlap, void *spectrum, const char *x,
                            struct overlap_buffers *buffers);

// The spectrum of output `channel` from those of its group's inputs: a sum of products; then
// samples[n] by one inverse transform.
void overlap_sum(const struct partita_filter *filter, size_t channel,
                 struct overlap_buffers *buffers);
void overlap_output(const struct partita_filter *filter, size_t channel,
                    struct overlap_buffers *buffers);

// Whether products may take the place of the inputs' spectra, which nobody else reads.
bool overlap_in_place(const struct shape *shape);

// Whether several threads do well to work on one transform together: the functions below.
bool overlap_is_long(const struct shape *shape, const struct fft *fft);

// The transform of x[n], on up to `threads` threads.
void overlap_long_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                          int threads);

// buffers->samples[n] of output `channel`, the only one of its group, from its input x[n], which
// may be buffers->samples.
void overlap_long_filter(const struct partita_filter *filter, size_t channel, const void *x,
                         struct overlap_buffers *buffers);

// y[i] = x[i * stride], i < n samples, on all threads.
void overlap_long_copy(const struct partita_plan *plan, void *y, const void *x, size_t stride,
                       size_t n);

// The stream of overlap-save (stream.c).
enum partita_status overlap_stream_open(struct partita_stream *stream);
struct step overlap_stream_step(struct partita_stream *stream, const struct frames *frames);
void overlap_stream_reset(struct partita_stream *stream);
struct region overlap_stream_region(struct partita_stream *stream);
size_t overlap_swap_begin(struct partita_stream *stream);
size_t overlap_swap_end(struct partita_stream *stream);
void overlap_stream_load(const struct partita_plan *plan, struct partita_load *ret);

// Backward weight by the blocks of overlap-save (weight.c): the estimate; exact sizes, once the
// transform is there; running.
void overlap_weight_estimate(const struct request *request, struct estimate *ret);
void overlap_weight_sizes(struct partita_plan *plan);
void overlap_weight_run(const struct partita_plan *plan, const struct operands *operands,
                        char *workspace);

#endif
