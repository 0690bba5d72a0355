// SPDX-License-Identifier: MIT
#include "pair_sums.h"

#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"

enum {
    // Products summed in a row before they are rounded into a sum of sums: two short chains of
    // rounding errors instead of a long one.
    MAX_TERMS = 64,
    TASK_LINES = 16,      // at most, of all operands of a task, which
    TASK_BYTES = 1 << 18, // should fit a core's cache
};

// Lines from one line of a spectrum to the next: odd, so that they do not meet in the same cache
// sets.
static size_t spectra_pitch(size_t count)
{
    return size_add(count, BLOCK_MARGIN) | 1;
}

size_t block_spectra_bytes(size_t lines, size_t count)
{
    return size_mul(SPECTRUM_LINE_BYTES,
                    size_add(size_mul(lines, spectra_pitch(count)), 2 * BLOCK_MARGIN));
}

// Indices before spectrum 0 are negative; they are the last ones of the line before.
static char *line_at(const struct block_spectra *spectra, size_t line, ptrdiff_t index)
{
    assert(index >= -BLOCK_MARGIN && index <= (ptrdiff_t)spectra->count);
    const size_t at = line * spectra_pitch(spectra->count) + (size_t)(BLOCK_MARGIN + index);
    return spectra->lines + at * SPECTRUM_LINE_BYTES;
}

static struct block_buffers block_buffers_layout(const struct block_transform *transform,
                                                 struct arena *arena)
{
    struct block_buffers buffers;
    buffers.samples = arena_take(arena, transform->samples);
    buffers.spectrum = arena_take(arena, transform->spectra);
    buffers.scratch = arena_take(arena, transform->fft ? transform->fft->scratch_bytes : 0);
    buffers.narrow = arena_take(arena, transform->narrow);
    return buffers;
}

struct block_buffers block_buffers_of(const struct block_transform *transform, int worker)
{
    struct arena arena = {.base = transform->work + (size_t)worker * transform->work_stride,
                          .size = transform->work_stride};
    return block_buffers_layout(transform, &arena);
}

size_t block_buffers_bytes(const struct block_transform *transform)
{
    struct arena arena = {0};
    block_buffers_layout(transform, &arena);
    return arena.used;
}

void block_forward(const struct block_transform *transform, const struct block_spectra *spectra,
                   size_t index, const void *x, struct block_buffers *buffers)
{
    assert(index < spectra->count);
    const struct fft_target target = {line_at(spectra, 0, (ptrdiff_t)index), buffers->spectrum,
                                      spectra_pitch(spectra->count) * SPECTRUM_LINE_BYTES};
    fft_forward_half_apart(transform->fft, &target, x, buffers->samples, buffers->scratch);
}

struct block_spectra block_inputs_spectra(const struct block_inputs *inputs, size_t channel)
{
    const size_t count = inputs->spectra.count;
    const size_t bytes = block_spectra_bytes(inputs->transform->fft->lines, count);
    return (struct block_spectra){inputs->spectra.lines + channel * bytes, count};
}

// One task: one block of one channel.
static void transform_input(void *context, size_t task, int worker)
{
    const struct block_inputs *inputs = context;
    const struct block_transform *transform = inputs->transform;
    const size_t n_new = inputs->end - inputs->from, bytes = transform->sample_bytes;
    const size_t length = block_length(transform);
    const size_t channel = task / n_new, i = inputs->from + task % n_new;
    const struct block_spectra spectra = block_inputs_spectra(inputs, channel);
    struct block_buffers buffers = block_buffers_of(transform, worker);
    const void *x =
        samples_at(buffers.samples, inputs->x + channel * inputs->size * bytes, inputs->size,
                   inputs->first + (ptrdiff_t)(i * length), length, bytes);
    block_forward(transform, &spectra, i, x, &buffers);
}

void block_inputs_forward(struct block_inputs *inputs, size_t channels)
{
    thread_loop(inputs->transform->threads, channels * (inputs->end - inputs->from),
                transform_input, inputs);
}

void block_inverse(const struct block_transform *transform, void *x, void *spectrum,
                   struct block_buffers *buffers)
{
    fft_inverse_half(transform->fft, x, spectrum, buffers->samples, buffers->scratch);
}

