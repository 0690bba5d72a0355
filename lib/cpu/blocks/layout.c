// SPDX-License-Identifier: MIT
// How to cut: which taps any output sees at all, then for every size of transform the predicted
// cost of pairs of parts and of windows of lags, within the workspace allowed.
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "blocks.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

enum {
    MOST_PARTS = 4096, // more products in a row than a tile in the cache holds, and than their
                       // rounding errors allow
    LEAST_RUN = 8,     // blocks of outputs at once: enough for several threads, and
    RUN_PARTS = 2,     // at least twice the parts, which every run reads
    LARGEST_WINDOW = 1 << 20,
};

static struct blocks_layout trim(const struct shape *shape)
{
    const struct trimmed trimmed = segments_trim(shape);
    return (struct blocks_layout){.first_tap = trimmed.first_tap,
                                  .taps = trimmed.taps,
                                  .first = trimmed.first,
                                  .outputs = trimmed.outputs};
}

static size_t bins_of(const struct shape *shape, size_t n)
{
    return shape->complex_signal ? n : n / 2 + 1;
}

// Blocks of a spectrum at most, whatever the provider.
static size_t spectrum_blocks(const struct shape *shape, size_t n)
{
    return ceil_div(bins_of(shape, n) * shape->scalar_bytes, SPECTRUM_LANES_BYTES);
}

// What a thread needs to transform: samples twice, a spectrum, a provider's scratch.
static size_t transform_bytes(const struct shape *shape, size_t n)
{
    return 5 * mem_round(n * shape->sample_bytes) +
           SPECTRUM_LINE_BYTES * spectrum_blocks(shape, n);
}

static double half_fft(const struct request *request, size_t n)
{
    return cost_model_fft(request->model, request->shape->f64, request->shape->complex_signal, n) /
           2;
}

// Fewer blocks at once where the workspace is limited; false if not even one fits.
static bool choose_run(const struct request *request, struct blocks_layout *layout, size_t inputs)
{
    const struct shape *shape = request->shape;
    const size_t tiles = spectrum_blocks(shape, layout->n), group = shape->group_in;
    layout->worker = size_add(transform_bytes(shape, layout->n), parts_sum_bytes(layout->parts));
    const size_t wished =
        size_mul(layout->parts, RUN_PARTS) > LEAST_RUN ? layout->parts * RUN_PARTS : LEAST_RUN;
    for (layout->run = size_min(layout->blocks, wished); layout->run > 0;
         layout->run = layout->run * 3 / 4) {
        const size_t held = size_min(inputs, layout->run + layout->parts);
        layout->shared = size_add(size_mul(group, parts_bytes(tiles, held)),
                                  size_mul(SPECTRUM_LINE_BYTES * tiles, layout->run + 1));
        if (size_add(layout->shared, layout->worker) <= request->workspace_limit) return true;
    }
    return false;
}

// Backward weight holds both operands of an item of the batch, and sums of all cells of a group.
static bool hold_all(const struct request *request, struct blocks_layout *layout, size_t inputs)
{
    const struct shape *shape = request->shape;
    const size_t tiles = spectrum_blocks(shape, layout->n);
    const size_t operands = size_add(size_mul(shape->group_in, parts_bytes(tiles, inputs)),
                                     size_mul(shape->group_out, parts_bytes(tiles, layout->parts)));
    const size_t sums = size_mul(shape->group_in * shape->group_out, layout->blocks + 1);
    layout->worker = size_add(transform_bytes(shape, layout->n), parts_sum_bytes(layout->parts));
    layout->run = layout->blocks;
    layout->shared = size_add(operands, size_mul(sums, SPECTRUM_LINE_BYTES * tiles));
    return size_add(layout->shared, layout->worker) <= request->workspace_limit;
}

