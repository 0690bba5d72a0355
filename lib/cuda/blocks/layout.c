// SPDX-License-Identifier: MIT
// How to split: for every number of points the predicted cost of pairs of parts and of windows of
// lags, within the workspace allowed.
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "blocks.h"
#include "cuda/device/rates.h"

enum {
    MAX_PARTS = 4096,    // rounding errors allow no more products in a row
    TARGET_CHUNKS = 528, // of terms of lags, in all: thread blocks for a few rounds of a device
};

// In multiply-adds of one thread, counted in the kernels' inner loops; not measured.
static const double PASS_SLOTS = 20;   // a point in a pass: of 16 points 170 additions and products
                                       // in the sum, 100 by twiddles, and the exchange
static const double EDGE_SLOTS = 10;   // a point's load or store, with its address
static const double PRODUCT_SLOTS = 6; // four multiply-adds and a share of two loads
static const double LOAD_SLOTS = 4;    // a load that serves one product

static double seconds_of(const struct cuda_rates *rates, double slots, double bytes)
{
    return fmax(slots / rates->fma, bytes / rates->bytes);
}

// One transform whose points come from or go to a caller's array. Long ones go through memory twice
// more each way, three times beyond what two passes reach.
static double transform_seconds(const struct request *request, double points)
{
    const struct cuda_rates rates = cuda_rates_of(request);
    const size_t max = cuda_fft_max(request->shape->f64);
    const double passes = 1 + ceil((log2(points) - 4) / 4); // by 16, but for one
    double sweeps = points <= 0x1p24 ? 4 : 6;
    if (points <= (double)max) sweeps = 0;
    return seconds_of(&rates, points * (EDGE_SLOTS + PASS_SLOTS * passes),
                      points * (request->shape->f64 ? 16 : 8) * (1.5 + sweeps));
}

static double transform_flops(double points)
{
    return 5 * points * log2(points);
}

static size_t planes_of(const struct shape *shape)
{
    return shape->complex_signal ? 2 : 1;
}

static size_t spectra_bytes(const struct shape *shape, const struct cuda_blocks_layout *layout,
                            size_t spectra)
{
    return cuda_parts_bytes(spectra, planes_of(shape), layout->points, layout->transforms,
                            shape->f64);
}

// Blocks of x that the outputs in work see at most; of intervals all that any of them sees.
static size_t max_inputs(const struct shape *shape, const struct cuda_blocks_layout *layout)
{
    if (layout->method == CUDA_BLOCKS_DIVISIONS) {
        const struct part_schedule divisions = cuda_blocks_divisions(shape, layout);
        return part_schedule_signals(&divisions).count;
    }
    const size_t all =
        segments_inside(layout->trimmed.first, layout->part, shape->axis[0].size).count;
    return size_min(all, layout->unit_blocks + layout->parts);
}

struct cuda_pairs_bytes cuda_pairs_bytes(const struct shape *shape,
                                         enum partita_direction direction,
                                         const struct cuda_blocks_layout *layout)
{
    const bool weight = direction == PARTITA_BACKWARD_WEIGHT;
    const size_t paths = size_mul(shape->out_channels, shape->group_in);
    const size_t in = size_mul(layout->units, weight ? shape->in_channels : shape->group_in);
    const size_t out = weight ? paths : size_mul(layout->units, shape->group_out);
    const size_t taps = weight ? size_mul(layout->units, shape->out_channels) : paths;
    return (struct cuda_pairs_bytes){
        .inputs = spectra_bytes(shape, layout, size_mul(in, max_inputs(shape, layout))),
        .taps = spectra_bytes(shape, layout, size_mul(taps, layout->parts)),
        .sums = spectra_bytes(shape, layout, size_mul(out, layout->unit_blocks)),
    };
}

