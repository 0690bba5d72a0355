// SPDX-License-Identifier: MIT
#include "overlap.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// What a block costs beyond its loops: calls, and tables and spectra that memory traffic has pushed
// out of L1. The difference of the model and of the rows long-10M-x-64 and -1024 of bench_signal.
static const double BLOCK_SECONDS = 3e-7;

// A smaller size that costs up to this much more than the cheapest is taken.
static const double SIZE_MARGIN = 1.05;

// Hop for a transform of n samples: what does not wrap, cut to the latency allowed; for streams one
// more than a multiple of the stride, so that the latency hop - 1 is whole output frames. 0 if
// nothing is left.
static size_t hop_for(const struct shape *shape, size_t n)
{
    const struct axis *axis = &shape->axis[0];
    if (n < axis->span) return 0;
    const size_t hop = n - axis->span + 1;
    if (!shape->stream) return hop;
    const size_t latency = size_min(hop - 1, shape->latency) / axis->stride * axis->stride;
    return latency ? latency + 1 : 0;
}

size_t overlap_block_count(const struct shape *shape, size_t hop)
{
    const struct axis *axis = &shape->axis[0];
    return ceil_div((axis->out - 1) * axis->stride + 1, hop);
}

bool overlap_fits_half(const struct shape *shape, size_t n, bool weight, struct overlap_half *ret)
{
    const struct axis *axis = &shape->axis[0];
    *ret = (struct overlap_half){0};
    if (shape->stream || shape->complex_signal) return false;
    const ptrdiff_t half = (ptrdiff_t)(n / 2), size = (ptrdiff_t)axis->size;
    const ptrdiff_t span = (ptrdiff_t)axis->span, first = causal_first(axis);
    const ptrdiff_t outputs = (ptrdiff_t)((axis->out - 1) * axis->stride + 1);
    if (span > half || outputs > half) return false;
    if (weight) {
        // Tap r lies where sample begin + q + r meets the last output but q, that is at begin +
        // outputs - 1 + r.
        const ptrdiff_t tap = axis->begin + outputs - 1, at = tap < 0 ? tap : 0;
        ret->used = tap - at + span <= half && size - at <= half;
        ret->at = at, ret->first = (size_t)(tap - at);
    } else if (first <= 0) {
        ret->used = true; // later samples than half are met by later outputs
        ret->at = first;
    } else {
        ret->used = ret->mirrored = size - axis->begin <= half;
        ret->at = axis->begin;
    }
    return ret->used;
}

static size_t overlap_bin_count(const struct shape *shape, size_t n)
{
    return shape->complex_signal ? n : n / 2 + 1;
}

static size_t overlap_path_count(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}

// Rounded to lines.
size_t overlap_spectrum_bytes(const struct shape *shape, size_t n)
{
    return mem_round(overlap_bin_count(shape, n) * shape->scalar_bytes) * 2;
}

double overlap_block_seconds(const struct request *request, size_t n, double moves)
{
    const struct shape *shape = request->shape;
    const struct cost_model *model = request->model;
    const struct cost_rates *costs = &model->costs[shape->f64];
    const size_t filter = overlap_path_count(shape) * overlap_spectrum_bytes(shape, n);
    const double product = filter > model->cache_bytes / 2 ? costs->cmac_far : costs->cmac_cached;
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const double scalars = (double)n * (shape->complex_signal ? 2 : 1);
    // A block that no cache holds goes through memory with every move.
    const bool beyond = overlap_spectrum_bytes(shape, n) > model->shared_bytes / 2;
    return BLOCK_SECONDS +
           channels / 2 * cost_model_fft(model, shape->f64, shape->complex_signal, n) +
           (double)overlap_path_count(shape) * (double)overlap_bin_count(shape, n) * product +
           channels / 2 * moves * scalars * (beyond ? costs->copy_far : costs->copy);
}

// What transforming the taps takes, where they are used once, and the memory for all this.
static double once_seconds(const struct request *request, size_t n, size_t work)
{
    const struct shape *shape = request->shape;
    if (!shape_lone(shape)) return 0;
    const size_t filter = overlap_path_count(shape) * overlap_spectrum_bytes(shape, n);
    return cost_model_fft(request->model, shape->f64, shape->complex_signal, n) / 2 +
           fresh_seconds(request->model, shape, size_add(work, filter));
}

