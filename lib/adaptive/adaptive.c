// SPDX-License-Identifier: MIT
#include "adaptive.h"

#include <math.h>
#include <string.h>

#include "base/scalar.h"
#include "base/sizes.h"
#include "core/arguments.h"

// Lays out the object; without a base the arena only counts.
static struct partita_adaptive *arrange_adaptive(struct partita_adaptive made, struct arena *arena)
{
    struct partita_adaptive *adaptive = arena_take(arena, sizeof *adaptive);
    const size_t block = made.options.block * made.scalar, window = made.fft->n * made.scalar;
    const size_t spectra = size_mul(made.tasks, made.spectrum_bytes), begin = arena->used;
    void **const arrays = (void **)&made.arrays;
    made.state = arena_take(arena, sizeof *made.state);
    for (size_t i = 0; i < ADAPTIVE_ARRAYS; i++) arrays[i] = arena_take(arena, made.spectrum_bytes);
    made.windows = arena_take(arena, size_mul(made.options.channels, window));
    made.near_end = arena_take(arena, block);
    made.residual = arena_take(arena, block);
    made.spectra = arena_take(arena, spectra);
    made.weights = arena_take(arena, spectra);
    made.copy = arena_take(arena, spectra);
    made.variances = arena_take(arena, spectra / 2);
    made.state_bytes = arena->used - begin;
    made.samples = arena_take(arena, window);
    made.spectrum = arena_take(arena, made.spectrum_bytes);
    made.scratch = arena_take(arena, made.fft->scratch_bytes);
    if (adaptive) *adaptive = made;
    return adaptive;
}

static void fill_bins(const struct partita_adaptive *adaptive, void *to, double value)
{
    for (size_t i = 0; i < adaptive->bins; i++)
        scalar_put(adaptive->scalar == sizeof(double), to, i, value);
}

static void clear_arrays(const struct partita_adaptive *adaptive)
{
    memset(adaptive->arrays.estimate, 0, ADAPTIVE_ARRAYS * adaptive->spectrum_bytes);
    fill_bins(adaptive, adaptive->arrays.mean, adaptive->prior);
}

static void clear_part(const struct partita_adaptive *adaptive, size_t part)
{
    memset(adaptive->weights + part * adaptive->spectrum_bytes, 0, adaptive->spectrum_bytes);
    fill_bins(adaptive, adaptive->variances + part * adaptive->part_bytes, adaptive->prior);
}

void partita_adaptive_reset(struct partita_adaptive *adaptive)
{
    memset(adaptive->state, 0, adaptive->state_bytes);
    clear_arrays(adaptive);
    for (size_t part = 0; part < adaptive->tasks; part++) clear_part(adaptive, part);
    adaptive->state->done = adaptive->tasks;
}

enum partita_status partita_adaptive_create_sized(const struct partita_adaptive_options *options,
                                                  size_t options_bytes,
                                                  struct partita_adaptive **ret_adaptive)
{
    const struct partita_log log = log_given(options);
    struct partita_adaptive made = {.scalar = 0};
    struct arena arena = {0};
    if (!arguments_given(log, options, ret_adaptive)) return PARTITA_ERR_ARG;
    enum partita_status status = adaptive_resolve(&made.options, options, options_bytes);
    if (status != PARTITA_OK) return status;
    options = &made.options;
    const bool f64 = options->type == PARTITA_F64;
    const struct fft_request request = {
        .n = fft_good_size(2 * options->block), .f64 = f64, .isa = cpu_detect()};
    status = fft_create(&request, &options->allocator, &made.fft);
    if (status != PARTITA_OK) return status;
    made.kernels = kernels_select(cpu_detect(), f64);
    made.loops = adaptive_loops_of(cpu_detect(), f64);
    made.scalar = partita_type_size(options->type);
    made.partitions = ceil_div(options->taps, options->block);
    made.tasks = options->channels * made.partitions;
    made.spectrum_bytes = made.fft->spectrum_bytes;
    made.part_bytes = made.spectrum_bytes / 2;
    made.bins = made.part_bytes / made.scalar;
    made.share = (double)options->block / (double)request.n;
    made.prior = options->gain / (double)made.tasks;
    if (options->control == PARTITA_ADAPTIVE_FIXED) made.prior = 1;
    arrange_adaptive(made, &arena);
    if (!arena_allocate(&arena, &options->allocator)) {
        fft_destroy(made.fft);
        return PARTITA_ERR_NOMEM;
    }
    *ret_adaptive = arrange_adaptive(made, &arena);
    partita_adaptive_reset(*ret_adaptive);
    return PARTITA_OK;
}