static size_t pairs_workspace(const struct shape *shape, enum partita_direction direction,
                              const struct cuda_blocks_layout *layout)
{
    const struct cuda_pairs_bytes bytes = cuda_pairs_bytes(shape, direction, layout);
    const size_t taps = direction == PARTITA_BACKWARD_WEIGHT ? mem_round(bytes.taps) : 0;
    // What cuFFT wants is known later; so much at most for powers of two.
    const size_t area = layout->points <= cuda_fft_max(shape->f64)
                            ? 0
                            : layout->points * layout->transforms * 2 * shape->scalar_bytes;
    return size_add(size_add(mem_round(bytes.inputs), mem_round(bytes.sums)), size_add(taps, area));
}

// Sets what is in work at once: fewer units, then fewer blocks, where the workspace is limited;
// false if not even one fits.
static bool choose_units(const struct request *request, struct cuda_blocks_layout *layout)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const size_t limit = size_min(request->workspace_limit, device->memory / 2);
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    layout->transforms =
        cuda_parts_transforms(layout->points, shape->f64, size_min(layout->parts, layout->blocks));
    layout->unit_blocks = layout->blocks;
    layout->units = weight ? shape->batch : shape->batch * shape->groups;
    for (;;) {
        layout->workspace = pairs_workspace(shape, request->direction, layout);
        if (layout->workspace <= limit) return true;
        if (layout->units > 1) layout->units = layout->units * 3 / 4;
        else if (layout->unit_blocks > 1 && !weight)
            layout->unit_blocks = layout->unit_blocks * 3 / 4;
        else return false;
    }
}

// What pairs or divisions do, counted.
struct counted {
    double transforms, products; // transforms of all planes; products of bins
    double slots, bytes;         // of products: multiply-adds, moved
    double launches;             // beside those of long transforms
};

static bool fill_costs(const struct request *request, const struct counted *counted,
                       struct cuda_blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const struct cuda_rates rates = cuda_rates_of(request);
    const double points = (double)layout->points;
    const double calls = layout->points <= cuda_fft_max(shape->f64)
                             ? 0
                             : 3 * counted->transforms / (double)layout->transforms;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    layout->filter = weight ? 0 : cuda_pairs_bytes(shape, request->direction, layout).taps;
    layout->seconds = (counted->launches + calls) * CUDA_LAUNCH_SECONDS +
                      counted->transforms * transform_seconds(request, points) +
                      seconds_of(&rates, counted->slots, counted->bytes);
    layout->flops = counted->transforms * transform_flops(points) + 8 * counted->products;
    return counted->transforms * points / 16 < CUDA_MAX_BLOCKS;
}

static bool lay_out_pairs(const struct request *request, size_t points,
                          struct cuda_blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    layout->method = CUDA_BLOCKS_PAIRS;
    layout->n = 2 * points;
    layout->points = layout->part = layout->hop = points;
    layout->parts = ceil_div(layout->trimmed.taps, points);
    layout->blocks = ceil_div(layout->trimmed.outputs, points);
    if (layout->parts > MAX_PARTS || !choose_units(request, layout)) return false;
    const double inputs =
        (double)segments_inside(layout->trimmed.first, points, shape->axis[0].size).count;
    const double paths = (double)(shape->out_channels * shape->group_in);
    const double batch = (double)shape->batch, blocks = (double)layout->blocks;
    const double parts = (double)layout->parts, planes = (double)planes_of(shape);
    const double bins = planes * (double)points;
    const double results = weight ? paths : batch * (double)shape->out_channels;
    // What blocks in work at different times have in common is transformed for each.
    const double rounds = ceil(blocks / (double)layout->unit_blocks);
    const double of_inputs = fmin(inputs + parts * (rounds - 1), blocks * inputs);
    const double of_taps = weight ? (double)shape->out_channels * parts : 0;
    const double pairs = fmin((blocks + 1) * fmin(parts, inputs), parts * inputs);
    struct counted counted = {
        .transforms = planes * (batch * ((double)shape->in_channels * of_inputs + of_taps) +
                                results * blocks),
        .products = batch * paths * pairs * bins,
        .launches =
            4 * (weight ? ceil(batch / (double)layout->units)
                        : ceil(batch * (double)shape->groups / (double)layout->units) * rounds),
    };
    counted.slots = counted.products * PRODUCT_SLOTS;
    counted.bytes = (counted.transforms * (double)points + batch * paths * parts * bins) *
                    (shape->f64 ? 16 : 8);
    return fill_costs(request, &counted, layout);
}

