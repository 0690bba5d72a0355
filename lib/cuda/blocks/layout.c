// SPDX-License-Identifier: MIT
// How to split: the search of geometry/block_search.h with the device's rates, and how much of it
// is in work at once within the workspace.
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "blocks.h"
#include "cuda/device/rates.h"
#include "cuda/kernels/lags.h"

// Costs of this engine beside the device's rates, in multiply-adds of one thread that were
// counted in the kernels' inner loops, not measured; and its limits.
static const struct {
    double pass;           // a point in a pass of a transform
    double edge;           // a point's load or store, with its address
    double product;        // of a bin in pairs: four multiply-adds and a share of two loads
    double imposed;        // of a bin in imposed blocks: with both loads
    double moved;          // share of the search's moves that are not the transforms' own
    double launches;       // for the units that are computed together
    size_t target_threads; // of chunks of lags: a few rounds of thread blocks of a device
} BLOCKS = {
    .pass = 20,
    .edge = 10,
    .product = 6,
    .imposed = 14,
    .moved = 0.45,
    .launches = 4,
    .target_threads = 528,
};

// At most so much, unless a single unit or window needs more: this much work fills any device. A
// unit is computed so many blocks at a time that at most an eighth of its blocks is transformed
// again.
static const size_t MAX_WORKSPACE = 1 << 30, MIN_IN_FLIGHT = 8; // for each block of taps

size_t cuda_blocks_points(const struct shape *shape, const struct block_layout *layout)
{
    return layout->method == BLOCK_LAGS && shape->complex_signal ? layout->n : layout->n / 2;
}

size_t cuda_blocks_batch(const struct shape *shape, const struct block_layout *layout)
{
    return cuda_blocks_fft_batch(cuda_blocks_points(shape, layout), shape->f64,
                                 size_min(layout->tap_blocks, layout->blocks));
}

static size_t blocks_good_size(const struct signal_rates *rates, size_t n)
{
    const struct request *request = rates->context;
    const size_t points = cuda_fft_size(ceil_div(n, 2));
    return points <= cuda_fft_max(request->shape->f64) || cuda_fft_has_long() ? 2 * points : 0;
}

// Transforms whose points come from or go to a caller's array: n real samples are half as many
// points, complex ones two planes. Long ones go through memory twice more each way, three times
// beyond the reach of two passes.
static double blocks_transform_seconds(const struct signal_rates *rates, size_t n, double count)
{
    const struct request *request = rates->context;
    const struct cuda_rates device = cuda_rates_of(request);
    const bool f64 = request->shape->f64;
    const double points = (double)(n / 2), planes = request->shape->complex_signal ? 2 : 1;
    const double passes = 1 + ceil((log2(points) - 4) / 4); // by 16, but for one
    double sweeps = 1.5, calls = 0;
    if (n / 2 > cuda_fft_max(f64)) {
        sweeps += points <= 0x1p24 ? 4 : 6;
        calls = 3 / (double)cuda_blocks_fft_batch(n / 2, f64, SIZE_MAX);
    }
    const double computing = points * (BLOCKS.edge + BLOCKS.pass * passes) / device.fma;
    const double moving = points * (f64 ? 16 : 8) * sweeps / device.bytes;
    return count * planes * (calls * device.launch + fmax(computing, moving));
}

static size_t cuda_blocks_spectra_bytes(const struct shape *shape,
                                        const struct block_layout *layout, size_t spectra)
{
    return cuda_blocks_bytes(spectra, shape->complex_signal ? 2 : 1,
                             cuda_blocks_points(shape, layout), cuda_blocks_batch(shape, layout),
                             shape->f64);
}

struct cuda_pairs_bytes cuda_pairs_bytes(const struct shape *shape,
                                         enum partita_direction direction,
                                         const struct block_layout *layout)
{
    const bool weight = direction == PARTITA_BACKWARD_WEIGHT;
    const size_t paths = size_mul(shape->out_channels, shape->group_in);
    const size_t in = size_mul(layout->units, weight ? shape->in_channels : shape->group_in);
    const size_t out = weight ? paths : size_mul(layout->units, shape->group_out);
    const size_t taps = weight ? size_mul(layout->units, shape->out_channels) : paths;
    const size_t inputs = block_input_count(shape, layout, layout->in_flight);
    return (struct cuda_pairs_bytes){
        .inputs = cuda_blocks_spectra_bytes(shape, layout, size_mul(in, inputs)),
        .taps = cuda_blocks_spectra_bytes(shape, layout, size_mul(taps, layout->tap_blocks)),
        .sums = cuda_blocks_spectra_bytes(shape, layout, size_mul(out, layout->in_flight)),
    };
}

size_t cuda_pairs_workspace(const struct shape *shape, enum partita_direction direction,
                            const struct block_layout *layout, size_t work_area)
{
    const struct cuda_pairs_bytes bytes = cuda_pairs_bytes(shape, direction, layout);
    const size_t taps = direction == PARTITA_BACKWARD_WEIGHT ? mem_round(bytes.taps) : 0;
    return size_add(size_add(mem_round(bytes.inputs), mem_round(bytes.sums)),
                    size_add(taps, mem_round(work_area)));
}