void partita_adaptive_destroy(struct partita_adaptive *adaptive)
{
    if (!adaptive) return;
    const struct partita_allocator allocator = adaptive->options.allocator;
    fft_destroy(adaptive->fft);
    mem_release(&allocator, adaptive);
}

// The slot of the spectrum that a channel had `back` blocks before the newest.
static char *spectrum_of(const struct partita_adaptive *adaptive, size_t channel, size_t back)
{
    const size_t slots = adaptive->partitions;
    assert(back < slots);
    const size_t slot = ((size_t)adaptive->state->newest + slots - back) % slots;
    return adaptive->spectra + (channel * slots + slot) * adaptive->spectrum_bytes;
}

// Makes a partition one of `block` taps, the rest of whose samples are zeros.
static void constrain(const struct partita_adaptive *adaptive, void *weights)
{
    const struct fft *fft = adaptive->fft;
    const size_t taps = adaptive->options.block;
    fft_inverse(fft, adaptive->samples, weights, adaptive->scratch);
    adaptive->kernels->scale(adaptive->samples, adaptive->samples, 1 / fft->gain, taps);
    memset(adaptive->samples + taps * adaptive->scalar, 0, (fft->n - taps) * adaptive->scalar);
    fft_forward(fft, weights, adaptive->samples, adaptive->scratch);
}

void adaptive_run_tasks(struct partita_adaptive *adaptive, size_t end)
{
    struct adaptive_state *state = adaptive->state;
    const enum partita_adaptive_constraint constraint = adaptive->options.constraint;
    const size_t bytes = adaptive->spectrum_bytes, channels = adaptive->options.channels;
    assert(end <= adaptive->tasks);
    for (; state->done < end; state->done++) {
        const size_t channel = (size_t)state->done % channels, p = (size_t)state->done / channels;
        const size_t part = channel * adaptive->partitions + p;
        char *weights = adaptive->weights + part * bytes, *copy = adaptive->copy + part * bytes;
        const bool due = state->blocks % adaptive->partitions == p;
        if (state->action == RESTORE) memcpy(weights, copy, bytes);
        if (state->action == RESTART) clear_part(adaptive, part);
        adaptive->loops->step(adaptive, part, spectrum_of(adaptive, channel, p));
        if (state->action == LEARN && constraint != PARTITA_ADAPTIVE_NONE &&
            (due || constraint == PARTITA_ADAPTIVE_EVERY))
            constrain(adaptive, weights);
        if (state->keeps) memcpy(copy, weights, bytes);
        if (p > 0) adaptive->loops->multiply(adaptive, part, spectrum_of(adaptive, channel, p - 1));
    }
}

// Whether samples of a block are such that numbers may depend on them: up to 2^40, f64 2^400. All
// of them become zeros otherwise.
static bool check_block(const struct partita_adaptive *adaptive, char *samples)
{
    const size_t block = adaptive->options.block;
    const bool f64 = adaptive->scalar == sizeof(double);
    const uint64_t largest = f64 ? (uint64_t)1423 << 52 : (uint64_t)167 << 23; // as bits
    const bool good = adaptive->kernels->peak(samples, block) <= largest;
    if (!good) memset(samples, 0, block * adaptive->scalar);
    return good;
}

// The products of the newest spectra. Returns whether the samples are good.
static bool meet_newest(struct partita_adaptive *adaptive)
{
    const size_t window = adaptive->fft->n * adaptive->scalar;
    const size_t block = adaptive->options.block * adaptive->scalar;
    bool good = true;
    adaptive->state->newest = (adaptive->state->newest + 1) % adaptive->partitions;
    for (size_t c = 0; c < adaptive->options.channels; c++) {
        char *samples = adaptive->windows + c * window, *spectrum = spectrum_of(adaptive, c, 0);
        if (!check_block(adaptive, samples + window - block)) good = false;
        fft_forward(adaptive->fft, spectrum, samples, adaptive->scratch);
        memmove(samples, samples + block, window - block);
        adaptive->loops->multiply(adaptive, c * adaptive->partitions, spectrum);
    }
    return good;
}

static double energy(const struct partita_adaptive *adaptive, const void *x)
{
    double sum = 0;
    for (size_t i = 0; i < adaptive->options.block; i++)
        sum += pow(scalar_get(adaptive->scalar == sizeof(double), x, i), 2);
    return sum;
}

