// SPDX-License-Identifier: MIT
// Transforms of which two would not fit together into the cache that cores share: all threads work
// on one. Its first pass is split by columns; then its subtransforms are independent, so each goes
// forward, is multiplied and comes back as one task; its last pass is split by columns again. The
// bits are those of the whole (decision 26).
//
// Blocks that lie inside signal and result follow each other without a gap, last to first: while
// subtransforms of one are multiplied, the columns of the one done before are written and those of
// the next one are read, into the same memory. So a thread that has no subtransform left has other
// work.
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
           !overlap->shape.channels_last && fft->subtransforms > 1 &&
           fft->spectrum_bytes >= TOGETHER_BYTES;
}

// The work of one parallel loop: the products of one block, and the passes over the samples of two
// others, of which one is read into the spectrum that the other is written from.
struct passage {
    const struct fft *fft;
    const struct kernels *kernels;
    const void *taps; // the filter's spectrum, NULL: forward alone
    void *scratch;
    int threads;
    char *products, *columns; // spectra; no products: NULL
    void *to;                 // samples written, NULL: none
    const void *from;         // samples then read, NULL: none
    size_t tasks;             // of the passes over samples
};

static void multiply_subtransform(const struct passage *passage, size_t index)
{
    const struct fft *fft = passage->fft;
    const size_t samples = fft->sample_steps, parts = fft->subtransforms;
    const size_t each = (fft->steps - samples) / parts, first = index * each;
    fft_forward_steps(fft, passage->products, NULL, passage->scratch,
                      (struct fft_steps){samples + first, samples + first + each});
    if (!passage->taps) return;
    const size_t lines = fft->lines / parts, at = index * lines * SPECTRUM_LINE_BYTES;
    char *spectrum = passage->products + at;
    passage->kernels->cmac(spectrum, spectrum, lines, (const char *)passage->taps + at, lines, 1,
                           lines);
    fft_inverse_steps(fft, NULL, passage->products, passage->scratch,
                      (struct fft_steps){first, first + each}, FFT_WHOLE);
}

// The steps of a pass over samples that a task takes.
static struct fft_steps sample_steps(const struct passage *passage, size_t task, size_t first)
{
    const size_t steps = passage->fft->sample_steps;
    return (struct fft_steps){first + steps * task / passage->tasks,
                              first + steps * (task + 1) / passage->tasks};
}

static void run_task(void *context, size_t task, int worker)
{
    (void)worker;
    const struct passage *passage = context;
    const struct fft *fft = passage->fft;
    const size_t parts = passage->products ? fft->subtransforms : 0;
    if (task < parts) {
        multiply_subtransform(passage, task);
        return;
    }
    if (passage->to)
        fft_inverse_steps(fft, passage->to, passage->columns, passage->scratch,
                          sample_steps(passage, task - parts, fft->steps - fft->sample_steps),
                          FFT_WHOLE);
    if (passage->from)
        fft_forward_steps(fft, passage->columns, passage->from, passage->scratch,
                          sample_steps(passage, task - parts, 0));
}

static void run_passage(struct passage *passage, char *products, char *columns, void *to,
                        const void *from)
{
    const struct fft *fft = passage->fft;
    assert(fft->lines % fft->subtransforms == 0);
    passage->products = products, passage->columns = columns;
    passage->to = to, passage->from = from;
    passage->tasks = size_min(fft->sample_steps, MAX_TASKS);
    thread_loop(passage->threads,
                (products ? fft->subtransforms : 0) + (to || from ? passage->tasks : 0), run_task,
                passage);
}

void overlap_long_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                          int threads)
{
    struct passage passage = {.fft = fft, .scratch = scratch, .threads = threads};
    run_passage(&passage, NULL, spectrum, NULL, x);
    run_passage(&passage, spectrum, NULL, NULL, NULL);
}

// Moves n samples of x[size] from index `first` on, in steps of `stride`. A thread moves one part
// of adjacent samples: where the memory is new, threads that first touch the same page would each
// clear it.
struct long_copy {
    const char *x;
    size_t size;
    ptrdiff_t first;
    size_t stride;
    char *to;
    size_t n, bytes, part;
};

static void copy_samples(void *context, size_t task, int worker)
{
    (void)worker;
    const struct long_copy *copy = context;
    const size_t at = size_min(task * copy->part, copy->n);
    samples_window(copy->to + at * copy->bytes, copy->x, copy->size,
                   copy->first + (ptrdiff_t)(at * copy->stride), copy->stride,
                   size_min(copy->n - at, copy->part), copy->bytes);
}