// Fewer units, then fewer blocks, where the workspace is limited; false if not even one fits. Units
// do not depend on each other: nothing is transformed again where fewer are in work at once.
static bool cuda_blocks_fit_pairs(const struct request *request, size_t limit,
                                  struct block_layout *layout)
{
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t points = cuda_blocks_points(shape, layout);
    // The size of cuFFT's work area is known later; for powers of two it is at most this.
    const size_t batch = cuda_blocks_batch(shape, layout);
    const size_t area =
        points <= cuda_fft_max(shape->f64) ? 0 : points * batch * 2 * shape->scalar_bytes;
    layout->in_flight = layout->blocks;
    layout->units = weight ? shape->batch : shape->batch * shape->groups;
    for (;;) {
        layout->shared = cuda_pairs_workspace(shape, request->direction, layout, area);
        const size_t fewer = layout->in_flight * 3 / 4;
        const bool cheap = layout->units > 1 ||
                           (!weight && fewer > 0 && fewer / MIN_IN_FLIGHT >= layout->tap_blocks);
        if (layout->shared <= (cheap ? size_min(limit, MAX_WORKSPACE) : limit)) break;
        if (layout->units > 1) layout->units = layout->units * 3 / 4;
        else if (layout->in_flight > 1 && !weight) layout->in_flight = fewer;
        else return false;
    }
    layout->filter = weight ? 0 : cuda_pairs_bytes(shape, request->direction, layout).taps;
    return true;
}

// Fewer windows, then fewer chunks of their sums, where the workspace is limited. False if not even
// one fits.
static bool cuda_blocks_fit_lags(const struct request *request, size_t limit,
                                 struct block_layout *layout)
{
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t paths = size_mul(shape->out_channels, shape->group_in);
    const size_t rows = weight ? paths : shape->batch * shape->out_channels;
    const size_t terms = size_mul(layout->tap_blocks, weight ? shape->batch : shape->group_in);
    const size_t points = cuda_blocks_points(shape, layout);
    const size_t spectrum = points * 2 * shape->scalar_bytes;
    layout->filter = weight ? 0 : size_mul(paths, shape->axis[0].kernel * shape->tap_bytes);
    layout->windows = size_mul(rows, layout->blocks);
    layout->chunks = terms ? size_min(terms, ceil_div(BLOCKS.target_threads, layout->windows)) : 1;
    for (;;) {
        layout->shared = size_mul(size_mul(layout->windows, layout->chunks), spectrum);
        if (layout->shared <= (layout->windows > 1 ? size_min(limit, MAX_WORKSPACE) : limit)) break;
        if (layout->windows > 1) layout->windows = ceil_div(layout->windows, 2);
        else if (layout->chunks > 1) layout->chunks = ceil_div(layout->chunks, 2);
        else return false;
    }
    const double blocks = (double)layout->windows * (double)layout->chunks;
    const double threads = blocks * (double)points / CUDA_FFT_POINTS;
    layout->busy = fmin(1, threads / cuda_rates_of(request).threads);
    return blocks < CUDA_MAX_BLOCKS;
}

static bool blocks_fit(const struct block_device *block_device, struct block_layout *layout)
{
    const struct request *request = block_device->request;
    const struct cuda_gpu *gpu = cuda_device_for(request)->gpu;
    const size_t limit = size_min(request->workspace_limit, gpu->memory / 2);
    return layout->method == BLOCK_LAGS ? cuda_blocks_fit_lags(request, limit, layout)
                                        : cuda_blocks_fit_pairs(request, limit, layout);
}

// The cheapest layout; false if none fits, with a reason.
static bool cuda_blocks_search(const struct request *request, struct block_layout *ret,
                               char *reason, size_t size)
{
    const struct shape *shape = request->shape;
    const struct cuda_gpu *gpu = cuda_device_for(request)->gpu;
    const struct cuda_rates device = cuda_rates_of(request);
    const struct partita_parts *parts = &request->parts;
    const size_t imposed = size_max(parts->taps, parts->signal);
    size_t points = cuda_fft_max(shape->f64);
    while (cuda_lags_shared(points, 1, shape->f64) > gpu->shared_bytes) points /= 2;
    const bool equal = parts->taps == parts->signal;
    const double product = (equal ? BLOCKS.product : BLOCKS.imposed) / device.fma;
    const double copy = BLOCKS.moved * (double)shape->scalar_bytes / device.bytes;
    const struct signal_rates rates = {
        .context = request,
        .good_size = blocks_good_size,
        .transforms = blocks_transform_seconds,
        .product[COST_FAR] = {product, product, product},
        .work.copy = copy,
        .work.copy_far = copy,
        .launch = device.launch,
    };
    const struct block_device block_device = {
        .rates = &rates,
        .request = request,
        .fit = blocks_fit,
        .max_transform = SIZE_MAX,
        .max_window = shape->complex_signal ? points : 2 * points,
        .max_samples = CUDA_MAX_BLOCKS * CUDA_FFT_POINTS,
        .margin = 1,
        .gradients_by_lags = true,
        .imposed_halves = true,
        .overlapped = true,
        .launches = BLOCKS.launches,
    };
    if (imposed <= cuda_fft_max(shape->f64) || cuda_fft_has_long())
        return block_search(&block_device, ret, reason, size);
    snprintf(reason, size, "blocks of %zu and %zu need cuFFT, which is not here", parts->taps,
             parts->signal);
    return false;
}

void cuda_blocks_estimate(const struct request *request, struct estimate *ret)
{
    struct block_layout layout;
    struct request forward = *request;
    struct shape shape;
    if (!shape_forward(request->shape, request->direction, &shape, ret->reason, sizeof ret->reason))
        return;
    forward.shape = &shape;
    if (cuda_blocks_search(&forward, &layout, ret->reason, sizeof ret->reason))
        block_estimate(&forward, &layout, ret);
}
