// SPDX-License-Identifier: MIT
// Which taps any output reads at all, then for every size of transform the predicted cost of pairs
// of blocks and of windows of lags, within the workspace allowed.
#include "block_search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/sizes.h"
#include "core/plan.h"
#include "part_schedule.h"

enum { MAX_TAP_BLOCKS = 4096 }; // more products in a row than their rounding errors allow

// Pairs: the blocks that hold samples of x.
static struct range blocks_of_x(const struct shape *shape, const struct block_layout *layout)
{
    const struct windows blocks = {layout->trimmed.first, layout->tap_block, layout->tap_block};
    return windows_outputs(&blocks, (struct range){0, shape->axis[0].size});
}

// A result also reads as many blocks before the first one as the taps have.
struct range block_inputs_read(const struct shape *shape, const struct block_layout *layout,
                               size_t first, size_t end)
{
    return range_within(blocks_of_x(shape, layout),
                        (ptrdiff_t)first - (ptrdiff_t)layout->tap_blocks, (ptrdiff_t)end);
}

size_t block_input_count(const struct shape *shape, const struct block_layout *layout,
                         size_t blocks)
{
    if (layout->method == BLOCK_IMPOSED) {
        const struct part_schedule schedule =
            part_schedule_of(shape, layout->tap_block, layout->signal_block);
        return part_schedule_signals(&schedule).size;
    }
    return size_min(blocks_of_x(shape, layout).size, size_add(blocks, layout->tap_blocks));
}

// Predicted relative L2 error. Transforms accumulate errors as everywhere; products are summed up
// to 64 at a time and then the sums.
static double block_error(const struct request *request, const struct block_layout *layout)
{
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const double channels = (double)(weight ? shape->batch : shape->group_in);
    const double terms = (double)layout->tap_blocks * channels;
    const double row = fmin(terms, 64);
    const double transforms = layout->n ? 1.3 * sqrt(log2((double)layout->n)) : 0;
    const double sums = 0.3 * sqrt(row + terms / 64);
    return shape_roundoff(shape) * hypot(transforms, sums);
}

static double transform_flops(const struct shape *shape, size_t n)
{
    return (shape->complex_signal ? 5 : 2.5) * (double)n * log2((double)n);
}

// The amount of sequential work, by the amount of parallel work.
static double chunk_count(const struct request *request, const struct block_layout *layout)
{
    const struct shape *shape = request->shape;
    const double batch = (double)shape->batch;
    const double units = (double)layout->units;
    if (request->direction == PARTITA_BACKWARD_WEIGHT) return ceil(batch / units);
    return ceil(batch * (double)shape->groups / units) *
           ceil((double)layout->blocks / (double)layout->in_flight);
}

// Adds the seconds of so many transforms, products of a bin and moves of a transform's samples.
static bool add_costs(const struct block_device *device, double transforms, double products,
                      double moves, struct block_layout *layout)
{
    const struct signal_rates *rates = device->rates;
    const struct shape *shape = device->request->shape;
    const bool far = size_add(layout->filter, layout->shared) > rates->shared_bytes;
    const double copy = far ? rates->work.copy_far : rates->work.copy;
    const double move = moves * (double)layout->n * (shape->complex_signal ? 2 : 1) * copy;
    const double multiply = products * rates->product[COST_FAR][2];
    const double launches = device->launches * chunk_count(device->request, layout);
    layout->seconds += rates->transforms(rates, layout->n, transforms) +
                       (device->overlapped ? fmax(move, multiply) : move + multiply) +
                       launches * rates->launch;
    layout->flops = transforms * transform_flops(shape, layout->n) + 8 * products;
    return transforms * (double)layout->n < device->max_samples;
}