// Parts of two sizes that the caller imposes, with zeros behind them: what any pair holds fits two
// transforms of the larger one. They begin where the taps and the signal do.
static bool lay_out_divisions(const struct request *request, size_t points,
                              struct cuda_blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const struct axis *axis = &shape->axis[0];
    layout->method = CUDA_BLOCKS_DIVISIONS;
    layout->trimmed.first_tap = 0;
    layout->trimmed.taps = axis->span;
    layout->trimmed.first = causal_first(axis);
    layout->n = 2 * points;
    layout->points = points;
    layout->part = request->parts.taps;
    layout->signal_part = request->parts.signal;
    const struct part_schedule divisions = cuda_blocks_divisions(shape, layout);
    layout->hop = divisions.apart - 1;
    layout->parts = divisions.taps;
    layout->blocks = ceil_div(layout->trimmed.outputs, divisions.apart) + 1;
    if (!choose_units(request, layout)) return false;
    const double paths = (double)(shape->out_channels * shape->group_in);
    const double batch = (double)shape->batch, planes = (double)planes_of(shape);
    const double signals = (double)part_schedule_signals(&divisions).count;
    const double count = (double)divisions.count, intervals = count * (double)layout->blocks;
    struct counted counted = {
        .transforms =
            batch * planes *
            ((double)shape->in_channels * signals + (double)shape->out_channels * intervals),
        .products = batch * paths * (double)layout->parts * signals * planes * (double)points,
        .launches = 2 * count * ceil(batch * (double)shape->groups / (double)layout->units) *
                    ceil((double)layout->blocks / (double)layout->unit_blocks),
    };
    // Two loads a product; outputs are read and written again.
    counted.slots = counted.products * (PRODUCT_SLOTS + 2 * LOAD_SLOTS);
    counted.bytes = 2 * counted.transforms * (double)points * (shape->f64 ? 16 : 8);
    return fill_costs(request, &counted, layout);
}

// Fewer tasks, then fewer chunks at once where the workspace is limited: sums of chunks and of
// groups of them. False if not even one fits.
static bool choose_tasks(const struct request *request, size_t terms,
                         struct cuda_blocks_layout *layout)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const size_t limit = size_min(request->workspace_limit, device->memory / 2);
    const size_t spectrum = layout->points * 2 * request->shape->scalar_bytes;
    layout->chunks = terms ? size_min(terms, ceil_div(TARGET_CHUNKS, layout->tasks)) : 1;
    for (;;) {
        const size_t groups = layout->chunks > 1 ? ceil_div(layout->chunks, CUDA_LAGS_GROUP) : 0;
        layout->workspace = size_mul(size_mul(layout->tasks, layout->chunks + groups), spectrum);
        if (layout->workspace <= limit) return true;
        if (layout->tasks > 1) layout->tasks = ceil_div(layout->tasks, 2);
        else if (layout->chunks > 1) layout->chunks = ceil_div(layout->chunks, 2);
        else return false;
    }
}

// Windows of outputs; every part is transformed for each.
static bool lay_out_lags(const struct request *request, size_t points,
                         struct cuda_blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t n = shape->complex_signal ? points : 2 * points;
    const size_t paths = size_mul(shape->out_channels, shape->group_in);
    if (cuda_lags_shared(points, shape->f64) > device->shared_bytes) return false;
    layout->method = CUDA_BLOCKS_LAGS;
    layout->n = n;
    layout->points = points;
    layout->hop = size_min(layout->trimmed.outputs, n / 2);
    layout->part = layout->trimmed.taps ? size_min(n - layout->hop + 1, layout->trimmed.taps) : 1;
    layout->parts = ceil_div(layout->trimmed.taps, layout->part);
    layout->blocks = ceil_div(layout->trimmed.outputs, layout->hop);
    layout->transforms = 1;
    layout->filter = weight ? 0 : size_mul(paths, shape->axis[0].kernel * shape->tap_bytes);
    const size_t terms = size_mul(layout->parts, weight ? shape->batch : shape->group_in);
    const size_t rows = weight ? paths : shape->batch * shape->out_channels;
    const size_t tasks = layout->tasks = size_mul(rows, layout->blocks);
    if (!choose_tasks(request, terms, layout)) return false;
    const struct cuda_rates rates = cuda_rates_of(request);
    const double products = (double)tasks * (double)terms, length = (double)points;
    const double blocks = (double)layout->tasks * (double)layout->chunks;
    const double busy = fmin(1, blocks * length / CUDA_FFT_POINTS / rates.threads);
    const double transform = transform_seconds(request, length);
    layout->seconds = 4 * ceil((double)tasks / (double)layout->tasks) * CUDA_LAUNCH_SECONDS +
                      products * 2 * transform / busy + (double)tasks * transform;
    layout->flops = products * (2 * transform_flops(length) + 8 * length);
    return blocks < CUDA_MAX_BLOCKS;
}

