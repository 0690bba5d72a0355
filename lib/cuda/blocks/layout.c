// SPDX-License-Identifier: MIT
// How to cut: for every number of points the predicted cost of pairs of parts and of windows of
// lags, within the workspace allowed.
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "blocks.h"
#include "cuda/device/cufft.h"

enum {
    MOST_PARTS = 4096, // more products in a row than their rounding errors allow
    ENOUGH_RUNS =
        528, // of parts of windows of lags, in all: thread blocks for all processors, a few rounds
    FULL_THREADS = 512, // of a processor, from which on it is busy
};

// Times in multiply-adds of one thread, counted from the kernels' inner loops; not measured.
static const double PASS_SLOTS = 20;   // a point in one pass of a transform: of 16 points 170
                                       // additions and products in the sum, 100 in turning, and
                                       // passing them on through shared memory
static const double EDGE_SLOTS = 10;   // a point's loading or storing, with its address
static const double PRODUCT_SLOTS = 6; // four multiply-adds and a share of two loads
static const double LOAD_SLOTS = 4;    // a load that serves one product
static const double LAUNCH = 3e-6;     // seconds to queue a kernel

static const double MOST_BLOCKS = 2147483647.; // of one launch

// What a device does in a second.
struct rates {
    double slots, bytes;
};

static struct rates rates_of(const struct request *request)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    return (struct rates){device->flops / 2 / (request->shape->f64 ? device->f64_share : 1),
                          device->bytes};
}

static double seconds_of(const struct rates *rates, double slots, double bytes)
{
    return fmax(slots / rates->slots, bytes / rates->bytes);
}

// Passes of a transform: by 16 each but for one, which divides by what is left over.
static double passes_of(double points)
{
    return 1 + ceil((log2(points) - 4) / 4);
}