bool overlap_estimate_filtering(const struct request *request, size_t n, double moves, double limit,
                                struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const bool stream = shape->stream;
    const size_t hop = hop_for(shape, n), block = n * shape->sample_bytes;
    if (!hop) return false;
    // The transform's own scratch is at most three times its samples.
    const size_t spectra = shape->group_in + (overlap_in_place(shape) ? 0 : 1);
    const size_t work = overlap_spectrum_bytes(shape, n) * spectra + 4 * mem_round(block);
    if (!stream && work > request->workspace_limit) return false;
    const double all = stream ? 0 : (double)overlap_block_count(shape, hop);
    const double blocks = stream ? 1 / (double)hop : (double)shape->batch * all;
    // The transforms of a block wait for its samples: what memory takes comes on top.
    const double memory =
        stream ? 0 : memory_seconds(request->model, shape) + once_seconds(request, n, work);
    const double seconds = blocks * overlap_block_seconds(request, n, moves) + memory;
    if (seconds >= limit) return false;
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const double transforms = channels * (shape->complex_signal ? 2 : 1);
    const double products = (double)overlap_path_count(shape) * (double)overlap_bin_count(shape, n);
    const size_t outputs = hop * shape->out_channels * shape->sample_bytes;
    const size_t filter = size_mul(overlap_path_count(shape), overlap_spectrum_bytes(shape, n));
    *ret = (struct estimate){
        .applicable = true,
        .transform = n,
        .hop = hop,
        .latency = stream ? hop - 1 : 0,
        .seconds = seconds,
        .flops = blocks * (transforms * 2.5 * (double)n * log2((double)n) + 8 * products),
        .worker = stream ? 0 : work,
        .bytes = size_add(filter, work + (stream ? block * shape->in_channels + outputs : 0)),
        .error = shape_roundoff(shape) * 1.3 * sqrt(log2((double)n)),
    };
    return true;
}

// Of all sizes that cost about as little as the cheapest the smallest: it holds less memory and
// delays less, threads share a cache, and the model is no finer than that.
static void search_sizes(const struct request *request, overlap_estimate_fn *estimate, double moves,
                         struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t span = shape->axis[0].span;
    // Beyond these sizes the share of wrapped samples no longer falls, or one block holds
    // everything.
    const size_t everything = fft_good_size(size_add(shape->axis[0].size, 2 * span));
    const size_t whole = shape->stream || !everything ? SIZE_MAX : everything;
    const size_t last = size_min(size_max(size_mul(span, 32), 1 << 16), whole);
    double least = INFINITY;
    for (size_t n = fft_good_size(span); n && n <= last; n = fft_good_size(n + 1))
        if (estimate(request, n, moves, least, ret)) least = ret->seconds;
    for (size_t n = fft_good_size(span); n && n <= last; n = fft_good_size(n + 1))
        if (estimate(request, n, moves, SIZE_MARGIN * least, ret)) break;
}

void overlap_search(const struct request *request, overlap_estimate_fn *estimate, double moves,
                    struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t n = request->transform;
    if (!n) search_sizes(request, estimate, moves, ret);
    else if (fft_good_size(n) == n) estimate(request, n, moves, INFINITY, ret);
    if (ret->applicable) return;
    if (shape->stream && shape->latency < shape->axis[0].stride)
        snprintf(ret->reason, sizeof ret->reason,
                 "needs an allowed latency of at least %zu frames, not %zu", shape->axis[0].stride,
                 shape->latency);
    else
        snprintf(ret->reason, sizeof ret->reason,
                 "no transform size fits taps, latency and workspace limit");
}

enum partita_status overlap_plan_create(struct partita_plan *plan, const struct request *request)
{
    (void)request;
    struct overlap *overlap = mem_allocate(&plan->allocator, sizeof *overlap);
    if (!overlap) return PARTITA_ERR_NOMEM;
    plan->state = overlap;
    overlap->shape = plan->shape;
    if (plan->direction == PARTITA_BACKWARD_DATA) shape_adjoint(&plan->shape, &overlap->shape);
    overlap->n = plan->choice.transform;
    overlap->hop = plan->choice.hop;
    const struct fft_request transform = {.n = overlap->n,
                                          .f64 = plan->shape.f64,
                                          .complex = plan->shape.complex_signal,
                                          .measure = plan->measure,
                                          .level = plan->isa};
    const enum partita_status status = fft_create(&transform, &plan->allocator, &overlap->fft);
    if (status != PARTITA_OK) return status;
    if (!plan->shape.stream)
        plan->choice.worker = overlap_buffers_bytes(&overlap->shape, overlap->fft);
    return PARTITA_OK;
}

void overlap_plan_destroy(struct partita_plan *plan)
{
    struct overlap *overlap = plan->state;
    if (overlap) fft_destroy(overlap->fft);
    mem_release(&plan->allocator, overlap);
}

// What one path's taps become on their way to a spectrum.
struct filtering {
    char *samples, *causal, *scratch;
};

static struct filtering layout_filtering(const struct overlap *overlap, struct arena *arena)
{
    const struct shape *shape = &overlap->shape;
    struct filtering filtering;
    filtering.samples = arena_take(arena, overlap->n * shape->sample_bytes);
    filtering.causal = arena_take(arena, shape->axis[0].span * shape->tap_bytes);
    filtering.scratch = arena_take(arena, fft_scratch_bytes(overlap->fft));
    return filtering;
}

