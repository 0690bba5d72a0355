// SPDX-License-Identifier: MIT
// The estimate: the cheapest layout that fits the workspace of a call (geometry/block_search.h).
#include <math.h>

#include "base/sizes.h"
#include "blocks.h"
#include "cpu/conv/signal_rates.h"

enum { MAX_WINDOW = 1 << 20 };

// Lines of a spectrum at most, whatever the provider.
static size_t spectrum_lines(const struct shape *shape, size_t n)
{
    return ceil_div(shape_bins(shape, n) * shape->scalar_bytes, SPECTRUM_LANES_BYTES);
}

static size_t blocks_spectrum_bytes(const struct shape *shape, size_t n)
{
    return SPECTRUM_LINE_BYTES * spectrum_lines(shape, n);
}

// Bytes of a thread for a transform: samples twice, a spectrum, a provider's scratch.
static size_t blocks_transform_bytes(const struct shape *shape, size_t n)
{
    return 5 * mem_round(n * shape->sample_bytes) + blocks_spectrum_bytes(shape, n);
}

static bool blocks_fits(const struct request *request, const struct block_layout *layout)
{
    return size_add(layout->shared, layout->worker) <= request->workspace_limit;
}

// Fewer blocks at once where the workspace is limited. Backward weight holds both operands of an
// item of the batch, and sums of all paths of a group.
static bool fit_pairs(const struct request *request, struct block_layout *layout)
{
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t lines = spectrum_lines(shape, layout->n);
    const size_t taps = block_spectra_bytes(lines, layout->tap_blocks);
    const size_t block = blocks_spectrum_bytes(shape, layout->n);
    const size_t filter = size_mul(shape_path_count(shape), taps);
    const size_t wished = size_max(size_mul(layout->tap_blocks, PER_TAP_BLOCK), MIN_IN_FLIGHT);
    layout->in_flight = weight ? layout->blocks : size_min(layout->blocks, wished);
    layout->worker =
        size_add(blocks_transform_bytes(shape, layout->n), pair_sums_bytes(layout->tap_blocks));
    layout->filter = weight ? 0 : filter;
    for (; layout->in_flight > 0; layout->in_flight = layout->in_flight * 3 / 4) {
        const size_t inputs = block_input_count(shape, layout, layout->blocks);
        const size_t held =
            weight ? inputs : size_min(inputs, layout->in_flight + layout->tap_blocks);
        const size_t sums = weight ? shape->group_in * shape->group_out : 1;
        layout->shared = size_add(size_mul(shape->group_in, block_spectra_bytes(lines, held)),
                                  size_mul(sums, size_mul(block, layout->in_flight + 1)));
        if (weight) layout->shared = size_add(layout->shared, size_mul(shape->group_out, taps));
        if (blocks_fits(request, layout)) {
            layout->seconds += fresh_seconds(request, shape, size_add(filter, layout->shared));
            return true;
        }
        if (weight) return false;
    }
    return false;
}

// All divisions are summed at once, each but the first in a row of its own; fewer where the
// workspace is limited. Such rows are cleared, read and added to the result.
static void fit_divisions(const struct request *request, struct block_layout *layout)
{
    const struct shape *shape = request->shape;
    const size_t row = blocks_row_bytes(shape), used = size_add(layout->shared, layout->worker);
    const size_t left = request->workspace_limit - size_min(used, request->workspace_limit);
    const size_t all = part_schedule_of(shape, layout->tap_block, layout->signal_block).count;
    layout->divisions = size_min(all, left / row + 1);
    layout->shared = size_add(layout->shared, size_mul(layout->divisions - 1, row));
    const double rows = (double)(all - ceil_div(all, layout->divisions));
    layout->seconds += 3 * rows * (double)(shape->batch * shape->out_channels * row) /
                       (double)shape->scalar_bytes *
                       request->model->costs[shape->f64].work.copy_far;
}

static bool cpu_fit(const struct block_device *device, struct block_layout *layout)
{
    const struct request *request = device->request;
    const struct shape *shape = request->shape;
    const size_t blocks = size_mul(shape_path_count(shape), layout->tap_blocks);
    const size_t spectrum = layout->n ? blocks_spectrum_bytes(shape, layout->n) : 0;
    layout->seconds = memory_seconds(request->model, shape);
    if (layout->method == BLOCK_PAIRS) return fit_pairs(request, layout);
    layout->in_flight = 1;
    layout->worker = layout->n ? blocks_transform_bytes(shape, layout->n) : 0;
    layout->filter = size_mul(blocks, spectrum);
    if (layout->method == BLOCK_LAGS) {
        layout->worker += (2 * LAGS_GROUP + 1) * spectrum;
        layout->shared = (LAGS_CHUNKS + 1) * spectrum;
        return blocks_fits(request, layout);
    }
    const size_t signals = block_input_count(shape, layout, 0);
    layout->shared = size_mul(shape->group_in, size_mul(signals, spectrum));
    layout->worker += 3 * (layout->n ? spectrum : mem_round(layout->hop * shape->sample_bytes));
    if (!layout->n)
        layout->filter = size_mul(blocks, mem_round(layout->tap_block * shape->tap_bytes));
    if (request->variant == PRIVATE_DIVISIONS) fit_divisions(request, layout);
    return true;
}

// The cheapest layout that the request allows, if a byte of a filter costs so much; false if none
// fits, with a reason.
static bool blocks_search(const struct request *request, double filter_byte,
                          struct block_layout *ret, char *reason, size_t size)
{
    const struct signal_rates rates = cpu_signal_rates(request);
    const struct block_device device = {.rates = &rates,
                                        .request = request,
                                        .fit = cpu_fit,
                                        .max_transform = SIZE_MAX,
                                        .max_window = MAX_WINDOW,
                                        .max_samples = INFINITY,
                                        .filter_byte = filter_byte,
                                        .margin = 0.9,
                                        .keeps_inputs = true,
                                        .counts_filter = request_used_once(request, request->shape),
                                        .in_time = true};
    return block_search(&device, ret, reason, size);
}

void blocks_estimate(const struct request *request, struct estimate *ret)
{
    struct block_layout layout;
    struct request forward = *request;
    struct shape shape;
    if (!shape_forward(request->shape, request->direction, &shape, ret->reason, sizeof ret->reason))
        return;
    forward.shape = &shape;
    // The time to prepare a filter for one call is in `seconds`.
    const bool kept = !request_used_once(request, request->shape) &&
                      request->direction != PARTITA_BACKWARD_WEIGHT;
    const double pack = request->model->costs[shape.f64].work.pack;
    const double byte = kept ? pack / (double)shape.scalar_bytes : 0;
    const double share = request->filter_uses ? byte / request->filter_uses : 0;
    if (!blocks_search(&forward, share, &layout, ret->reason, sizeof ret->reason)) return;
    block_estimate(&forward, &layout, ret);
    if (request->variant == PRIVATE_DIVISIONS) ret->variant = PRIVATE_DIVISIONS;
    ret->spread = 1;
    if (layout.method != BLOCK_IMPOSED)
        ret->spread = size_max(layout.hop / shape.axis[0].stride, 1);
    ret->filter_seconds = byte * (double)layout.filter;
}