// One transform of so many points, its points coming from or going to a caller's array. Long ones
// go through memory twice more each way, three times beyond what two passes reach.
static double transform_seconds(const struct request *request, double points)
{
    const struct rates rates = rates_of(request);
    const size_t most = cuda_fft_most(request->shape->f64);
    const double point_bytes = request->shape->f64 ? 16 : 8;
    const double sweeps = points <= (double)most ? 0 : points <= 0x1p24 ? 4 : 6;
    return seconds_of(&rates, points * (EDGE_SLOTS + PASS_SLOTS * passes_of(points)),
                      points * point_bytes * (1.5 + sweeps));
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

// Blocks of x that a run of outputs sees at most; of intervals all that any of them sees.
static size_t most_inputs(const struct shape *shape, const struct cuda_blocks_layout *layout)
{
    if (layout->way == CUDA_BLOCKS_DIVISIONS) {
        const struct part_schedule divisions = cuda_blocks_divisions(shape, layout);
        return part_schedule_signals(&divisions).count;
    }
    const size_t all =
        segments_inside(layout->trimmed.first, layout->part, shape->axis[0].size).count;
    return size_min(all, layout->run + layout->parts);
}

struct cuda_pairs_bytes cuda_pairs_bytes(const struct shape *shape,
                                         enum partita_direction direction,
                                         const struct cuda_blocks_layout *layout)
{
    const bool weight = direction == PARTITA_BACKWARD_WEIGHT;
    const size_t cells = size_mul(shape->out_channels, shape->group_in);
    const size_t in = size_mul(layout->units, weight ? shape->in_channels : shape->group_in);
    const size_t out = weight ? cells : size_mul(layout->units, shape->group_out);
    const size_t taps = weight ? size_mul(layout->units, shape->out_channels) : cells;
    return (struct cuda_pairs_bytes){
        .inputs = spectra_bytes(shape, layout, size_mul(in, most_inputs(shape, layout))),
        .taps = spectra_bytes(shape, layout, size_mul(taps, layout->parts)),
        .sums = spectra_bytes(shape, layout, size_mul(out, layout->run)),
    };
}

static size_t pairs_workspace(const struct shape *shape, enum partita_direction direction,
                              const struct cuda_blocks_layout *layout)
{
    const struct cuda_pairs_bytes bytes = cuda_pairs_bytes(shape, direction, layout);
    const size_t taps = direction == PARTITA_BACKWARD_WEIGHT ? mem_round(bytes.taps) : 0;
    // What cuFFT wants to work in is known when it is asked; so much at most for transforms of
    // powers of two.
    const size_t area = layout->points <= cuda_fft_most(shape->f64)
                            ? 0
                            : layout->points * layout->transforms * 2 * shape->scalar_bytes;
    return size_add(size_add(mem_round(bytes.inputs), mem_round(bytes.sums)), size_add(taps, area));
}

// Fewer units, then fewer blocks at once where the workspace is limited; false if not even one
// fits.
static bool choose_run(const struct request *request, size_t limit,
                       struct cuda_blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    layout->run = layout->blocks;
    layout->units = weight ? shape->batch : shape->batch * shape->groups;
    for (;;) {
        layout->workspace = pairs_workspace(shape, request->direction, layout);
        if (layout->workspace <= limit) return true;
        if (layout->units > 1) layout->units = layout->units * 3 / 4;
        else if (layout->run > 1 && !weight) layout->run = layout->run * 3 / 4;
        else return false;
    }
}

static bool cut_pairs(const struct request *request, size_t limit, size_t points,
                      struct cuda_blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const struct rates rates = rates_of(request);
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    layout->way = CUDA_BLOCKS_PAIRS;
    layout->n = 2 * points;
    layout->points = layout->part = layout->hop = points;
    layout->parts = ceil_div(layout->trimmed.taps, points);
    layout->blocks = ceil_div(layout->trimmed.outputs, points);
    layout->transforms =
        cuda_parts_transforms(points, shape->f64, size_min(layout->parts, layout->blocks));
    if (layout->parts > MOST_PARTS || !choose_run(request, limit, layout)) return false;
    const size_t inputs =
        segments_inside(layout->trimmed.first, layout->part, shape->axis[0].size).count;
    const double cells = (double)(shape->out_channels * shape->group_in),
                 batch = (double)shape->batch;
    const double results = weight ? cells : batch * (double)shape->out_channels,
                 blocks = (double)layout->blocks;
    // What runs have in common is transformed for each.
    const double again = (double)layout->parts * (ceil(blocks / (double)layout->run) - 1);
    const double operands =
        (double)shape->in_channels * fmin((double)inputs + again, blocks * (double)inputs) +
        (weight ? (double)(shape->out_channels * layout->parts) : 0);
    const double planes = (double)planes_of(shape),
                 transforms = planes * (batch * operands + results * blocks);
    const double pairs = fmin((blocks + 1) * (double)size_min(layout->parts, inputs),
                              (double)(layout->parts * inputs));
    const double bins = planes * (double)points, products = batch * cells * pairs * bins;
    const double moved =
        (transforms * (double)points + batch * cells * (double)layout->parts * bins) *
        (shape->f64 ? 16 : 8);
    const double chunks = weight ? ceil(batch / (double)layout->units)
                                 : ceil(batch * (double)shape->groups / (double)layout->units) *
                                       ceil(blocks / (double)layout->run);
    const double calls =
        points <= cuda_fft_most(shape->f64) ? 0 : 3 * transforms / (double)layout->transforms;
    layout->filter = weight ? 0 : cuda_pairs_bytes(shape, request->direction, layout).taps;
    layout->seconds = (4 * chunks + calls) * LAUNCH +
                      transforms * transform_seconds(request, (double)points) +
                      seconds_of(&rates, products * PRODUCT_SLOTS, moved);
    layout->flops = transforms * transform_flops((double)points) + 8 * products;
    return transforms * (double)points / 16 < MOST_BLOCKS;
}

static size_t lines_of(const struct request *request)
{
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    return weight ? shape->out_channels * shape->group_in : shape->batch * shape->out_channels;
}

// Windows of outputs; every part is transformed for each.
static bool cut_lags(const struct request *request, size_t limit, size_t points,
                     struct cuda_blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t n = shape->complex_signal ? points : 2 * points, lines = lines_of(request);
    if (cuda_lags_shared(points, shape->f64) > device->shared_bytes) return false;
    layout->way = CUDA_BLOCKS_LAGS;
    layout->n = n;
    layout->points = points;
    layout->hop = size_min(layout->trimmed.outputs, n / 2);
    layout->part = layout->trimmed.taps ? size_min(n - layout->hop + 1, layout->trimmed.taps) : 1;
    layout->parts = ceil_div(layout->trimmed.taps, layout->part);
    layout->blocks = ceil_div(layout->trimmed.outputs, layout->hop);
    layout->transforms = 1;
    const size_t elements = size_mul(layout->parts, weight ? shape->batch : shape->group_in);
    const size_t items = size_mul(lines, layout->blocks), wished = ceil_div(ENOUGH_RUNS, items);
    layout->runs = elements ? size_min(elements, wished) : 1;
    layout->items = items;
    const size_t spectrum = points * 2 * shape->scalar_bytes;
    for (;;) { // sums of runs and of groups of runs
        const size_t sums =
            layout->runs + (layout->runs > 1 ? ceil_div(layout->runs, CUDA_LAGS_GROUP) : 0);
        layout->workspace = size_mul(size_mul(layout->items, sums), spectrum);
        if (layout->workspace <= limit) break;
        if (layout->items > 1) layout->items = ceil_div(layout->items, 2);
        else if (layout->runs > 1) layout->runs = ceil_div(layout->runs, 2);
        else return false;
    }
    const double products = (double)items * (double)elements, length = (double)points;
    const double calls = ceil((double)items / (double)layout->items);
    layout->filter = size_mul(size_mul(shape->out_channels, shape->group_in),
                              shape->axis[0].kernel * shape->tap_bytes);
    if (weight) layout->filter = 0;
    const double threads = (double)layout->items * (double)layout->runs * length / CUDA_FFT_POINTS;
    const double busy = fmin(1, threads / ((double)device->processors * FULL_THREADS));
    layout->seconds = 4 * calls * LAUNCH +
                      products * 2 * transform_seconds(request, length) / busy +
                      (double)items * transform_seconds(request, length);
    layout->flops = products * (2 * transform_flops(length) + 8 * length);
    return (double)layout->items * (double)layout->runs < MOST_BLOCKS;
}

typedef bool cut_fn(const struct request *request, size_t limit, size_t points,
                    struct cuda_blocks_layout *layout);

static void consider(const struct request *request, cut_fn *cut, size_t points,
                     struct cuda_blocks_layout *best)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const size_t limit = size_min(request->workspace_limit, device->memory / 2);
    struct cuda_blocks_layout layout = {.trimmed = segments_trim(request->shape)};
    if (cut(request, limit, points, &layout) && (!best->n || layout.seconds < best->seconds))
        *best = layout;
}