// Some spectra, of which a task changes one line.
struct line_range {
    const struct block_spectra *spectra;
    size_t from, count;
};

static void clear_margins(void *context, size_t line, int worker)
{
    (void)worker;
    const struct line_range *range = context;
    const size_t bytes = BLOCK_MARGIN * SPECTRUM_LINE_BYTES;
    if (line == 0) memset(line_at(range->spectra, 0, -BLOCK_MARGIN), 0, bytes);
    memset(line_at(range->spectra, line, (ptrdiff_t)range->count), 0, bytes);
    memset(line_at(range->spectra, line + 1, -BLOCK_MARGIN), 0, bytes);
}

void block_spectra_margins(const struct block_transform *transform,
                           const struct block_spectra *spectra, size_t used)
{
    struct line_range range = {spectra, 0, used};
    thread_loop(transform->threads, transform->fft->lines, clear_margins, &range);
}

static void shift_line(void *context, size_t line, int worker)
{
    (void)worker;
    const struct line_range *range = context;
    memmove(line_at(range->spectra, line, 0), line_at(range->spectra, line, (ptrdiff_t)range->from),
            range->count * SPECTRUM_LINE_BYTES);
}

void block_spectra_shift(const struct block_transform *transform,
                         const struct block_spectra *spectra, size_t from, size_t count)
{
    struct line_range range = {spectra, from, count};
    assert(from + count <= spectra->count);
    if (from && count) thread_loop(transform->threads, transform->fft->lines, shift_line, &range);
}

size_t pair_sums_bytes(size_t left_count)
{
    return size_mul(size_add(left_count, CMAC_SUMS), TASK_LINES * SPECTRUM_LINE_BYTES);
}

// Lines of a task: these lines of all operands stay in the cache.
static size_t lines_of_task(const struct pair_sums *sums)
{
    const size_t line =
        (sums->left.count + sums->right_blocks.size + sums->count + 1) * SPECTRUM_LINE_BYTES;
    const size_t lines = TASK_BYTES / line;
    return lines ? size_min(lines, TASK_LINES) : 1;
}

static char *spectrum_at(const struct pair_sums *sums, size_t i)
{
    assert(i <= sums->count);
    return sums->out + i * sums->transform->fft->spectrum_bytes;
}

char *pair_sums_out(const struct pair_sums *sums, size_t i)
{
    return spectrum_at(sums, sums->lags ? i : i + 1);
}

// Some lines of all outputs: a task.
struct task {
    const struct pair_sums *sums;
    size_t first, lines;
    struct cmac_path left; // its lines of the left operand
    char *spare;           // [CMAC_SUMS][lines]
};

// Left's lines in the order in which the sums go through them, down on the right: for lags
// conjugated and last to first.
static struct cmac_path left_lines(const struct pair_sums *sums, size_t first, size_t lines,
                                   char *work)
{
    const struct block_spectra *left = &sums->left;
    if (!sums->lags)
        return (struct cmac_path){.h = line_at(left, first, 0),
                                  .h_pitch = spectra_pitch(left->count)};
    for (size_t line = 0; line < lines; line++)
        for (size_t i = 0; i < left->count; i++) {
            const size_t reversed = line * left->count + left->count - 1 - i;
            char *to = work + reversed * SPECTRUM_LINE_BYTES;
            memcpy(to, line_at(left, first + line, (ptrdiff_t)i), SPECTRUM_LINE_BYTES);
            fft_conjugate(sums->transform->kernels->f64, to, 1);
        }
    return (struct cmac_path){.h = work, .h_pitch = left->count};
}

// Left's spectra from .. end-1 in `n` sums; spectrum i of the first one meets the spectrum
// `top` - i of right.
static void add_terms(const struct task *task, ptrdiff_t top, size_t n, ptrdiff_t from,
                      ptrdiff_t end, void *const *y)
{
    const struct block_spectra *right = &task->sums->right;
    const struct cmac_terms terms = {.slots = spectra_pitch(right->count),
                                     .newest = (size_t)(BLOCK_MARGIN + top - from),
                                     .multiple = 1,
                                     .sums = n,
                                     .overwrite = {true, true, true, true}};
    struct cmac_path path = task->left;
    path.x = line_at(right, task->first, -BLOCK_MARGIN);
    path.x_pitch = terms.slots;
    path.h = (const char *)path.h + (size_t)from * SPECTRUM_LINE_BYTES;
    path.count = (size_t)(end - from);
    task->sums->transform->kernels->cmac_partitions(y, &terms, &path, 1, 0, task->lines);
}