// Pairs of parts of half a transform.
static bool cut_pairs(const struct request *request, size_t n, struct blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    layout->way = BLOCKS_PAIRS;
    layout->n = n;
    layout->part = layout->hop = n / 2;
    layout->parts = ceil_div(layout->taps, layout->part);
    layout->blocks = ceil_div(layout->outputs, layout->hop);
    if (layout->parts > MOST_PARTS) return false;
    const size_t reached = size_add(layout->blocks, layout->parts);
    const size_t inputs =
        size_min(segments_inside(layout->first, layout->part, shape->axis[0].size).count, reached);
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    if (!(weight ? hold_all : choose_run)(request, layout, inputs)) return false;
    const double pairs =
        fmin((double)(layout->blocks + 1) * (double)size_min(layout->parts, inputs),
             (double)layout->parts * (double)inputs);
    const double cells = (double)(shape->out_channels * shape->group_in),
                 bins = (double)bins_of(shape, n);
    const double batch = (double)shape->batch,
                 results = weight ? cells : batch * (double)shape->out_channels;
    // Of a filter the taps' transforms are there already, unless it is used once; gy is transformed
    // with every call.
    const size_t others = weight || shape_lone(shape) ? shape->out_channels * layout->parts : 0;
    const double operands = (double)(shape->in_channels * inputs + others);
    const double transforms = batch * operands + results * (double)layout->blocks;
    const size_t spectra = size_mul(shape->out_channels * shape->group_in,
                                    parts_bytes(spectrum_blocks(shape, n), layout->parts));
    const bool far = size_add(weight ? 0 : spectra, layout->shared) > request->model->shared_bytes;
    const double move =
        (double)n * (shape->complex_signal ? 2 : 1) * (far ? costs->copy_far : costs->copy);
    layout->filter = weight ? 0 : spectra;
    // A transform's samples and its spectrum are moved; for their sums the parts of the taps, what
    // is brought together, and with several channels what each adds.
    const double added = shape->group_in > 1 ? 3 * batch * cells * (double)layout->blocks : 0;
    const double sums =
        results * (double)layout->blocks + batch * cells * (double)layout->parts + added;
    layout->seconds = transforms * (half_fft(request, n) + 2 * move) + sums * move +
                      batch * cells * pairs * bins * costs->product[COST_FAR][2] +
                      memory_seconds(request->model, shape) +
                      fresh_seconds(request->model, shape, size_add(spectra, layout->shared));
    layout->flops = transforms * (shape->complex_signal ? 5 : 2.5) * (double)n * log2((double)n) +
                    8 * batch * cells * pairs * bins;
    return true;
}

// Windows of outputs; every part is transformed for each.
static bool cut_lags(const struct request *request, size_t n, struct blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    layout->way = BLOCKS_LAGS;
    layout->n = n;
    layout->hop = size_min(layout->outputs, n / 2);
    layout->part = size_min(n - layout->hop + 1, layout->taps);
    layout->parts = layout->part ? ceil_div(layout->taps, layout->part) : 0;
    layout->blocks = ceil_div(layout->outputs, layout->hop);
    layout->run = 1;
    const size_t spectrum = SPECTRUM_LINE_BYTES * spectrum_blocks(shape, n);
    layout->worker = transform_bytes(shape, n) + (2 * LAGS_GROUP + 1) * spectrum;
    layout->shared = (LAGS_RUNS + LAGS_LEVELS) * spectrum;
    if (size_add(layout->shared, layout->worker) > request->workspace_limit) return false;
    const double cells = (double)(shape->out_channels * shape->group_in),
                 bins = (double)bins_of(shape, n);
    const double terms = cells * (double)layout->parts * (double)layout->blocks;
    layout->filter = size_mul(size_mul((size_t)cells, layout->parts), spectrum);
    // Both operands are transformed where a call reads the taps themselves; a filter saves one of
    // the two.
    layout->seconds =
        (double)shape->batch *
            (terms * (2 * half_fft(request, n) + bins * costs->product[COST_NEAR][0]) +
             (double)(shape->out_channels * layout->blocks) * half_fft(request, n)) +
        memory_seconds(request->model, shape);
    layout->flops =
        (double)shape->batch * terms *
        (2 * (shape->complex_signal ? 5 : 2.5) * (double)n * log2((double)n) + 8 * bins);
    return true;
}