// Parts of two sizes that the caller imposes, with zeros behind them: what any pair holds fits two
// transforms of the larger one. They begin where the taps and the signal do.
static bool cut_divisions(const struct request *request, size_t limit, size_t points,
                          struct cuda_blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const struct axis *axis = &shape->axis[0];
    const struct rates rates = rates_of(request);
    layout->way = CUDA_BLOCKS_DIVISIONS;
    layout->trimmed.first_tap = 0, layout->trimmed.taps = axis->span,
    layout->trimmed.first = causal_first(axis);
    layout->n = 2 * points;
    layout->points = points;
    layout->part = request->parts.taps, layout->signal_part = request->parts.signal;
    const struct part_schedule divisions = cuda_blocks_divisions(shape, layout);
    layout->hop = divisions.apart - 1;
    layout->parts = divisions.taps;
    layout->blocks = ceil_div(layout->trimmed.outputs, divisions.apart) + 1;
    layout->transforms =
        cuda_parts_transforms(points, shape->f64, size_min(layout->parts, layout->blocks));
    if (!choose_run(request, limit, layout)) return false;
    const double cells = (double)(shape->out_channels * shape->group_in),
                 batch = (double)shape->batch;
    const double signals = (double)part_schedule_signals(&divisions).count,
                 count = (double)divisions.count;
    const double intervals = count * (double)layout->blocks,
                 bins = (double)(planes_of(shape) * points);
    const double transforms =
        batch * (double)planes_of(shape) *
        ((double)shape->in_channels * signals + (double)shape->out_channels * intervals);
    const double products = batch * cells * (double)layout->parts * signals * bins;
    const double runs = ceil(batch * (double)shape->groups / (double)layout->units) *
                        ceil((double)layout->blocks / (double)layout->run);
    const double calls =
        points <= cuda_fft_most(shape->f64) ? 0 : 3 * transforms / (double)layout->transforms;
    layout->filter = cuda_pairs_bytes(shape, request->direction, layout).taps;
    // Two loads a product, and outputs that are read and written again.
    layout->seconds = (2 * runs * count + calls) * LAUNCH +
                      transforms * transform_seconds(request, (double)points) +
                      seconds_of(&rates, products * (PRODUCT_SLOTS + 2 * LOAD_SLOTS),
                                 2 * transforms * (double)points * (shape->f64 ? 16 : 8));
    layout->flops = transforms * transform_flops((double)points) + 8 * products;
    return transforms * (double)points / 16 < MOST_BLOCKS;
}

