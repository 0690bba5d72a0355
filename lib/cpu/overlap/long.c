// SPDX-License-Identifier: MIT
// Transforms of which two would not fit together into the cache that cores share: all threads work
// on one. Its first pass is split by columns; then its subtransforms are independent, so each goes
// forward, is multiplied and comes back as one task; its last pass is split by columns again. The
// bits are those of the whole (decision 26).
#include <assert.h>

#include "overlap.h"

enum {
    TOGETHER_BYTES = 1 << 22, // of a spectrum, at least
    MAX_TASKS = 64,           // of a pass
};

bool overlap_is_long(const struct overlap *overlap)
{
    const struct fft *fft = overlap->fft;
    return overlap->shape.group_in == 1 && overlap->shape.group_out == 1 &&
           fft->subtransforms > 1 && fft->spectrum_bytes >= TOGETHER_BYTES;
}

// One transform with its product.
struct passage {
    const struct fft *fft;
    const struct kernels *kernels;
    const void *from, *taps; // samples; the filter's spectrum, NULL: forward alone
    char *spectrum, *to, *scratch;
    size_t tasks; // of a pass over samples
};

// The steps of a pass over samples that a task takes.
static struct fft_steps sample_steps(const struct passage *passage, size_t task, size_t first)
{
    const size_t steps = passage->fft->sample_steps;
    return (struct fft_steps){first + steps * task / passage->tasks,
                              first + steps * (task + 1) / passage->tasks};
}

static void read_samples(void *context, size_t task, int worker)
{
    (void)worker;
    const struct passage *passage = context;
    fft_forward_steps(passage->fft, passage->spectrum, passage->from, passage->scratch,
                      sample_steps(passage, task, 0));
}

static void multiply_subtransform(void *context, size_t index, int worker)
{
    (void)worker;
    const struct passage *passage = context;
    const struct fft *fft = passage->fft;
    const size_t samples = fft->sample_steps, parts = fft->subtransforms;
    const size_t each = (fft->steps - samples) / parts, first = index * each;
    fft_forward_steps(fft, passage->spectrum, passage->from, passage->scratch,
                      (struct fft_steps){samples + first, samples + first + each});
    if (!passage->taps) return;
    const size_t lines = fft->lines / parts, at = index * lines * SPECTRUM_LINE_BYTES;
    char *spectrum = passage->spectrum + at;
    passage->kernels->cmac(spectrum, spectrum, lines, (const char *)passage->taps + at, lines, 1,
                           lines);
    fft_inverse_steps(fft, passage->to, passage->spectrum, passage->scratch,
                      (struct fft_steps){first, first + each}, false);
}

static void write_samples(void *context, size_t task, int worker)
{
    (void)worker;
    const struct passage *passage = context;
    const size_t first = passage->fft->steps - passage->fft->sample_steps;
    fft_inverse_steps(passage->fft, passage->to, passage->spectrum, passage->scratch,
                      sample_steps(passage, task, first), false);
}

static void run_passage(struct passage *passage, int threads)
{
    const struct fft *fft = passage->fft;
    assert(fft->lines % fft->subtransforms == 0);
    passage->tasks = size_min(fft->sample_steps, MAX_TASKS);
    thread_loop(threads, passage->tasks, read_samples, passage);
    thread_loop(threads, fft->subtransforms, multiply_subtransform, passage);
    if (passage->taps) thread_loop(threads, passage->tasks, write_samples, passage);
}

void overlap_long_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                          int threads)
{
    struct passage passage = {.fft = fft, .from = x, .spectrum = spectrum, .scratch = scratch};
    run_passage(&passage, threads);
}

void overlap_long_filter(const struct partita_filter *filter, size_t channel, const void *x,
                         struct overlap_buffers *buffers)
{
    const struct fft *fft = overlap_of(filter->plan)->fft;
    struct passage passage = {.fft = fft,
                              .kernels = filter->plan->kernels,
                              .from = x,
                              .taps = (const char *)filter->state + channel * fft->spectrum_bytes,
                              .spectrum = buffers->output,
                              .to = buffers->samples,
                              .scratch = buffers->scratch};
    run_passage(&passage, filter->plan->threads);
}

// A thread moves one part of adjacent samples: where the memory is new, threads that first touch
// the same page would each clear it.
struct long_copy {
    const struct window *from;
    char *to;
    size_t n, bytes, part;
};

static void copy_samples(void *context, size_t task, int worker)
{
    (void)worker;
    const struct long_copy *copy = context;
    const struct window *from = copy->from;
    const size_t at = size_min(task * copy->part, copy->n);
    samples_window(copy->to + at * copy->bytes, from->x, from->size,
                   from->first + (ptrdiff_t)(at * from->stride), from->stride,
                   size_min(copy->n - at, copy->part), copy->bytes);
}

void overlap_long_copy(const struct partita_plan *plan, void *to, const struct window *from,
                       size_t n)
{
    const size_t threads = (size_t)plan->threads;
    struct long_copy copy = {from, to, n, plan->shape.sample_bytes, ceil_div(n, threads)};
    thread_loop(plan->threads, threads, copy_samples, &copy);
}
