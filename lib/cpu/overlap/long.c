// SPDX-License-Identifier: MIT
// Transforms of which two would not fit beside each other into the cache that cores share: all
// threads work on one. Its first pass is cut by columns; then its nodes have nothing to do with
// each other, so each goes forward, is multiplied and comes back as one task; its last pass is cut
// by columns again. The bits are those of the whole.
#include "base/sizes.h"
#include "base/thread.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"
#include "spectral.h"

enum {
    TOGETHER_BYTES = 1 << 22, // of a spectrum, at least
    MOST_PIECES = 64,         // tasks of a pass
    COPY_SAMPLES = 1 << 16,   // samples of a task
};

bool spectral_is_long(const struct shape *shape, const struct fft *fft)
{
    return spectral_in_place(shape) && fft_subtransforms(fft) > 1 &&
           fft_spectrum_bytes(fft) >= TOGETHER_BYTES;
}

// One transform with its product.
struct passage {
    const struct fft *fft;
    const struct kernels *kernels;
    const void *from, *taps; // samples; the filter's spectrum, NULL: forward alone
    char *spectrum, *to, *scratch;
    size_t pieces;
};

static size_t node_steps(const struct fft *fft)
{
    return (fft_steps(fft) - fft_sample_steps(fft)) / fft_subtransforms(fft);
}

// The steps of a pass at the edge that a task takes.
static struct fft_steps piece(const struct passage *passage, size_t task, size_t first)
{
    const size_t steps = fft_sample_steps(passage->fft);
    return (struct fft_steps){first + steps * task / passage->pieces,
                              first + steps * (task + 1) / passage->pieces};
}

static void read_piece(void *context, size_t task, int worker)
{
    (void)worker;
    const struct passage *passage = context;
    fft_forward_steps(passage->fft, passage->spectrum, passage->from, passage->scratch,
                      piece(passage, task, 0));
}

static void run_node(void *context, size_t node, int worker)
{
    (void)worker;
    const struct passage *passage = context;
    const struct fft *fft = passage->fft;
    const size_t each = node_steps(fft), first = fft_sample_steps(fft) + node * each;
    fft_forward_steps(fft, passage->spectrum, passage->from, passage->scratch,
                      (struct fft_steps){first, first + each});
    if (!passage->taps) return;
    const size_t blocks = fft_lines(fft) / fft_subtransforms(fft),
                 at = node * blocks * SPECTRUM_LINE_BYTES;
    char *spectrum = passage->spectrum + at;
    passage->kernels->cmac(spectrum, spectrum, blocks, (const char *)passage->taps + at, blocks, 1,
                           blocks);
    fft_inverse_steps(fft, passage->to, passage->spectrum, passage->scratch,
                      (struct fft_steps){node * each, (node + 1) * each}, false);
}

static void write_piece(void *context, size_t task, int worker)
{
    (void)worker;
    const struct passage *passage = context;
    fft_inverse_steps(passage->fft, passage->to, passage->spectrum, passage->scratch,
                      piece(passage, task, fft_steps(passage->fft) - fft_sample_steps(passage->fft)),
                      false);
}

static void run(struct passage *passage, int threads)
{
    const size_t steps = fft_sample_steps(passage->fft);
    passage->pieces = size_min(steps, MOST_PIECES);
    thread_loop(threads, passage->pieces, read_piece, passage);
    thread_loop(threads, fft_subtransforms(passage->fft), run_node, passage);
    if (passage->taps) thread_loop(threads, passage->pieces, write_piece, passage);
}

void spectral_long_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                           int threads)
{
    struct passage passage = {.fft = fft, .from = x, .spectrum = spectrum, .scratch = scratch};
    run(&passage, threads);
}

void spectral_long_filter(const struct partita_filter *filter, size_t channel, const void *x,
                          struct spectral_work *work, int threads)
{
    const struct spectral *spectral = filter->plan->state;
    struct passage passage = {.fft = spectral->fft,
                              .kernels = filter->plan->kernels,
                              .from = x,
                              .taps = (const char *)filter->state +
                                      channel * fft_spectrum_bytes(spectral->fft),
                              .spectrum = work->output,
                              .to = work->samples,
                              .scratch = work->scratch};
    run(&passage, threads);
}

struct copy {
    char *y;
    const char *x;
    size_t stride, n, bytes;
};

static void copy_piece(void *context, size_t task, int worker)
{
    (void)worker;
    const struct copy *copy = context;
    const size_t at = task * COPY_SAMPLES;
    samples_copy(copy->y + at * copy->bytes, 1, copy->x + at * copy->stride * copy->bytes,
                 copy->stride, size_min(copy->n - at, COPY_SAMPLES), copy->bytes);
}

void spectral_long_copy(void *y, const void *x, size_t stride, size_t n, size_t bytes, int threads)
{
    struct copy copy = {y, x, stride, n, bytes};
    thread_loop(threads, ceil_div(n, COPY_SAMPLES), copy_piece, &copy);
}
