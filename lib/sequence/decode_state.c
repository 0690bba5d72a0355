// SPDX-License-Identifier: MIT
// The options of a state, its segments, its memory and the spectra of its taps.
#include <limits.h>

#include "api/sized.h"
#include "base/thread.h"
#include "core/arguments.h"
#include "decode.h"

static enum partita_status check_decode(const struct partita_decode_options *options)
{
    const struct partita_log *log = &options->log;
    const size_t max = (size_t)1 << 20;
    const enum partita_type type = options->signal;
    if (!causal_in_range(log, "decode: sequences", options->sequences, 1, max) ||
        !causal_in_range(log, "decode: channels", options->channels, 1, max) ||
        !causal_in_range(log, "decode: n_taps", options->n_taps, 1, max) ||
        !causal_in_range(log, "decode: rewind", options->rewind, 0, max) ||
        !causal_in_range(log, "decode: max_frames", options->max_frames, 0, PTRDIFF_MAX) ||
        !causal_in_range(log, "decode: threads", (size_t)options->threads, 0, INT_MAX))
        return PARTITA_ERR_ARG;
    if (!options->allocator.allocate != !options->allocator.release)
        return log_error(log, PARTITA_ERR_ARG, "decode: allocator: set both functions or none");
    if (type != PARTITA_F32 && type != PARTITA_F16 && type != PARTITA_BF16)
        return log_error(log, PARTITA_ERR_UNSUPPORTED, "decode: signal = %d: f32, f16 or bf16",
                         (int)type);
    return PARTITA_OK;
}

// Adds the segment of taps 2 * block .. end-1. A channel's products are cut into parts that take
// about as long as a step of a transform: of six partitions, as many as there are steps.
static enum partita_status add_segment(struct partita_decode *d, size_t block, size_t end)
{
    const struct fft_request request = {.n = 2 * block, .isa = cpu_detect()};
    struct decode_segment *segment = &d->segments[d->n_segments];
    const enum partita_status status = fft_create(&request, &d->options.allocator, &segment->fft);
    if (status != PARTITA_OK) return status;
    const struct fft *fft = segment->fft;
    const size_t spectrum = fft->lines * DECODE_LINE, kept = ceil_div(d->options.rewind, block);
    d->n_segments++;
    segment->block = block;
    segment->shift = (size_t)__builtin_ctzll(block);
    segment->partitions = ceil_div(end - 2 * block, block);
    segment->spectra = segment->partitions + kept;
    segment->outputs = 2 + kept;
    segment->products = size_min(ceil_div(fft->steps * segment->partitions, 6), fft->lines);
    segment->tasks = 2 * fft->steps + segment->products;
    segment->work_at = d->group_floats;
    segment->spectra_at = d->channel_floats;
    segment->outputs_at = segment->spectra_at + segment->spectra * spectrum;
    segment->filter_at = d->filter_floats;
    d->group_floats += spectrum + 2 * block + mem_round(fft->scratch_bytes) / sizeof(float);
    d->channel_floats = segment->outputs_at + segment->outputs * block;
    d->filter_floats += segment->partitions * spectrum;
    return PARTITA_OK;
}

// Segments from taps 2 B on, each up to where the next one begins. The last one has two partitions
// more rather than one of the next size. A channel is no power of two long, so that the same sample
// of all lanes is not in the same set of a cache.
static enum partita_status plan_memory(struct partita_decode *d)
{
    d->recent = d->past = DECODE_DIRECT;
    while (d->recent < DECODE_DIRECT + DECODE_QUANTUM + d->options.rewind) d->recent *= 2;
    d->group_floats = 2 * d->recent * DECODE_LANES + DECODE_TILE;
    for (size_t block = DECODE_BLOCK, done = DECODE_DIRECT; done < d->n_taps;
         block *= DECODE_GROWTH) {
        const size_t next = 2 * block * DECODE_GROWTH, last = next + 2 * block;
        done = d->n_taps <= last ? d->n_taps : next;
        const enum partita_status status = add_segment(d, block, done);
        if (status != PARTITA_OK) return status;
        d->mirror = block;
    }
    if (d->mirror) {
        while (d->past < 3 * d->mirror + DECODE_QUANTUM + d->options.rewind) d->past *= 2;
        d->past_at = d->channel_floats;
        d->channel_floats += d->past + d->mirror + DECODE_LANES;
    }
    d->channel_at = d->group_floats;
    d->group_floats += d->channel_floats * DECODE_LANES;
    return PARTITA_OK;
}

static struct partita_decode *arrange(const struct partita_decode *planned, struct arena *arena)
{
    const size_t channels = planned->options.channels, sequences = planned->options.sequences;
    struct partita_decode made = *planned, *d = arena_take(arena, sizeof *d);
    const size_t direct = made.n_direct * DECODE_LANES, size = sizeof(float);
    const size_t slot = size_mul(made.groups, size_mul(made.group_floats, size));
    made.sequences = arena_take(arena, sequences * sizeof *made.sequences);
    made.direct = arena_take(arena, size_mul(made.groups, direct * size));
    made.filters = arena_take(arena, size_mul(channels, size_mul(made.filter_floats, size)));
    made.slots = arena_take(arena, size_mul(sequences, slot));
    if (d) *d = made;
    return d;
}

