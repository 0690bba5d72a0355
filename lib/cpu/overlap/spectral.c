// SPDX-License-Identifier: MIT
#include "spectral.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geometry/samples.h"
#include "kernels/kernels.h"

// Hop for a transform of n samples: what does not wrap, cut to the latency allowed; for streams one
// more than a multiple of the stride, so that the latency hop - 1 is whole output frames. 0 if
// nothing is left.
static size_t hop_for(const struct shape *shape, size_t n)
{
    const struct axis *axis = &shape->axis[0];
    if (n < axis->span) return 0;
    size_t hop = n - axis->span + 1;
    if (!shape->stream) return hop;
    if (shape->latency < hop - 1) hop = shape->latency + 1;
    const size_t latency = (hop - 1) / axis->stride * axis->stride;
    return latency ? latency + 1 : 0;
}

size_t spectral_blocks(const struct shape *shape, size_t hop)
{
    const struct axis *axis = &shape->axis[0];
    return ((axis->out - 1) * axis->stride + 1 + hop - 1) / hop;
}

bool spectral_fits_half(const struct shape *shape, size_t n, bool weight, struct spectral_half *ret)
{
    const struct axis *axis = &shape->axis[0];
    *ret = (struct spectral_half){0};
    if (shape->stream || shape->complex_signal) return false;
    const ptrdiff_t half = (ptrdiff_t)(n / 2), size = (ptrdiff_t)axis->size,
                    span = (ptrdiff_t)axis->span;
    const ptrdiff_t outputs = (ptrdiff_t)((axis->out - 1) * axis->stride + 1),
                    first = causal_first(axis);
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

static size_t bins_of(const struct shape *shape, size_t n)
{
    return shape->complex_signal ? n : n / 2 + 1;
}

static size_t cells_of(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}

// Without a transform at hand: bytes of a spectrum of n samples, rounded to blocks.
size_t spectral_bytes(const struct shape *shape, size_t n)
{
    return mem_round(bins_of(shape, n) * shape->scalar_bytes) * 2;
}

// What a block costs beyond its loops: calls, and tables and spectra that memory traffic has pushed
// out of L1. The difference of the model and of the rows long-10M-x-64 and -1024 of bench_signal.
static const double BLOCK_SECONDS = 3e-7;

double spectral_block_seconds(const struct request *request, size_t n, double moves)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const size_t filter = cells_of(shape) * spectral_bytes(shape, n);
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const double scalars = (double)n * (shape->complex_signal ? 2 : 1);
    // A block that no cache holds goes through memory with every move.
    const bool beyond = spectral_bytes(shape, n) > request->model->shared_bytes / 2;
    return BLOCK_SECONDS +
           channels / 2 * cost_model_fft(request->model, shape->f64, shape->complex_signal, n) +
           (double)cells_of(shape) * (double)bins_of(shape, n) *
               (filter > request->model->cache_bytes / 2 ? costs->cmac_far : costs->cmac_cached) +
           channels / 2 * moves * scalars * (beyond ? costs->copy_far : costs->copy);
}

// What transforming the taps takes, where they are used once, and the memory for all this.
static double once_seconds(const struct request *request, size_t n, size_t work)
{
    const struct shape *shape = request->shape;
    if (!shape_lone(shape)) return 0;
    const size_t filter = cells_of(shape) * spectral_bytes(shape, n);
    return cost_model_fft(request->model, shape->f64, shape->complex_signal, n) / 2 +
           fresh_seconds(request->model, shape, size_add(work, filter));
}

bool spectral_filtering(const struct request *request, size_t n, double moves, double limit,
                        struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t hop = hop_for(shape, n), block = n * shape->sample_bytes;
    if (!hop) return false;
    // The transform's own scratch is at most three times its samples.
    const size_t spectra = shape->group_in + (spectral_in_place(shape) ? 0 : 1);
    const size_t work = spectral_bytes(shape, n) * spectra + 4 * mem_round(block);
    if (!shape->stream && work > request->workspace_limit) return false;
    const double blocks = shape->stream
                              ? 1 / (double)hop
                              : (double)shape->batch * (double)spectral_blocks(shape, hop);
    // The transforms of a block wait for its samples: what memory takes comes on top.
    const double memory =
        shape->stream ? 0 : memory_seconds(request->model, shape) + once_seconds(request, n, work);
    const double seconds = blocks * spectral_block_seconds(request, n, moves) + memory;
    if (seconds >= limit) return false;
    const double transforms =
        (double)(shape->in_channels + shape->out_channels) * (shape->complex_signal ? 2 : 1);
    const double flops = transforms * 2.5 * (double)n * log2((double)n) +
                         8 * (double)cells_of(shape) * (double)bins_of(shape, n);
    const size_t stream =
        shape->stream ? block * shape->in_channels + hop * shape->out_channels * shape->sample_bytes
                      : 0;
    *ret = (struct estimate){
        .applicable = true,
        .transform = n,
        .hop = hop,
        .latency = shape->stream ? hop - 1 : 0,
        .seconds = seconds,
        .flops = flops * blocks,
        .worker = shape->stream ? 0 : work,
        .bytes = size_add(size_mul(cells_of(shape), spectral_bytes(shape, n)), stream + work),
        .error = shape_roundoff(shape) * 1.3 * sqrt(log2((double)n)),
    };
    return true;
}