// samples[n] = the causal taps over the transform's gain, zero-padded; a real filter of a complex
// signal gets zero imaginary parts.
static void overlap_load_taps(const struct partita_plan *plan, const struct filtering *filtering,
                              const void *taps)
{
    const struct overlap *overlap = overlap_of(plan);
    const struct shape *shape = &overlap->shape;
    const size_t span = shape->axis[0].span, per_tap = shape->complex_taps ? 2 : 1;
    const bool widen = shape->complex_signal && !shape->complex_taps;
    char *causal = filtering->causal, *samples = filtering->samples;
    memset(causal, 0, span * shape->tap_bytes);
    memset(samples, 0, overlap->n * shape->sample_bytes);
    causal_taps(shape, causal, taps);
    plan->kernels->scale(causal, causal, 1 / fft_gain(overlap->fft), span * per_tap);
    if (overlap->half.mirrored) samples_reverse(samples, 1, causal, 1, span, shape->tap_bytes);
    else samples_copy(samples, widen ? 2 : 1, causal, 1, span, shape->tap_bytes);
}

static void overlap_transform_taps(struct partita_filter *filter, const struct filtering *filtering,
                                   const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct overlap *overlap = overlap_of(plan);
    const struct shape *shape = &overlap->shape;
    const struct fft *fft = overlap->fft;
    for (size_t path = 0; path < overlap_path_count(shape); path++) {
        const size_t from = shape_path(shape, path / shape->group_in, path % shape->group_in);
        char *spectrum = (char *)filter->state + path * fft_spectrum_bytes(fft);
        overlap_load_taps(plan, filtering,
                          (const char *)taps + from * shape->axis[0].kernel * shape->tap_bytes);
        if (!overlap->together) fft_forward(fft, spectrum, filtering->samples, filtering->scratch);
        else
            overlap_long_forward(fft, spectrum, filtering->samples, filtering->scratch,
                                 plan->threads);
        if (overlap->half.mirrored) fft_conjugate(shape->f64, spectrum, fft_lines(fft));
    }
}

enum partita_status overlap_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_allocator *allocator = &filter->plan->allocator;
    const struct overlap *overlap = overlap_of(filter->plan);
    const size_t bytes =
        size_mul(overlap_path_count(&overlap->shape), fft_spectrum_bytes(overlap->fft));
    struct arena arena = {0};
    layout_filtering(overlap, &arena);
    filter->state = mem_reserve(allocator, bytes);
    if (!filter->state || !arena_reserve(&arena, allocator)) return PARTITA_ERR_NOMEM;
    const struct filtering filtering = layout_filtering(overlap, &arena);
    overlap_transform_taps(filter, &filtering, taps);
    mem_release(allocator, arena.base);
    return PARTITA_OK;
}

bool overlap_in_place(const struct shape *shape)
{
    return !shape->stream && shape->group_in == 1 && shape->group_out == 1;
}

struct overlap_buffers overlap_buffers_layout(const struct shape *shape, const struct fft *fft,
                                              struct arena *arena)
{
    struct overlap_buffers buffers;
    buffers.inputs = arena_take(arena, size_mul(shape->group_in, fft_spectrum_bytes(fft)));
    // A spectrum that is read once is multiplied where it is: a long transform is as large as the
    // cache that it needs.
    buffers.output = buffers.inputs;
    if (!overlap_in_place(shape)) buffers.output = arena_take(arena, fft_spectrum_bytes(fft));
    buffers.samples = arena_take(arena, fft_size(fft) * shape->sample_bytes);
    buffers.scratch = arena_take(arena, fft_scratch_bytes(fft));
    return buffers;
}

size_t overlap_buffers_bytes(const struct shape *shape, const struct fft *fft)
{
    struct arena arena = {0};
    overlap_buffers_layout(shape, fft, &arena);
    return arena.used;
}

void overlap_transform(const struct overlap *overlap, size_t c, const void *x,
                       struct overlap_buffers *buffers)
{
    assert(c < overlap->shape.group_in);
    fft_forward(overlap->fft, buffers->inputs + c * fft_spectrum_bytes(overlap->fft), x,
                buffers->scratch);
}

void overlap_transform_half(const struct overlap *overlap, void *spectrum, const char *x,
                            struct overlap_buffers *buffers)
{
    const size_t bytes = overlap->shape.sample_bytes, size = overlap->shape.axis[0].size;
    const size_t half = overlap->n / 2;
    const ptrdiff_t at = overlap->half.at;
    const void *from = buffers->samples;
    if (at >= 0 && (size_t)at + half <= size) from = x + (size_t)at * bytes;
    else samples_window(buffers->samples, x, size, at, 1, half, bytes);
    fft_forward_half(overlap->fft, spectrum, from, buffers->samples, buffers->scratch);
}

void overlap_sum(const struct partita_filter *filter, size_t channel,
                 struct overlap_buffers *buffers)
{
    const struct overlap *overlap = overlap_of(filter->plan);
    const size_t lines = fft_lines(overlap->fft), terms = overlap->shape.group_in;
    const size_t first = channel * terms * fft_spectrum_bytes(overlap->fft);
    assert(channel < overlap->shape.out_channels);
    filter->plan->kernels->cmac(buffers->output, buffers->inputs, lines,
                                (const char *)filter->state + first, lines, terms, lines);
}

void overlap_output(const struct partita_filter *filter, size_t channel,
                    struct overlap_buffers *buffers)
{
    overlap_sum(filter, channel, buffers);
    fft_inverse(overlap_of(filter->plan)->fft, buffers->samples, buffers->output, buffers->scratch);
}