// The residual of the block and its spectrum. Returns whether the numbers are usable; otherwise the
// residual is the near end.
static bool find_residual(struct partita_adaptive *adaptive, double sums[2])
{
    const struct fft *fft = adaptive->fft;
    const size_t n = adaptive->options.block, block = n * adaptive->scalar;
    char *end = adaptive->samples + fft->n * adaptive->scalar - block;
    memcpy(adaptive->spectrum, adaptive->arrays.estimate, adaptive->spectrum_bytes);
    fft_inverse(fft, adaptive->samples, adaptive->spectrum, adaptive->scratch);
    memcpy(adaptive->residual, adaptive->near_end, block);
    adaptive->kernels->scale(end, end, -1 / fft->gain, n);
    adaptive->kernels->add(adaptive->residual, end, n);
    sums[0] = energy(adaptive, adaptive->near_end);
    sums[1] = energy(adaptive, adaptive->residual);
    const bool usable = sums[1] <= ldexp((double)n, adaptive->scalar == 8 ? 804 : 84);
    if (!usable) memcpy(adaptive->residual, adaptive->near_end, block);
    memset(adaptive->samples, 0, (size_t)(end - adaptive->samples));
    memcpy(end, adaptive->residual, block);
    fft_forward(fft, adaptive->arrays.error, adaptive->samples, adaptive->scratch);
    return usable;
}

// Decides on the action of the tasks of this block, and finds their steps.
static void choose_action(struct partita_adaptive *adaptive, const double sums[2], bool usable,
                          bool learns)
{
    enum { COPY_BLOCKS = 32 };
    const double louder = 4, kept = 0.9; // 6 dB in power; some ten blocks
    struct adaptive_state *state = adaptive->state;
    if (sums[0] > 0) {
        state->near_power = kept * state->near_power + (1 - kept) * sums[0];
        state->residual_power = kept * state->residual_power + (1 - kept) * sums[usable];
    }
    const bool diverged = learns && state->residual_power > louder * state->near_power;
    state->action = learns ? LEARN : REST;
    if (diverged) state->action = state->has_copy ? RESTORE : RESTART;
    if (usable && state->action == LEARN) {
        adaptive->loops->control(adaptive);
        usable =
            isfinite(state->coherence + state->predicted_power + state->echo_power + state->other);
    }
    if (!usable) state->action = RESTART;
    if (state->action == RESTART) clear_arrays(adaptive);
    if (state->action > REST) {
        state->residual_power = state->near_power;
        state->has_copy = false;
    }
    state->keeps = state->action == LEARN && state->blocks % COPY_BLOCKS == 0 &&
                   louder * state->residual_power < state->near_power;
    state->has_copy = state->has_copy || state->keeps;
    if (state->action == LEARN) return;
    memset(adaptive->arrays.gain, 0, adaptive->part_bytes);
    state->spread = adaptive->options.drift;
}

static void finish_block(struct partita_adaptive *adaptive)
{
    struct adaptive_state *state = adaptive->state;
    double sums[2];
    assert(state->done == adaptive->tasks);
    const bool usual = check_block(adaptive, adaptive->near_end);
    const bool good = meet_newest(adaptive) && usual;
    const bool usable = find_residual(adaptive, sums);
    choose_action(adaptive, sums, usable, good && !state->frozen && sums[0] > 0);
    memset(adaptive->arrays.estimate, 0, 3 * adaptive->spectrum_bytes); // power and squares too
    state->blocks++;
    state->rested += state->action != LEARN;
    state->restored += state->action == RESTORE;
    state->restarted += state->action == RESTART;
    state->filled = state->done = 0;
}

void partita_adaptive_process(struct partita_adaptive *adaptive, void *residual,
                              const void *near_end, PARTITA_INPUTS far_end, size_t n_frames)
{
    struct adaptive_state *state = adaptive->state;
    const size_t block = adaptive->options.block, scalar = adaptive->scalar;
    const size_t window = adaptive->fft->n * scalar;
    const bool whole = adaptive->options.whole_blocks;
    for (size_t at = 0, n; at < n_frames; at += n) {
        n = size_min(n_frames - at, block - (size_t)state->filled);
        const size_t first = at * scalar, begin = (size_t)state->filled * scalar;
        char *to = (char *)residual + first, *newest = adaptive->windows + window - block * scalar;
        if (whole && n < block) {
            memset(to, 0, n * scalar);
            return;
        }
        memcpy(adaptive->near_end + begin, (const char *)near_end + first, n * scalar);
        for (size_t c = 0; c < adaptive->options.channels; c++, newest += window) {
            if (!far_end.samples) memset(newest + begin, 0, n * scalar);
            else memcpy(newest + begin, (const char *)far_end.samples[c] + first, n * scalar);
        }
        if (!whole) memcpy(to, adaptive->residual + begin, n * scalar);
        state->filled += n;
        adaptive_run_tasks(
            adaptive, size_min(adaptive->tasks * 4 * state->filled / (3 * block), adaptive->tasks));
        if (state->filled == block) finish_block(adaptive);
        if (whole) memcpy(to, adaptive->residual, n * scalar);
    }
}