// Pairs of blocks of half a transform.
static bool layout_pairs(const struct block_device *device, size_t n, struct block_layout *layout)
{
    const struct shape *shape = device->request->shape;
    const bool weight = device->request->direction == PARTITA_BACKWARD_WEIGHT;
    layout->method = BLOCK_PAIRS;
    layout->n = n;
    layout->tap_block = layout->hop = n / 2;
    layout->tap_blocks = ceil_div(layout->trimmed.taps, layout->tap_block);
    layout->blocks = ceil_div(layout->trimmed.outputs, layout->hop);
    if (layout->tap_blocks > MAX_TAP_BLOCKS || !device->fit(device, layout)) return false;
    assert(layout->in_flight && layout->units);
    const size_t inputs = block_input_count(shape, layout, layout->blocks);
    const double tap_blocks = (double)layout->tap_blocks;
    const double blocks = (double)layout->blocks;
    const double batch = (double)shape->batch;
    const double paths = (double)shape_path_count(shape);
    const double results = weight ? paths : batch * (double)shape->out_channels;
    const double pairs = fmin((blocks + 1) * (double)size_min(layout->tap_blocks, inputs),
                              tap_blocks * (double)inputs);
    // Inputs that blocks in flight at different times share are transformed again, or kept.
    const double again = tap_blocks * (ceil(blocks / (double)layout->in_flight) - 1);
    const double once = (double)inputs;
    const double read = device->keeps_inputs ? once : fmin(once + again, blocks * once);
    // The taps of a filter are transformed already, unless it is used once; gy is transformed with
    // every call.
    const size_t others =
        weight || device->counts_filter ? shape->out_channels * layout->tap_blocks : 0;
    const double operands = (double)shape->in_channels * read + (double)others;
    const double transforms = batch * operands + results * blocks;
    // A transform's samples and its spectrum are moved; for their sums the spectra of the taps,
    // the gathered sums, and with several channels the products of each.
    const double added = shape->group_in > 1 ? 3 * batch * paths * blocks : 0;
    const double sums = results * blocks + batch * paths * tap_blocks + added;
    return add_costs(device, transforms, batch * paths * pairs * (double)shape_bins(shape, n),
                     2 * transforms + sums, layout);
}

// Windows of outputs; every block is transformed for each.
static bool layout_lags(const struct block_device *device, size_t n, struct block_layout *layout)
{
    const struct signal_rates *rates = device->rates;
    const struct shape *shape = device->request->shape;
    const bool weight = device->request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t taps = layout->trimmed.taps;
    const size_t outputs = layout->trimmed.outputs;
    layout->method = BLOCK_LAGS;
    layout->n = n;
    layout->hop = size_min(outputs, n / 2);
    layout->tap_block = size_min(n - layout->hop + 1, taps ? taps : 1);
    layout->tap_blocks = ceil_div(taps, layout->tap_block);
    layout->blocks = ceil_div(outputs, layout->hop);
    layout->in_flight = 1;
    if (!device->fit(device, layout)) return false;
    const double batch = (double)shape->batch;
    const double blocks = (double)layout->blocks;
    const double terms =
        batch * (double)shape_path_count(shape) * (double)layout->tap_blocks * blocks;
    const double windows =
        (weight ? (double)shape_path_count(shape) : batch * (double)shape->out_channels) * blocks;
    const double bins = (double)shape_bins(shape, n);
    // Both operands are transformed where a call reads the taps themselves; a filter saves one of
    // the two.
    layout->seconds += rates->transforms(rates, n, 2 * terms) / layout->busy +
                       terms * bins * rates->product[COST_NEAR][0] +
                       rates->transforms(rates, n, windows) +
                       device->launches * rates->launch * ceil(windows / (double)layout->windows);
    layout->flops = 2 * terms * transform_flops(shape, n) + 8 * terms * bins;
    return terms * (double)n < device->max_samples;
}