// Of all sizes that cost about as little as the cheapest the smallest: it holds less memory and
// delays less, threads share a cache, and the model is no finer than that.
static void search(const struct request *request, spectral_consider_fn *consider, double moves,
                   struct estimate *ret)
{
    static const double about = 1.05;
    const struct shape *shape = request->shape;
    const size_t span = shape->axis[0].span;
    // Beyond these sizes the share of wrapped samples no longer falls, or one block holds
    // everything.
    const size_t whole =
        shape->stream ? SIZE_MAX : fft_good_size(size_add(shape->axis[0].size, 2 * span));
    size_t last = size_mul(span, 32) > 1 << 16 ? size_mul(span, 32) : 1 << 16;
    if (whole && last > whole) last = whole;
    double least = INFINITY;
    for (size_t n = fft_good_size(span); n && n <= last; n = fft_good_size(n + 1))
        if (consider(request, n, moves, least, ret)) least = ret->seconds;
    for (size_t n = fft_good_size(span); n && n <= last; n = fft_good_size(n + 1))
        if (consider(request, n, moves, about * least, ret)) break;
}

void spectral_search(const struct request *request, spectral_consider_fn *consider, double moves,
                     struct estimate *ret)
{
    const struct shape *shape = request->shape;
    if (request->transform) {
        if (fft_good_size(request->transform) == request->transform)
            consider(request, request->transform, moves, INFINITY, ret);
    } else {
        search(request, consider, moves, ret);
    }
    if (ret->applicable) return;
    if (shape->stream && shape->latency < shape->axis[0].stride)
        snprintf(ret->reason, sizeof ret->reason,
                 "needs an allowed latency of at least %zu frames, not %zu", shape->axis[0].stride,
                 shape->latency);
    else
        snprintf(ret->reason, sizeof ret->reason,
                 "no transform size fits taps, latency and workspace limit");
}

enum partita_status spectral_plan_create(struct partita_plan *plan, const struct request *request)
{
    (void)request;
    struct spectral *spectral = mem_allocate(&plan->allocator, sizeof *spectral);
    if (!spectral) return PARTITA_ERR_NOMEM;
    plan->state = spectral;
    spectral->shape = plan->shape;
    if (plan->direction == PARTITA_BACKWARD_DATA) shape_adjoint(&plan->shape, &spectral->shape);
    spectral->n = plan->choice.transform;
    spectral->hop = plan->choice.hop;
    const struct fft_request transform = {.n = spectral->n,
                                          .f64 = plan->shape.f64,
                                          .complex = plan->shape.complex_signal,
                                          .measure = plan->measure,
                                          .level = plan->isa};
    const enum partita_status status = fft_create(&transform, &plan->allocator, &spectral->fft);
    if (status != PARTITA_OK) return status;
    if (!plan->shape.stream)
        plan->choice.worker = spectral_work_bytes(&spectral->shape, spectral->fft);
    return PARTITA_OK;
}

void spectral_plan_destroy(struct partita_plan *plan)
{
    struct spectral *spectral = plan->state;
    if (spectral) fft_destroy(spectral->fft);
    mem_release(&plan->allocator, spectral);
}

// samples[n] = g over the transform's gain, zero-padded; a real filter of a complex signal gets
// zero imaginary parts.
static void load_taps(const struct partita_plan *plan, char *samples, char *causal,
                      const void *taps)
{
    const struct spectral *spectral = plan->state;
    const struct shape *shape = &spectral->shape;
    const size_t span = shape->axis[0].span, per_tap = shape->complex_taps ? 2 : 1;
    const bool widen = shape->complex_signal && !shape->complex_taps;
    memset(causal, 0, span * shape->tap_bytes);
    memset(samples, 0, spectral->n * shape->sample_bytes);
    causal_taps(shape, causal, taps);
    plan->kernels->scale(causal, causal, 1 / fft_gain(spectral->fft), span * per_tap);
    if (spectral->half.mirrored) samples_reverse(samples, 1, causal, 1, span, shape->tap_bytes);
    else samples_copy(samples, widen ? 2 : 1, causal, 1, span, shape->tap_bytes);
}