// The task's lines of output blocks q .. q+n-1, the first being spectrum i of the outputs.
static void sum_blocks(const struct task *task, ptrdiff_t q, size_t i, size_t n)
{
    const struct pair_sums *sums = task->sums;
    const struct kernels *kernels = sums->transform->kernels;
    const ptrdiff_t n_left = (ptrdiff_t)sums->left.count;
    const ptrdiff_t n_right = (ptrdiff_t)sums->right_blocks.size;
    const ptrdiff_t top = q - sums->right_blocks.first + (sums->lags ? n_left - 1 : 0);
    // All terms of any of the sums; a term of only some of them meets zeros in the others.
    const ptrdiff_t from = top < n_right ? 0 : top - n_right + 1;
    const ptrdiff_t end = top + (ptrdiff_t)n < n_left ? top + (ptrdiff_t)n : n_left;
    const size_t bytes = task->lines * SPECTRUM_LINE_BYTES;
    void *y[CMAC_SUMS], *spare[CMAC_SUMS];
    for (size_t k = 0; k < n; k++) {
        y[k] = spectrum_at(sums, i + k) + task->first * SPECTRUM_LINE_BYTES;
        spare[k] = task->spare + k * bytes;
        if (!sums->add && from >= end) memset(y[k], 0, bytes);
    }
    // Rows of terms begin where they do for every output: its bits must not depend on the sums
    // beside it.
    bool overwrite = !sums->add;
    for (ptrdiff_t at = from, next; at < end; at = next, overwrite = false) {
        next = (at / MAX_TERMS + 1) * MAX_TERMS;
        if (next > end) next = end;
        add_terms(task, top, n, at, next, overwrite ? y : spare);
        for (size_t k = 0; !overwrite && k < n; k++)
            kernels->add(y[k], spare[k], bytes / (kernels->f64 ? 8 : 4));
    }
}

// One task. A sum S_q reaches from the start of block q to the end of block q + 1; its part
// there is moved to the start and joins S_(q+1). For lags S_t reaches back into block t - 1.
static void sum_lines(void *context, size_t index, int worker)
{
    const struct pair_sums *sums = context;
    const size_t each = lines_of_task(sums), first = index * each;
    const size_t lines = size_min(sums->transform->fft->lines - first, each);
    const ptrdiff_t q = sums->lags ? sums->first : sums->first - 1;
    char *work = sums->transform->work + (size_t)worker * sums->transform->work_stride +
                 block_buffers_bytes(sums->transform);
    const struct task task = {
        .sums = sums,
        .first = first,
        .lines = lines,
        .left = left_lines(sums, first, lines, work),
        .spare = work + sums->left.count * TASK_LINES * SPECTRUM_LINE_BYTES,
    };
    for (size_t i = 0, n; i <= sums->count; i += n) {
        const size_t rest = sums->count + 1 - i;
        n = rest >= 4 ? 4 : size_min(rest, 2);
        sum_blocks(&task, q + (ptrdiff_t)i, i, n);
    }
    for (size_t i = 0; sums->gather && i < sums->count; i++) {
        const size_t to = sums->lags ? i : sums->count - i, from = sums->lags ? i + 1 : to - 1;
        fft_add_rotated(sums->transform->fft, spectrum_at(sums, to) + first * SPECTRUM_LINE_BYTES,
                        spectrum_at(sums, from) + first * SPECTRUM_LINE_BYTES, first, lines,
                        !sums->lags);
    }
}

void pair_sums_run(struct pair_sums *sums)
{
    thread_loop(sums->transform->threads,
                ceil_div(sums->transform->fft->lines, lines_of_task(sums)), sum_lines, sums);
}