static void long_copy(struct long_copy copy, int threads)
{
    copy.part = ceil_div(copy.n, (size_t)threads);
    thread_loop(threads, (size_t)threads, copy_samples, &copy);
}

// A signal and its result, which take the blocks 0 .. count-1.
struct long_signal {
    const struct partita_plan *plan;
    const char *x;
    char *y;
    struct passage passage;
    struct overlap_buffers buffers;
};

// Whether a block's transform reads samples of x only, and may write all of its samples to y, of
// which those before its outputs belong to the block before it.
static bool long_is_inside(const struct long_signal *signal, size_t block)
{
    const struct overlap *overlap = overlap_of(signal->plan);
    const struct axis *axis = &overlap->shape.axis[0];
    const size_t first = block * overlap->hop;
    const ptrdiff_t begin = overlap_block_begin(overlap, first);
    return axis->stride == 1 && first >= overlap->before && first + overlap->hop <= axis->out &&
           begin >= 0 && (size_t)begin + overlap->n <= axis->size;
}

// A block at an end, through buffers.
static void filter_end(struct long_signal *signal, size_t block)
{
    const struct partita_plan *plan = signal->plan;
    const struct overlap *overlap = overlap_of(plan);
    const struct axis *axis = &overlap->shape.axis[0];
    const size_t first = block * overlap->hop, bytes = overlap->shape.sample_bytes;
    const struct block_outputs outputs = block_outputs(axis, first, first + overlap->hop);
    const ptrdiff_t begin = overlap_block_begin(overlap, first);
    char *spectrum = signal->buffers.output, *samples = signal->buffers.samples;
    const char *x = signal->x + (begin < 0 ? 0 : (size_t)begin) * bytes;
    if (begin < 0 || (size_t)begin + overlap->n > axis->size) {
        const struct long_copy window = {signal->x, axis->size, begin, 1,
                                         samples,   overlap->n, bytes, 0};
        long_copy(window, plan->threads);
        x = samples;
    }
    run_passage(&signal->passage, NULL, spectrum, NULL, x);
    run_passage(&signal->passage, spectrum, NULL, NULL, NULL);
    run_passage(&signal->passage, NULL, spectrum, samples, NULL);
    const struct long_copy results = {.x = samples,
                                      .size = overlap->n,
                                      .first = (ptrdiff_t)(overlap->before + outputs.skip),
                                      .stride = axis->stride,
                                      .to = signal->y + outputs.first * bytes,
                                      .n = outputs.count,
                                      .bytes = bytes};
    long_copy(results, plan->threads);
}

// Blocks end-1 down to first, which are inside. The buffer of samples holds every second spectrum.
static void filter_inside(struct long_signal *signal, size_t first, size_t end)
{
    const struct overlap *overlap = overlap_of(signal->plan);
    const size_t bytes = overlap->shape.sample_bytes, hop = overlap->hop, before = overlap->before;
    char *spectra[] = {signal->buffers.output, signal->buffers.samples};
    assert(overlap->n * bytes >= overlap->fft->spectrum_bytes);
    // A round writes `block`, multiplies the one before it and reads the one before that.
    for (size_t round = 0; round < end - first + 2; round++) {
        const size_t block = end + 1 - round;
        char *products = block > first && block <= end ? spectra[(block - 1) % 2] : NULL;
        char *y = block < end ? signal->y + (block * hop - before) * bytes : NULL;
        const char *x = NULL;
        if (block > first + 1)
            x = signal->x + (size_t)overlap_block_begin(overlap, (block - 2) * hop) * bytes;
        run_passage(&signal->passage, products, spectra[block % 2], y, x);
    }
}

void overlap_long_filter(const struct partita_filter *filter, size_t channel, char *y,
                         const char *x, const struct overlap_buffers *buffers)
{
    const struct overlap *overlap = overlap_of(filter->plan);
    const struct fft *fft = overlap->fft;
    struct long_signal signal = {
        .plan = filter->plan,
        .x = x,
        .y = y,
        .buffers = *buffers,
        .passage = {.fft = fft,
                    .kernels = filter->plan->kernels,
                    .taps = (const char *)filter->state + channel * fft->spectrum_bytes,
                    .scratch = buffers->scratch,
                    .threads = filter->plan->threads}};
    for (size_t end = overlap_block_count(&overlap->shape, overlap->hop), first; end; end = first) {
        first = end;
        while (first && long_is_inside(&signal, first - 1)) first--;
        if (first < end) filter_inside(&signal, first, end);
        else filter_end(&signal, --first);
    }
}
