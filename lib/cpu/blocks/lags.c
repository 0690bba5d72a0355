// SPDX-License-Identifier: MIT
// Few outputs of long operands: the lags around zero of two recordings. A window of outputs sees
// each part of the taps through a window of the signal; all their products lie on the same outputs,
// so one spectrum sums them and one inverse transform ends it. Memory is that of some spectra,
// however long the operands are.
//
// Parts are summed in runs of up to 64, of which LAGS_RUNS go in parallel; their sums are brought
// together in pairs, in one order for any number of threads.
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "blocks.h"
#include "cpu/conv/run_sums.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

enum { MOST_RUN = 64 };

static size_t spectrum_bytes(const struct partita_plan *plan)
{
    return fft_spectrum_bytes(((const struct blocks *)plan->state)->fft);
}

// What one thread needs.
struct work {
    char *samples, *narrow, *scratch;
    char *signal, *taps; // [LAGS_GROUP] spectra
    char *spare;         // one
};

static struct work cut_work(const struct partita_plan *plan, struct arena *arena)
{
    const struct blocks *blocks = plan->state;
    struct work work;
    work.samples = arena_take(arena, blocks->layout.n * blocks_shape(plan)->sample_bytes);
    work.narrow = arena_take(arena, blocks->layout.n * blocks_shape(plan)->tap_bytes);
    work.scratch = arena_take(arena, fft_scratch_bytes(blocks->fft));
    work.signal = arena_take(arena, LAGS_GROUP * spectrum_bytes(plan));
    work.taps = arena_take(arena, LAGS_GROUP * spectrum_bytes(plan));
    work.spare = arena_take(arena, spectrum_bytes(plan));
    return work;
}

static size_t work_bytes(const struct partita_plan *plan)
{
    struct arena arena = {0};
    cut_work(plan, &arena);
    return arena.used;
}

void lags_sizes(const struct partita_plan *plan, struct blocks *blocks)
{
    blocks->layout.worker = work_bytes(plan);
    blocks->layout.shared = (LAGS_RUNS + LAGS_LEVELS) * spectrum_bytes(plan);
}

static void transform_taps(const struct partita_plan *plan, const char *taps, size_t cell,
                           size_t part, char *spectrum, struct work *work)
{
    const struct shape *shape = blocks_shape(plan);
    const struct blocks *blocks = plan->state;
    const struct blocks_layout *layout = &blocks->layout;
    const size_t left = layout->taps - part * layout->part;
    const size_t from = shape_path(shape, cell / shape->group_in, cell % shape->group_in);
    blocks_load_taps(shape, work->samples, work->narrow,
                     taps + from * shape->axis[0].kernel * shape->tap_bytes,
                     layout->first_tap + part * layout->part,
                     left < layout->part ? left : layout->part, layout->n);
    fft_forward(blocks->fft, spectrum, work->samples, work->scratch);
}

// One task: one part of one cell.
static void transform_cell_part(void *context, size_t task, int worker)
{
    const struct blocks_filtering *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const size_t parts = ((const struct blocks *)plan->state)->layout.parts;
    struct arena arena = {.base = call->work + (size_t)worker * work_bytes(plan)};
    struct work work = cut_work(plan, &arena);
    transform_taps(plan, call->taps, task / parts, task % parts,
                   (char *)call->filter->state + task * spectrum_bytes(plan), &work);
}

enum partita_status lags_filter(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const size_t parts = ((const struct blocks *)plan->state)->layout.parts;
    const size_t n = blocks_shape(plan)->out_channels * blocks_shape(plan)->group_in * parts;
    return blocks_filter(filter, taps, size_mul(n, spectrum_bytes(plan)), work_bytes(plan),
                         transform_cell_part);
}

// One window of outputs of one channel: the sum over `count` parts of each input of the group,
// those that see any of the signal.
struct window {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const char *taps; // without a filter
    const char *x;    // of the group's first channel
    size_t first_cell, first_part, count;
    ptrdiff_t base;               // where the samples that part 0 sees begin
    size_t run, runs, first_run;  // elements of a run; all runs; the first of those at hand
    char *sums, *levels, *worker; // [LAGS_RUNS], [LAGS_LEVELS] spectra; [threads] work
};