enum partita_status spectral_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct spectral *spectral = plan->state;
    const struct shape *shape = &spectral->shape;
    const size_t cells = cells_of(shape), bytes = fft_spectrum_bytes(spectral->fft);
    struct arena arena = {0};
    for (int pass = 0; pass < 2; pass++) {
        char *samples = arena_take(&arena, spectral->n * shape->sample_bytes);
        char *causal = arena_take(&arena, shape->axis[0].span * shape->tap_bytes);
        char *scratch = arena_take(&arena, fft_scratch_bytes(spectral->fft));
        if (pass == 0) {
            filter->state = mem_reserve(&plan->allocator, size_mul(cells, bytes));
            arena.base = mem_reserve(&plan->allocator, arena.used);
            if (!filter->state || !arena.base) break;
            arena.used = 0;
            continue;
        }
        for (size_t cell = 0; cell < cells; cell++) {
            const size_t from = shape_path(shape, cell / shape->group_in, cell % shape->group_in);
            load_taps(plan, samples, causal,
                      (const char *)taps + from * shape->axis[0].kernel * shape->tap_bytes);
            char *spectrum = (char *)filter->state + cell * bytes;
            if (!spectral->together) fft_forward(spectral->fft, spectrum, samples, scratch);
            else spectral_long_forward(spectral->fft, spectrum, samples, scratch, plan->threads);
            if (spectral->half.mirrored)
                fft_conjugate(shape->f64, spectrum, fft_lines(spectral->fft));
        }
    }
    const bool complete = filter->state && arena.base;
    mem_release(&plan->allocator, arena.base);
    return complete ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

bool spectral_in_place(const struct shape *shape)
{
    return !shape->stream && shape->group_in == 1 && shape->group_out == 1;
}

struct spectral_work spectral_work_cut(const struct shape *shape, const struct fft *fft,
                                       struct arena *arena)
{
    struct spectral_work work;
    work.inputs = arena_take(arena, size_mul(shape->group_in, fft_spectrum_bytes(fft)));
    // What is read once may be multiplied where it is: a long transform is as large as the cache
    // that it needs.
    const bool in_place = spectral_in_place(shape);
    work.output = in_place ? work.inputs : arena_take(arena, fft_spectrum_bytes(fft));
    work.samples = arena_take(arena, fft_size(fft) * shape->sample_bytes);
    work.scratch = arena_take(arena, fft_scratch_bytes(fft));
    return work;
}

size_t spectral_work_bytes(const struct shape *shape, const struct fft *fft)
{
    struct arena arena = {0};
    spectral_work_cut(shape, fft, &arena);
    return arena.used;
}

void spectral_forward_half(const struct spectral *spectral, void *spectrum, const char *x,
                           char *samples, char *scratch)
{
    const struct shape *shape = &spectral->shape;
    const size_t half = spectral->n / 2, size = shape->axis[0].size;
    const ptrdiff_t at = spectral->half.at;
    const void *from = x + at * (ptrdiff_t)shape->sample_bytes;
    if (at < 0 || (size_t)at + half > size) {
        samples_window(samples, x, size, at, 1, half, shape->sample_bytes);
        from = samples;
    }
    fft_forward_half(spectral->fft, spectrum, from, samples, scratch);
}

void spectral_sum(const struct partita_filter *filter, size_t channel, struct spectral_work *work)
{
    const struct partita_plan *plan = filter->plan;
    const struct spectral *spectral = plan->state;
    const size_t blocks = fft_lines(spectral->fft), group_in = spectral->shape.group_in;
    const char *spectra =
        (const char *)filter->state + channel * group_in * fft_spectrum_bytes(spectral->fft);
    plan->kernels->cmac(work->output, work->inputs, blocks, spectra, blocks, group_in, blocks);
}

void spectral_output(const struct partita_filter *filter, size_t channel,
                     struct spectral_work *work)
{
    const struct spectral *spectral = filter->plan->state;
    spectral_sum(filter, channel, work);
    fft_inverse(spectral->fft, work->samples, work->output, work->scratch);
}