typedef bool lay_out_fn(const struct request *request, size_t points,
                        struct cuda_blocks_layout *layout);

static void try_points(const struct request *request, lay_out_fn *lay_out, size_t points,
                       struct cuda_blocks_layout *best)
{
    struct cuda_blocks_layout layout = {.trimmed = segments_trim(request->shape)};
    if (lay_out(request, points, &layout) && (!best->n || layout.seconds < best->seconds))
        *best = layout;
}

// Parts of sizes that the caller imposes.
static bool search_imposed(const struct request *request, struct cuda_blocks_layout *ret,
                           char *reason, size_t size)
{
    const struct partita_parts *parts = &request->parts;
    const size_t larger = size_max(parts->taps, parts->signal), points = cuda_fft_size(larger);
    const size_t stride = request->shape->axis[0].stride;
    const bool pairs = parts->taps == parts->signal && points == larger;
    if (parts->in_time) snprintf(reason, size, "sums pairs of parts by transforms, not in time");
    else if (!points)
        snprintf(reason, size, "no transform holds parts of %zu and %zu", parts->taps,
                 parts->signal);
    else if (points > cuda_fft_max(request->shape->f64) && !cuda_fft_has_long())
        snprintf(reason, size, "parts of %zu and %zu need cuFFT, which is not here", parts->taps,
                 parts->signal);
    else if (!pairs && request->direction == PARTITA_BACKWARD_WEIGHT)
        snprintf(reason, size, "backward weight needs equal parts of a power of two");
    else if (!pairs && stride > 1)
        snprintf(reason, size, "parts of given sizes need a stride of 1, not %zu", stride);
    else {
        try_points(request, pairs ? lay_out_pairs : lay_out_divisions, points, ret);
        if (ret->n) return true;
        snprintf(reason, size, "parts of %zu and %zu do not fit the workspace limit", parts->taps,
                 parts->signal);
    }
    return false;
}

bool cuda_blocks_search(const struct request *request, int method, struct cuda_blocks_layout *ret,
                        char *reason, size_t size)
{
    const struct trimmed trimmed = segments_trim(request->shape);
    const size_t in_block = cuda_fft_max(request->shape->f64), given = request->transform;
    // One part of this size holds everything.
    const size_t whole = size_max(trimmed.taps, trimmed.outputs);
    *ret = (struct cuda_blocks_layout){0};
    if (request->parts.taps) return search_imposed(request, ret, reason, size);
    for (size_t points = CUDA_FFT_POINTS; points; points = cuda_fft_size(points + 1)) {
        if (points > in_block && !cuda_fft_has_long()) break;
        const size_t window = request->shape->complex_signal ? points : 2 * points;
        if (method != CUDA_BLOCKS_LAGS && (!given || given == 2 * points))
            try_points(request, lay_out_pairs, points, ret);
        if (method != CUDA_BLOCKS_PAIRS && points <= in_block && (!given || given == window))
            try_points(request, lay_out_lags, points, ret);
        if (points >= whole) break;
    }
    if (!ret->n) snprintf(reason, size, "no transform fits taps, outputs and workspace limit");
    assert(!ret->n || ret->hop > 0);
    return ret->n > 0;
}