static void transform_signal(const struct window *window, size_t channel, size_t part,
                             char *spectrum, struct work *work)
{
    const struct shape *shape = blocks_shape(window->plan);
    const struct blocks *blocks = window->plan->state;
    const struct blocks_layout *layout = &blocks->layout;
    const size_t size = shape->axis[0].size, bytes = shape->sample_bytes;
    const ptrdiff_t first = window->base - (ptrdiff_t)(part * layout->part);
    const char *x = window->x + channel * size * bytes;
    if (first >= 0 && (size_t)first + layout->n <= size) {
        x += (size_t)first * bytes;
    } else {
        samples_window(work->samples, x, size, first, 1, layout->n, bytes);
        x = work->samples;
    }
    fft_forward(blocks->fft, spectrum, x, work->scratch);
}

// Both operands of the elements from `at` on, of one channel: their sum goes to y.
static void sum_group(const struct window *window, size_t at, size_t count, char *y,
                      struct work *work)
{
    const struct partita_plan *plan = window->plan;
    const struct blocks *blocks = plan->state;
    const size_t channel = at / window->count, part = window->first_part + at % window->count;
    const size_t bytes = spectrum_bytes(plan), spectrum_blocks = fft_lines(blocks->fft),
                 cell = window->first_cell + channel;
    const char *taps = work->taps;
    if (window->filter)
        taps = (const char *)window->filter->state + (cell * blocks->layout.parts + part) * bytes;
    for (size_t i = 0; i < count; i++) {
        transform_signal(window, channel, part + i, work->signal + i * bytes, work);
        if (!window->filter)
            transform_taps(plan, window->taps, cell, part + i, work->taps + i * bytes, work);
    }
    plan->kernels->cmac(y, work->signal, spectrum_blocks, taps, spectrum_blocks, count,
                        spectrum_blocks);
}

static size_t reals_of(const struct partita_plan *plan)
{
    return spectrum_bytes(plan) / blocks_shape(plan)->scalar_bytes;
}

// One task: one run of elements; element e is part e % count of channel e / count.
static void sum_run(void *context, size_t task, int worker)
{
    const struct window *window = context;
    const struct partita_plan *plan = window->plan;
    struct arena arena = {.base = window->worker + (size_t)worker * work_bytes(plan)};
    struct work work = cut_work(plan, &arena);
    const size_t all = blocks_shape(plan)->group_in * window->count,
                 first = (window->first_run + task) * window->run;
    const size_t end = all - first < window->run ? all : first + window->run;
    char *sum = window->sums + task * spectrum_bytes(plan);
    for (size_t at = first, n; at < end; at += n) {
        n = window->count - at % window->count; // to the end of the channel
        if (n > LAGS_GROUP) n = LAGS_GROUP;
        if (n > end - at) n = end - at;
        sum_group(window, at, n, at == first ? sum : work.spare, &work);
        if (at > first) plan->kernels->add(sum, work.spare, reals_of(plan));
    }
}

// Adds sums of equally many runs like carries of a binary number: `digits` says which levels are
// taken.
static void carry(const struct window *window, size_t *digits)
{
    const size_t bytes = spectrum_bytes(window->plan), reals = reals_of(window->plan);
    size_t level = 0;
    for (; *digits >> level & 1 && level + 1 < LAGS_LEVELS; level++)
        window->plan->kernels->add(window->sums, window->levels + level * bytes, reals);
    memcpy(window->levels + level * bytes, window->sums, bytes);
    *digits = (*digits >> level | 1) << level;
}