static void destroy_transforms(struct partita_decode *d)
{
    for (size_t i = 0; i < d->n_segments; i++) fft_destroy(d->segments[i].fft);
}

// Reads a caller's options and counts the memory of their state.
static enum partita_status plan_state(struct partita_decode *d, struct arena *arena,
                                      const struct partita_decode_options *given, size_t bytes)
{
    struct partita_decode_options *options = &d->options;
    const struct partita_log log = log_given(given);
    *d = (struct partita_decode){.n_taps = 0};
    if (!sized_read(options, sizeof *options, given, bytes, &log, "options"))
        return PARTITA_ERR_UNSUPPORTED;
    options->log = log;
    if (!options->signal) options->signal = PARTITA_F32;
    enum partita_status status = check_decode(options);
    if (status != PARTITA_OK) return status;
    const size_t max_frames = options->max_frames ? options->max_frames : SIZE_MAX;
    d->n_taps = size_min(options->n_taps, max_frames);
    d->n_direct = size_min(d->n_taps, DECODE_DIRECT);
    for (size_t t = 0; t < d->n_direct; t += MAX_SPAN_TAPS)
        d->spans[t / MAX_SPAN_TAPS] = (struct tap_span){t < DECODE_QUANTUM ? t : t - DECODE_QUANTUM,
                                                        size_min(d->n_direct - t, MAX_SPAN_TAPS)};
    d->kernels = kernels_select(cpu_detect(), false);
    d->threads = options->threads ? thread_bound(options->threads) : thread_default();
    d->groups = ceil_div(options->channels, DECODE_LANES);
    status = plan_memory(d);
    if (status == PARTITA_OK) arrange(d, arena);
    else destroy_transforms(d);
    return status;
}

// The spectra of the partitions of a segment: for each line those of all partitions. No slot is
// open yet, so the work of the first group is free.
static void store_partitions(const struct partita_decode *d, const struct decode_segment *segment,
                             float *to, const float *taps)
{
    const struct fft *fft = segment->fft;
    float *work = d->slots + segment->work_at, *samples = work + fft->lines * DECODE_LINE;
    for (size_t p = 0; p < segment->partitions; p++) {
        const size_t first = (2 + p) * segment->block;
        const size_t n = size_min(d->n_taps - first, segment->block);
        const struct fft_target target = {(char *)to + p * SPECTRUM_LINE_BYTES, work,
                                          segment->partitions * SPECTRUM_LINE_BYTES};
        for (size_t i = n; i < fft->n; i++) samples[i] = 0;
        d->kernels->scale(samples, taps + first, 1 / fft->gain, n);
        fft_forward_apart(fft, &target, samples, samples + fft->n,
                          (struct fft_steps){0, fft->steps});
    }
}

static void store_taps(const struct partita_decode *d, const float *taps)
{
    for (size_t c = 0; c < d->options.channels; c++, taps += d->options.n_taps) {
        const size_t tile = d->n_direct * DECODE_LANES, lane = c % DECODE_LANES;
        float *end = d->direct + (c / DECODE_LANES + 1) * tile + lane;
        for (size_t t = 0; t < d->n_direct; t++) *(end -= DECODE_LANES) = taps[t];
        for (size_t i = 0; i < d->n_segments; i++)
            store_partitions(d, &d->segments[i],
                             d->filters + c * d->filter_floats + d->segments[i].filter_at, taps);
    }
}

enum partita_status partita_decode_memory_sized(const struct partita_decode_options *options,
                                                size_t options_bytes, size_t *ret_bytes)
{
    struct partita_decode planned;
    struct arena arena = {0};
    if (!arguments_given(log_given(options), options, ret_bytes)) return PARTITA_ERR_ARG;
    const enum partita_status status = plan_state(&planned, &arena, options, options_bytes);
    if (status != PARTITA_OK) return status;
    *ret_bytes = arena.used;
    destroy_transforms(&planned);
    return PARTITA_OK;
}

enum partita_status partita_decode_create_sized(const struct partita_decode_options *options,
                                                size_t options_bytes, const float *taps,
                                                struct partita_decode **ret_decode)
{
    struct partita_decode planned;
    struct arena arena = {0};
    if (!arguments_given(log_given(options), options, taps, ret_decode) ||
        !arrays_usable(log_given(options), {"taps", taps, 1, sizeof *taps, false}))
        return PARTITA_ERR_ARG;
    const enum partita_status status = plan_state(&planned, &arena, options, options_bytes);
    if (status != PARTITA_OK) return status;
    if (!arena_allocate(&arena, &planned.options.allocator)) {
        destroy_transforms(&planned);
        return PARTITA_ERR_NOMEM;
    }
    store_taps(*ret_decode = arrange(&planned, &arena), taps);
    return PARTITA_OK;
}

void partita_decode_destroy(struct partita_decode *decode)
{
    if (!decode) return;
    const struct partita_allocator allocator = decode->options.allocator;
    destroy_transforms(decode);
    mem_release(&allocator, decode);
}