// Parts that the caller imposes; the cost is that of the products in time or of the transforms of
// the pairs.
static bool cut_divisions(const struct request *request, struct blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const struct axis *axis = &shape->axis[0];
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const struct partita_parts *parts = &request->parts;
    layout->way = BLOCKS_DIVISIONS;
    layout->taps = axis->span, layout->first_tap = 0,
    layout->first = causal_first(axis); // parts begin where they do
    layout->part = parts->taps;
    layout->signal_part = parts->signal;
    layout->hop = parts->taps + parts->signal - 1;
    layout->n = parts->in_time ? 0 : fft_good_size(layout->hop);
    if (!layout->n && !parts->in_time) return false;
    layout->parts = ceil_div(layout->taps, layout->part);
    layout->blocks = ceil_div(layout->outputs, size_min(parts->taps, parts->signal));
    layout->run = 1;
    const double cells = (double)(shape->out_channels * shape->group_in),
                 bins = (double)bins_of(shape, layout->n);
    const size_t signals = ceil_div(axis->size, layout->signal_part);
    const double pairs = (double)layout->parts * (double)signals * cells;
    const size_t spectrum = SPECTRUM_LINE_BYTES * spectrum_blocks(shape, layout->n);
    const double products = (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
    layout->worker = 3 * mem_round(layout->hop * shape->sample_bytes);
    if (layout->n) layout->worker = transform_bytes(shape, layout->n) + 3 * spectrum;
    layout->shared = layout->n ? size_mul(shape->group_in, size_mul(signals, spectrum)) : 0;
    layout->filter = size_mul(
        shape->out_channels * shape->group_in,
        size_mul(layout->parts, layout->n ? spectrum : mem_round(layout->part * shape->tap_bytes)));
    const double transforms =
        (double)(shape->in_channels * signals) + (double)(shape->out_channels * layout->blocks);
    const double in_time = pairs * products * (double)layout->part * (double)layout->hop;
    layout->seconds =
        (double)shape->batch *
        (layout->n ? transforms * half_fft(request, layout->n) + pairs * bins * costs->cmac_far
                   : in_time * costs->fma);
    layout->flops = (double)shape->batch *
                    (layout->n ? transforms * 2.5 * (double)layout->n * log2((double)layout->n) +
                                     8 * pairs * bins
                               : 2 * in_time);
    return true;
}

typedef bool cut_fn(const struct request *request, size_t n, struct blocks_layout *layout);

// Of sizes, tried from the smallest on, that cost about as little as the cheapest the first one
// stays: threads share a cache, and the model is no finer than that.
static void consider(const struct request *request, cut_fn *cut, size_t n,
                     struct blocks_layout *best)
{
    static const double about = 0.9;
    struct blocks_layout layout = trim(request->shape);
    if (cut(request, n, &layout) && (!best->n || layout.seconds < about * best->seconds))
        *best = layout;
}

bool blocks_search(const struct request *request, int way, struct blocks_layout *ret, char *reason,
                   size_t reason_size)
{
    const struct blocks_layout trimmed = trim(request->shape);
    const size_t taps = trimmed.taps ? trimmed.taps : 1;
    const struct partita_parts *parts = &request->parts;
    *ret = (struct blocks_layout){0};
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    if (parts->taps && (parts->taps != parts->signal || parts->in_time ||
                        fft_good_size(2 * parts->taps) != 2 * parts->taps)) {
        const size_t stride = request->shape->axis[0].stride;
        *ret = trimmed;
        if (weight) {
            snprintf(reason, reason_size, "backward weight needs equal parts of half a transform");
            return false;
        }
        if (stride == 1 && cut_divisions(request, ret)) return true;
        if (stride > 1)
            snprintf(reason, reason_size, "parts of given sizes need a stride of 1, not %zu",
                     stride);
        else
            snprintf(reason, reason_size, "no transform holds parts of %zu and %zu", parts->taps,
                     parts->signal);
        return false;
    }
    if (parts->taps) {
        consider(request, cut_pairs, 2 * parts->taps, ret);
    } else {
        // Beyond these sizes one part holds everything.
        // (Few taps of a gradient take long parts: windows of lags are not there to help.)
        const size_t longest =
            weight && taps > trimmed.outputs ? taps : size_min(taps, trimmed.outputs);
        const size_t good = fft_good_size(2 * longest), pairs = good ? good : SIZE_MAX;
        const size_t lags = fft_good_size(size_min(taps + trimmed.outputs, LARGEST_WINDOW));
        const size_t most = !weight && lags > pairs ? lags : pairs, given = request->transform;
        for (size_t n = fft_good_size(given); n && n <= (given ? given : most);
             n = fft_good_size(n + 1)) {
            if (n <= pairs && way != BLOCKS_LAGS) consider(request, cut_pairs, n, ret);
            if (n <= lags && !weight) consider(request, cut_lags, n, ret);
        }
    }
    if (!ret->n)
        snprintf(reason, reason_size, "no transform size fits taps, outputs and workspace limit");
    return ret->n > 0;
}