// The sum of all runs, where the first one's was.
static void sum_window(struct window *window)
{
    const struct partita_plan *plan = window->plan;
    const size_t bytes = spectrum_bytes(plan), reals = reals_of(plan);
    size_t digits = 0;
    for (window->first_run = 0; window->first_run < window->runs; window->first_run += LAGS_RUNS) {
        const size_t left = window->runs - window->first_run,
                     n = left < LAGS_RUNS ? left : LAGS_RUNS;
        thread_loop(plan->threads, n, sum_run, window);
        run_sums_tree(plan->kernels, window->sums, window->sums + bytes, bytes, n, reals);
        carry(window, &digits);
    }
    memset(window->sums, 0, bytes);
    for (size_t level = 0; level < LAGS_LEVELS; level++)
        if (digits >> level & 1)
            plan->kernels->add(window->sums, window->levels + level * bytes, reals);
}

// The parts that see any of the signal: those whose n samples from base - i*part on do.
static void choose_parts(struct window *window)
{
    const struct blocks_layout *layout = &((const struct blocks *)window->plan->state)->layout;
    if (!layout->parts) {
        window->count = 0;
        return;
    }
    ptrdiff_t first = floor_div(window->base - (ptrdiff_t)blocks_shape(window->plan)->axis[0].size,
                                layout->part) +
                      1;
    ptrdiff_t last = floor_div(window->base + (ptrdiff_t)layout->n - 1, layout->part);
    if (first < 0) first = 0;
    if (last > (ptrdiff_t)layout->parts - 1) last = (ptrdiff_t)layout->parts - 1;
    window->first_part = (size_t)first;
    window->count = last < first ? 0 : (size_t)(last - first) + 1;
}

static void run_window(struct window *window, size_t block, char *y)
{
    const struct partita_plan *plan = window->plan;
    const struct shape *shape = blocks_shape(plan);
    const struct blocks *blocks = plan->state;
    const struct blocks_layout *layout = &blocks->layout;
    const size_t bytes = shape->sample_bytes, before = layout->part ? layout->part - 1 : 0;
    const struct segment_outputs out =
        segment_outputs(&shape->axis[0], block * layout->hop, (block + 1) * layout->hop);
    if (!out.count) return;
    window->base = layout->first + (ptrdiff_t)(block * layout->hop) - (ptrdiff_t)before;
    choose_parts(window);
    const size_t all = window->count * shape->group_in, each = (all + LAGS_RUNS - 1) / LAGS_RUNS;
    window->run = each < 1 ? 1 : each < MOST_RUN ? each : MOST_RUN;
    window->runs = (all + window->run - 1) / window->run;
    sum_window(window);
    struct arena arena = {.base = window->worker};
    struct work work = cut_work(plan, &arena);
    fft_inverse(blocks->fft, work.samples, window->sums, work.scratch);
    char *first = work.samples + before * bytes;
    plan->kernels->scale(first, first, 1 / fft_gain(blocks->fft),
                         layout->hop * bytes / shape->scalar_bytes);
    samples_copy(y + out.first * bytes, 1, first + out.skip * bytes, shape->axis[0].stride,
                 out.count, bytes);
}

void lags_forward(const struct partita_plan *plan, const struct partita_filter *filter,
                  const void *taps, void *y, const void *x, void *workspace)
{
    const struct shape *shape = blocks_shape(plan);
    const struct blocks_layout *layout = &((const struct blocks *)plan->state)->layout;
    const size_t bytes = shape->sample_bytes;
    struct arena arena = {.base = workspace};
    struct window window = {.plan = plan, .filter = filter, .taps = taps};
    window.sums = arena_take(&arena, LAGS_RUNS * spectrum_bytes(plan));
    window.levels = arena_take(&arena, LAGS_LEVELS * spectrum_bytes(plan));
    window.worker = arena_take(&arena, (size_t)plan->threads * work_bytes(plan));
    for (size_t item = 0; item < shape->batch; item++)
        for (size_t k = 0; k < shape->out_channels; k++) {
            const size_t channel =
                item * shape->in_channels + k / shape->group_out * shape->group_in;
            window.x = (const char *)x + channel * shape->axis[0].size * bytes;
            window.first_cell = k * shape->group_in;
            for (size_t block = 0; block < layout->blocks; block++)
                run_window(&window, block,
                           (char *)y +
                               (item * shape->out_channels + k) * shape->axis[0].out * bytes);
        }
}