// Blocks that the caller imposes begin where the taps and the signal do.
static bool layout_imposed(const struct block_device *device, size_t n, struct block_layout *layout)
{
    const struct shape *shape = device->request->shape;
    const struct axis *axis = &shape->axis[0];
    const struct partita_parts *parts = &device->request->parts;
    const struct part_schedule schedule = part_schedule_of(shape, parts->taps, parts->signal);
    layout->method = BLOCK_IMPOSED;
    layout->trimmed.taps = axis->span, layout->trimmed.first_tap = 0;
    layout->trimmed.first = causal_first(axis);
    layout->n = n;
    layout->tap_block = parts->taps, layout->signal_block = parts->signal;
    layout->hop = schedule.apart - 1;
    layout->tap_blocks = schedule.taps;
    layout->blocks = ceil_div(layout->trimmed.outputs, schedule.apart) + 1;
    if (!device->fit(device, layout)) return false;
    const double batch = (double)shape->batch;
    const double paths = (double)shape_path_count(shape);
    const double signals = (double)part_schedule_signals(&schedule).size;
    const double all = (double)layout->tap_blocks * signals;
    const double intervals = fmin((double)schedule.count * (double)layout->blocks, all);
    const double pairs = batch * paths * all;
    if (!n) {
        const double products = (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
        const double sums = pairs * products * (double)(layout->tap_block * layout->hop);
        layout->seconds += sums * device->rates->work.fma;
        layout->flops = 2 * sums;
        return true;
    }
    const double operands = (double)shape->in_channels * signals;
    const double results = (double)shape->out_channels * intervals;
    return add_costs(device, batch * (operands + results), pairs * (double)shape_bins(shape, n),
                     2 * batch * results, layout);
}

static double layout_cost(const struct block_device *device, const struct block_layout *layout)
{
    return layout->seconds + device->filter_byte * (double)layout->filter;
}

typedef bool layout_fn(const struct block_device *device, size_t n, struct block_layout *layout);

// Sizes are tried from the smallest on. A larger one replaces it only if it costs less than
// `margin` times as much: the model is no finer than that.
static void try_layout(const struct block_device *device, layout_fn *layout_by, size_t n,
                       struct block_layout *best)
{
    struct block_layout layout = {.trimmed = shape_trim(device->request->shape),
                                  .units = 1,
                                  .windows = 1,
                                  .chunks = 1,
                                  .divisions = 1,
                                  .busy = 1};
    if (!layout_by(device, n, &layout)) return;
    if (!best->hop || layout_cost(device, &layout) < device->margin * layout_cost(device, best))
        *best = layout;
}

static void search_sizes(const struct block_device *device, struct block_layout *best)
{
    const struct request *request = device->request;
    const struct signal_rates *rates = device->rates;
    const struct trimmed trimmed = shape_trim(request->shape);
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t taps = trimmed.taps ? trimmed.taps : 1;
    const size_t outputs = trimmed.outputs;
    // Beyond these sizes one block holds everything. Few taps of a gradient take long blocks
    // where windows of lags are not there to help.
    const size_t longest = weight && taps > outputs ? taps : size_min(taps, outputs);
    const size_t whole = rates->good_size(rates, 2 * longest);
    const size_t pairs = size_min(whole ? whole : SIZE_MAX, device->max_transform);
    const size_t window = size_min(taps + outputs, device->max_window);
    const bool by_lags =
        request_allows(request, BLOCK_LAGS) && (!weight || device->gradients_by_lags);
    const size_t lags = by_lags ? rates->good_size(rates, window) : 0;
    const size_t given = request->transform;
    const size_t allowed = size_min(size_max(pairs, lags), request_max_transform(request));
    const size_t max = given ? given : allowed;
    for (size_t n = rates->good_size(rates, given); n && n <= max;
         n = rates->good_size(rates, n + 1)) {
        if (n <= pairs && request_allows(request, BLOCK_PAIRS))
            try_layout(device, layout_pairs, n, best);
        if (n <= lags) try_layout(device, layout_lags, n, best);
    }
}

// Equal blocks of half a transform are pairs. Returns why others cannot be laid out; NULL: they
// can.
static const char *search_imposed(const struct block_device *device, struct block_layout *best)
{
    const struct request *request = device->request;
    const struct partita_parts *parts = &request->parts;
    const struct signal_rates *rates = device->rates;
    const bool imposed = request->variant == ANY_VARIANT || request->variant >= (int)BLOCK_IMPOSED;
    const bool equal = parts->taps == parts->signal && !parts->in_time &&
                       request_allows(request, BLOCK_PAIRS) &&
                       rates->good_size(rates, 2 * parts->taps) == 2 * parts->taps;
    const size_t both = device->imposed_halves ? 2 * size_max(parts->taps, parts->signal)
                                               : parts->taps + parts->signal - 1;
    size_t n = parts->in_time ? 0 : rates->good_size(rates, both);
    if (equal) n = 2 * parts->taps;
    if (!equal && !imposed) return "this variant does not take options.parts";
    if (parts->in_time && !device->in_time) return "sums pairs of parts by transforms, not in time";
    if (!equal && request->direction == PARTITA_BACKWARD_WEIGHT)
        return "backward weight needs equal parts of half a transform";
    if (!equal && request->shape->axis[0].stride > 1)
        return "parts of given sizes need a stride of 1";
    if ((!n && !parts->in_time) || n > device->max_transform)
        return "no transform holds parts of these sizes";
    try_layout(device, equal ? layout_pairs : layout_imposed, n, best);
    return best->hop ? NULL : "parts of these sizes do not fit the workspace limit";
}

bool block_search(const struct block_device *device, struct block_layout *ret, char *reason,
                  size_t size)
{
    const char *why = "no transform size fits taps, outputs, workspace limit and error_reach";
    *ret = (struct block_layout){0};
    if (device->request->parts.taps) why = search_imposed(device, ret);
    else if (device->request->variant >= (int)BLOCK_IMPOSED) why = "needs options.parts";
    else search_sizes(device, ret);
    if (!ret->hop) snprintf(reason, size, "%s", why);
    return ret->hop > 0;
}

void block_estimate(const struct request *request, const struct block_layout *layout,
                    struct estimate *ret)
{
    *ret = (struct estimate){
        .applicable = true,
        .transform = layout->n,
        .variant = (int)layout->method,
        .hop = layout->hop,
        .seconds = layout->seconds,
        .flops = layout->flops,
        .shared = layout->shared,
        .worker = layout->worker,
        .bytes = size_add(layout->filter, size_add(layout->shared, layout->worker)),
        .error = block_error(request, layout),
        .from_taps = layout->method == BLOCK_LAGS,
    };
    estimate_store(ret, layout, sizeof *layout);
}

void block_explain(const struct shape *shape, const struct block_layout *layout, struct text *text)
{
    const struct axis *axis = &shape->axis[0];
    const struct trimmed *trimmed = &layout->trimmed;
    struct part_schedule schedule;
    if (trimmed->first_tap || trimmed->taps < axis->span)
        text_add(text, "  taps %zu to %zu are all that these outputs read\n", trimmed->first_tap,
                 trimmed->first_tap + trimmed->taps - (trimmed->taps > 0));
    switch (layout->method) {
    case BLOCK_LAGS:
        text_add(text,
                 "  %zu window%s of %zu outputs, each the sum of %zu blocks of %zu taps by "
                 "transforms of %zu samples\n  one spectrum sums all blocks, one inverse a "
                 "window\n",
                 layout->blocks, layout->blocks == 1 ? "" : "s", layout->hop, layout->tap_blocks,
                 layout->tap_block, layout->n);
        break;
    case BLOCK_IMPOSED:
        schedule = part_schedule_of(shape, layout->tap_block, layout->signal_block);
        part_schedule_explain(&schedule, text);
        break;
    case BLOCK_PAIRS:
        text_add(text,
                 "  blocks of %zu samples by transforms of %zu: %zu of the taps, %zu of the "
                 "signal -> %zu of the result\n",
                 layout->tap_block, layout->n, layout->tap_blocks, blocks_of_x(shape, layout).size,
                 layout->blocks);
        if (layout->in_flight < layout->blocks)
            text_add(text, "  %zu blocks of the result at a time, %zu of the signal held\n",
                     layout->in_flight, layout->in_flight + layout->tap_blocks);
        text_add(text, "  products of all pairs summed in the spectrum, one inverse a block of "
                       "the result\n");
    }
}