// Parts of sizes that the caller imposes.
static bool search_imposed(const struct request *request, struct cuda_blocks_layout *ret,
                           char *reason, size_t size)
{
    const struct partita_parts *parts = &request->parts;
    const size_t larger = parts->taps > parts->signal ? parts->taps : parts->signal,
                 points = cuda_fft_size(larger);
    const size_t stride = request->shape->axis[0].stride;
    const bool pairs = parts->taps == parts->signal && points == larger;
    if (parts->in_time) snprintf(reason, size, "sums pairs of parts by transforms, not in time");
    else if (!points)
        snprintf(reason, size, "no transform holds parts of %zu and %zu", parts->taps,
                 parts->signal);
    else if (points > cuda_fft_most(request->shape->f64) && !cufft_open())
        snprintf(reason, size, "parts of %zu and %zu need cuFFT, which is not here", parts->taps,
                 parts->signal);
    else if (!pairs && request->direction == PARTITA_BACKWARD_WEIGHT)
        snprintf(reason, size, "backward weight needs equal parts of a power of two");
    else if (!pairs && stride > 1)
        snprintf(reason, size, "parts of given sizes need a stride of 1, not %zu", stride);
    else {
        consider(request, pairs ? cut_pairs : cut_divisions, points, ret);
        if (ret->n) return true;
        snprintf(reason, size, "parts of %zu and %zu do not fit the workspace limit", parts->taps,
                 parts->signal);
    }
    return false;
}

bool cuda_blocks_search(const struct request *request, int way, struct cuda_blocks_layout *ret,
                        char *reason, size_t size)
{
    const struct trimmed trimmed = segments_trim(request->shape);
    const size_t within = cuda_fft_most(request->shape->f64), given = request->transform;
    // Beyond this size one part holds everything.
    const size_t longest = trimmed.taps > trimmed.outputs ? trimmed.taps : trimmed.outputs;
    *ret = (struct cuda_blocks_layout){0};
    if (request->parts.taps) return search_imposed(request, ret, reason, size);
    for (size_t points = CUDA_FFT_POINTS; points; points = cuda_fft_size(points + 1)) {
        if (points > within && !cufft_open()) break;
        const size_t window = request->shape->complex_signal ? points : 2 * points;
        if (way != CUDA_BLOCKS_LAGS && (!given || given == 2 * points))
            consider(request, cut_pairs, points, ret);
        if (way != CUDA_BLOCKS_PAIRS && points <= within && (!given || given == window))
            consider(request, cut_lags, points, ret);
        if (points >= longest) break;
    }
    if (!ret->n) snprintf(reason, size, "no transform fits taps, outputs and workspace limit");
    return ret->n > 0;
}
