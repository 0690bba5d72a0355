// SPDX-License-Identifier: MIT
#include "overlap.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// A smaller size that costs up to this much more than the cheapest is taken.
static const double SIZE_MARGIN = 1.05;

// Long blocks of an aligned array begin on a cache line, and so do their transforms: else every
// vector that is read or written there crosses a line.
enum { ALIGNED_LINES = 128 }; // of the shortest such block, which loses less than one of them

static size_t aligned_before(const struct shape *shape)
{
    return size_round_up(shape->axis[0].span - 1, MEM_ALIGN / shape->sample_bytes);
}

// Hop for a transform of n samples: the samples that do not wrap, at most as the latency allows;
// for streams one more than a multiple of the stride, so that the latency hop - 1 is whole output
// frames. 0 if nothing is left.
static size_t hop_for(const struct shape *shape, size_t n)
{
    const struct axis *axis = &shape->axis[0];
    if (n < axis->span) return 0;
    const size_t hop = n - axis->span + 1;
    const bool lone = (axis->out - 1) * axis->stride < hop;
    const bool shorter = hop <= ALIGNED_LINES * MEM_ALIGN / shape->sample_bytes;
    if (!shape->stream) return lone || shorter ? hop : n - aligned_before(shape);
    const size_t step = shape_output_step(shape);
    const size_t latency = size_min(hop - 1, shape->latency) / step * step;
    return latency ? latency + 1 : 0;
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

// Rounded to lines.
size_t overlap_spectrum_bytes(const struct shape *shape, size_t n)
{
    return mem_round(shape_bins(shape, n) * shape->scalar_bytes) * 2;
}

// Seconds of a product of two bins. Where a block's spectra stay in a core's cache and the filter
// does not, each product fetches a factor alone.
static double product_seconds(const struct request *request, size_t spectrum)
{
    const struct shape *shape = request->shape;
    const struct cost_model *model = request->model;
    const struct cost_rates *costs = &model->costs[shape->f64];
    const size_t filter = size_mul(shape_path_count(shape), spectrum);
    if (filter <= model->cache_bytes / 2) return costs->cmac_cached;
    if (size_mul(shape->group_in + 1, spectrum) > model->cache_bytes / 2) return costs->cmac_far;
    const bool memory = filter > model->shared_bytes / 2;
    const double read = costs->product[memory ? COST_MEMORY : COST_FAR][0];
    const bool sums = request->direction == PARTITA_BACKWARD_WEIGHT &&
                      filter / shape->groups > model->cache_bytes / 2;
    return sums ? 2 * read : read; // sums in place of a filter are also written
}

double overlap_block_seconds(const struct request *request, size_t n, double moves, double fft)
{
    const struct shape *shape = request->shape;
    const struct cost_model *model = request->model;
    const struct cost_rates *costs = &model->costs[shape->f64];
    const double product = product_seconds(request, overlap_spectrum_bytes(shape, n));
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const double scalars = (double)n * (shape->complex_signal ? 2 : 1);
    // A block that no cache holds goes through memory with every move.
    const bool beyond = overlap_spectrum_bytes(shape, n) > model->shared_bytes / 2;
    if (shape->channels_last) moves += 1; // transposition
    return costs->work.block + channels / 2 * fft +
           (double)shape_path_count(shape) * (double)shape_bins(shape, n) * product +
           channels / 2 * moves * scalars * (beyond ? costs->work.copy_far : costs->work.copy);
}

// Whether products may overwrite the inputs' spectra, because nothing else reads these.
static bool overlap_in_place(const struct shape *shape)
{
    return !shape->stream && shape->group_in == 1 && shape->group_out == 1;
}

// The time to transform taps that are used once, and for the memory of all this.
static double once_seconds(const struct request *request, size_t n, size_t work, double fft)
{
    const struct shape *shape = request->shape;
    if (!request_used_once(request, shape)) return 0;
    const size_t filter = shape_path_count(shape) * overlap_spectrum_bytes(shape, n);
    return fft / 2 + fresh_seconds(request, shape, size_add(work, filter));
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
    const size_t work = overlap_spectrum_bytes(shape, n) * spectra + 4 * mem_round(block) +
                        2 * overlap_rows_bytes(shape, n);
    if (!stream && work > request->workspace_limit) return false;
    const double all = stream ? 0 : (double)overlap_block_count(shape, hop);
    const double blocks = stream ? 1 / (double)hop : (double)shape->batch * all;
    const double fft = cost_model_fft(request->model, shape->f64, shape->complex_signal, n);
    // The transforms of a block wait for its samples: the time of memory is added.
    const double memory =
        memory_seconds(request->model, shape) + (stream ? 0 : once_seconds(request, n, work, fft));
    const double seconds = blocks * overlap_block_seconds(request, n, moves, fft) + memory;
    if (seconds >= limit) return false;
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const double transforms = channels * (shape->complex_signal ? 2 : 1);
    const double products = (double)shape_path_count(shape) * (double)shape_bins(shape, n);
    const size_t history = size_mul(overlap_history_frames(n, hop), shape->in_channels);
    const size_t held = (2 * history + 2 * hop * shape->out_channels) * shape->sample_bytes;
    const size_t filter = size_mul(shape_path_count(shape), overlap_spectrum_bytes(shape, n));
    *ret = (struct estimate){
        .applicable = true,
        .transform = n,
        .hop = hop,
        .spread = stream ? 0 : size_max(hop / shape->axis[0].stride, 1),
        .latency = stream ? hop - 1 : 0,
        .seconds = seconds,
        .flops = blocks * (transforms * 2.5 * (double)n * log2((double)n) + 8 * products),
        .worker = stream ? 0 : work,
        .bytes = size_add(filter, work + (stream ? held : 0)),
        .error = shape_roundoff(shape) * 1.3 * sqrt(log2((double)n)),
    };
    if (!stream && !request_used_once(request, shape)) // once_seconds has it
        ret->filter_seconds = (double)shape_path_count(shape) / 2 * fft;
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
    const size_t useful = size_min(size_max(size_mul(span, 32), 1 << 16), whole);
    const size_t last = size_min(useful, request_max_transform(request));
    // The smallest such size is cheaper than all before it: one of those that were the cheapest
    // when they were tried. Of these only the ones within the margin remain.
    enum { MAX_KEPT = 32 };
    struct {
        size_t n;
        double cost;
    } kept[MAX_KEPT];
    size_t n_kept = 0;
    // A size that costs no less in seconds alone costs no less with its share of a filter.
    double least = INFINITY;
    for (size_t n = fft_good_size(span); n && n <= last; n = fft_good_size(n + 1)) {
        if (!estimate(request, n, moves, least, ret)) continue;
        const double cost = request_cost(request, ret);
        if (cost >= least) continue;
        least = cost;
        size_t beyond = 0;
        while (beyond < n_kept && kept[beyond].cost >= SIZE_MARGIN * least) beyond++;
        n_kept -= beyond;
        memmove(kept, kept + beyond, n_kept * sizeof *kept);
        if (n_kept == MAX_KEPT) continue;
        kept[n_kept].n = n;
        kept[n_kept++].cost = least;
    }
    if (n_kept) estimate(request, kept[0].n, moves, INFINITY, ret);
}

void overlap_search(const struct request *request, overlap_estimate_fn *estimate, double moves,
                    struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t n = request->transform;
    if (!n) search_sizes(request, estimate, moves, ret);
    else if (fft_good_size(n) == n) estimate(request, n, moves, INFINITY, ret);
    if (ret->applicable) return;
    if (shape->stream && shape->latency < shape_output_step(shape))
        estimate_refuse(ret, "needs an allowed latency of at least %zu frames, not %zu",
                        shape_output_step(shape), shape->latency);
    else
        estimate_refuse(ret,
                        "no transform size fits taps, latency, workspace limit and error_reach");
}

enum partita_status overlap_plan_create(struct partita_plan *plan, const struct request *request)
{
    (void)request;
    struct overlap *overlap = plan->state;
    overlap->shape = plan->shape;
    if (plan->direction == PARTITA_BACKWARD_DATA) shape_adjoint(&plan->shape, &overlap->shape);
    overlap->n = plan->choice.transform;
    overlap->hop = plan->choice.hop;
    overlap->before = size_min(aligned_before(&overlap->shape), overlap->n - overlap->hop);
    // Results are written in place: no sample of a transform lies behind those of its block.
    assert(plan->shape.stream || overlap->before + overlap->hop == overlap->n);
    const enum partita_status status = plan_fft(plan, overlap->n, &overlap->fft);
    if (status != PARTITA_OK) return status;
    estimate_load(&plan->choice, &overlap->chunks, sizeof overlap->chunks);
    struct arena arena = {0};
    overlap_buffers_layout(plan, &arena);
    if (!plan->shape.stream) plan->choice.worker = arena.used;
    return PARTITA_OK;
}

void overlap_plan_destroy(struct partita_plan *plan)
{
    fft_destroy(overlap_of(plan)->fft);
}

// samples[n] = the causal taps of a path over the transform's gain, zero-padded; a real filter of a
// complex signal gets zero imaginary parts. `scratch` has room for the taps. By one thread: threads
// that clear new memory at once took twice as long.
static void overlap_load_taps(const struct partita_plan *plan, const char *taps, size_t path,
                              char *samples, char *scratch)
{
    const struct overlap *overlap = overlap_of(plan);
    const struct shape *shape = &overlap->shape;
    const size_t span = shape->axis[0].span, per_tap = shape->complex_taps ? 2 : 1;
    const bool widen = shape->complex_signal && !shape->complex_taps;
    const size_t from = shape_path(shape, path / shape->group_in, path % shape->group_in);
    char *causal = widen || overlap->half.mirrored ? scratch : samples;
    const size_t kept = widen ? 0 : span;
    causal_taps(shape, causal, taps + from * shape->axis[0].kernel * shape->tap_bytes);
    plan->kernels->scale(causal, causal, 1 / overlap->fft->gain, span * per_tap);
    memset(samples + kept * shape->sample_bytes, 0, (overlap->n - kept) * shape->sample_bytes);
    if (overlap->half.mirrored) samples_reverse(samples, 1, causal, 1, span, shape->tap_bytes);
    else if (widen) samples_copy(samples, 2, causal, 1, span, shape->tap_bytes);
}

struct filter_bytes overlap_filter_bytes(const struct partita_plan *plan)
{
    const struct overlap *overlap = overlap_of(plan);
    struct arena arena = {0};
    overlap_buffers_layout(plan, &arena);
    return (struct filter_bytes){
        .packed = size_mul(shape_path_count(&overlap->shape), overlap->fft->spectrum_bytes),
        .scratch = arena.used};
}

enum partita_status overlap_filter_pack(struct partita_filter *filter, const void *taps,
                                        const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct overlap *overlap = overlap_of(plan);
    const struct fft *fft = overlap->fft;
    const size_t paths = shape_path_count(&overlap->shape);
    struct arena arena = {.base = scratch->data, .size = scratch->bytes};
    const struct overlap_buffers buffers = overlap_buffers_layout(plan, &arena);
    char *spectrum = filter->state;
    assert(arena.used <= arena.size);
    for (size_t path = 0; path < paths; path++, spectrum += fft->spectrum_bytes) {
        overlap_load_taps(plan, taps, path, buffers.samples, buffers.inputs);
        if (!overlap->shared) fft_forward(fft, spectrum, buffers.samples, buffers.scratch);
        else overlap_long_forward(fft, spectrum, buffers.samples, buffers.scratch, plan->threads);
        if (overlap->half.mirrored) fft_conjugate(plan->shape.f64, spectrum, fft->lines);
    }
    return PARTITA_OK;
}

struct overlap_buffers overlap_buffers_layout(const struct partita_plan *plan, struct arena *arena)
{
    const struct overlap *overlap = overlap_of(plan);
    const struct shape *shape = &overlap->shape;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t rows = overlap_rows_bytes(shape, overlap->n);
    const size_t spectrum = overlap->fft->spectrum_bytes;
    struct overlap_buffers buffers;
    buffers.inputs = arena_take(arena, size_mul(shape->group_in, spectrum));
    // A spectrum that is read once is multiplied where it is: a long transform is as large as the
    // cache that it needs.
    buffers.output = buffers.inputs;
    if (weight) buffers.output = arena_take(arena, size_mul(shape->group_out, spectrum));
    else if (!overlap_in_place(shape)) buffers.output = arena_take(arena, spectrum);
    const size_t paths = overlap_max_groups(shape) * shape->group_in * shape->group_out;
    const size_t sums = weight && overlap->chunks < 2 ? paths : 0;
    buffers.sums = arena_take(arena, size_mul(sums, spectrum));
    buffers.samples = arena_take(arena, overlap->n * shape->sample_bytes);
    buffers.scratch = arena_take(arena, overlap->fft->scratch_bytes);
    buffers.x_rows = rows ? arena_take(arena, rows) : buffers.samples;
    buffers.y_rows = arena_take(arena, rows);
    return buffers;
}

struct overlap_buffers overlap_worker_buffers(const struct partita_plan *plan, char *workspace,
                                              int worker)
{
    const struct estimate *choice = &plan->choice;
    const bool shared = overlap_of(plan)->shared; // then the shared workspace is the buffers
    struct arena arena = {.base = workspace + (shared ? 0 : choice->shared) +
                                  (size_t)worker * choice->worker,
                          .size = shared ? choice->shared : choice->worker};
    return overlap_buffers_layout(plan, &arena);
}

void overlap_transform(const struct overlap *overlap, size_t c, const void *samples,
                       struct overlap_buffers *buffers)
{
    char *spectrum = buffers->inputs + c * overlap->fft->spectrum_bytes;
    assert(c < overlap->shape.group_in);
    if (overlap->half.used)
        fft_forward_half(overlap->fft, spectrum, samples, buffers->samples, buffers->scratch);
    else fft_forward(overlap->fft, spectrum, samples, buffers->scratch);
}

void overlap_sum(const struct partita_filter *filter, size_t channel,
                 struct overlap_buffers *buffers)
{
    const struct overlap *overlap = overlap_of(filter->plan);
    const size_t lines = overlap->fft->lines, terms = overlap->shape.group_in;
    const size_t first = channel * terms * overlap->fft->spectrum_bytes;
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
