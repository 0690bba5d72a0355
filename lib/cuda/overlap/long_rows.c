// SPDX-License-Identifier: MIT
// Long rows with a long filter each (long_rows.h): how they are split, and the cost.
#include "long_rows.h"

#include "base/sizes.h"
#include "cuda/device/filter.h"
#include "spectral.h"

// Instructions for a bin of a group's windows and for one of a group before it, counted in the
// code of long_rows.cu for sm_90; the cost of a byte from the second-level cache, in bytes
// from memory.
static const double GROUP_SLOTS = 185, BEFORE_SLOTS = 128, CACHED_BYTE = 1. / 3;

bool cuda_long_rows_of(const struct shape *shape, const struct cuda_fft_form *form,
                       struct cuda_filtering *ret)
{
    const struct axis *axis = &shape->axis[0];
    const size_t n = (size_t)1 << form->log2_points, parts = ceil_div(axis->span, n);
    const size_t blocks = ceil_div((axis->out - 1) * axis->stride + 1, n);
    // The sample that the first tap of output 0 meets; those before it are in `lead` windows.
    const ptrdiff_t met = axis->begin + (ptrdiff_t)axis->span - 1;
    const size_t lead = met > 0 ? size_min(ceil_div((size_t)met, n), parts - 1) : 0;
    if (shape->complex_signal || shape->group_in > 1 || shape->group_out > 1) return false;
    if (parts < 2 || parts > CUDA_LONG_ROWS_MAX_PARTS) return false;
    struct cuda_windows in = cuda_row_windows(axis->size, false);
    in.first = met - (ptrdiff_t)((lead + 1) * n);
    in.hop = (int64_t)n;
    in.length = 2 * (int64_t)n;
    in.count = (int64_t)(lead + blocks);
    *ret = (struct cuda_filtering){.form = *form,
                                   .in = in,
                                   .out = {.skip = (int64_t)n,
                                           .hop = (int64_t)n,
                                           .stride = (int64_t)axis->stride,
                                           .size = (int64_t)axis->out},
                                   .batch = (int64_t)shape->batch,
                                   .groups = (int64_t)shape->groups,
                                   .group_in = 1,
                                   .group_out = 1,
                                   .parts = (int)parts,
                                   .lead = (int)lead};
    return lead + blocks <= INT32_MAX;
}

// The layout for a device; false: there is none. A device has all thread blocks at once, so that
// each loads its next samples while it computes.
static bool lay_out_long_rows(const struct request *request, const struct cuda_filtering *rows,
                              struct cuda_filter_layout *ret)
{
    const struct cuda_gpu *gpu = cuda_device_for(request)->gpu;
    const bool f64 = request->shape->f64;
    const size_t points = (size_t)1 << rows->form.log2_points;
    const size_t threads = (size_t)(cuda_long_rows_at_once(points, f64) * cuda_fft_threads(points));
    const size_t shared = cuda_long_rows_shared(points, f64),
                 cache = cuda_long_rows_cache(rows, f64);
    if (shared > gpu->shared_bytes) return false;
    const size_t resident =
        size_max(size_min(CUDA_FULL_THREADS / threads, gpu->shared_bytes / shared), 1);
    size_t blocks = size_min(size_mul((size_t)rows->batch, (size_t)rows->groups),
                             resident * (size_t)gpu->processors);
    if (cache) blocks = size_min(blocks, request->workspace_limit / cache);
    *ret = (struct cuda_filter_layout){
        .blocks = (int64_t)blocks, .shared_bytes = shared, .cache_bytes = blocks * cache};
    return blocks > 0;
}

static struct cuda_stage count_long_rows(const struct shape *shape,
                                         const struct cuda_filtering *rows,
                                         const struct cuda_filter_layout *layout)
{
    const size_t points = (size_t)1 << rows->form.log2_points;
    const double count = (double)rows->batch * (double)rows->groups, n = (double)points;
    const double at_once = CUDA_LONG_ROWS_BLOCKS, kept = cuda_long_rows_groups(rows);
    const double groups = ceil((double)rows->in.count / at_once);
    // Groups before one, summed over all: 0, 1, .., kept, kept, ..
    const double before = kept * (kept - 1) / 2 + kept * (groups - kept);
    const double products = n * (groups * GROUP_SLOTS + before * BEFORE_SLOTS);
    const double transforms = 2 * (double)rows->in.count - rows->lead;
    const double loads = at_once * (groups + 2 * before) + (kept > 0 ? at_once * (groups - 1) : 0);
    const double spectrum = 2 * n * (double)shape->scalar_bytes;
    return (struct cuda_stage){
        .launches = 1,
        .blocks = (double)layout->blocks,
        .threads = (double)(cuda_long_rows_at_once(points, shape->f64) * cuda_fft_threads(points)),
        .slots = count * (cuda_transform_slots(points, transforms) + products),
        .bytes = (double)cuda_input_bytes(shape) + (double)cuda_output_bytes(shape) +
                 spectrum * ((double)rows->groups * rows->parts + CACHED_BYTE * count * loads),
    };
}

static bool try_long_rows(const struct request *request, const struct shape *shape, size_t points,
                          struct estimate *ret)
{
    const struct cuda_fft_form form = cuda_form_of(shape, points);
    const struct cuda_rates rates = cuda_rates_of(request);
    struct cuda_filter_decision decision = {.points = points, .long_rows = true};
    struct cuda_filtering rows;
    if (!cuda_long_rows_of(shape, &form, &rows) ||
        !lay_out_long_rows(request, &rows, &decision.layout))
        return false;
    const struct cuda_stage stage = count_long_rows(shape, &rows, &decision.layout);
    const double count = (double)rows.batch * (double)rows.groups;
    const double windows = 2 * (double)rows.in.count, pairs = windows * rows.parts / 2;
    const size_t filter =
        size_mul(shape->out_channels * (size_t)rows.parts, points * 2 * shape->scalar_bytes);
    *ret = (struct estimate){
        .applicable = true,
        .transform = 2 * points,
        .variant = ANY_VARIANT,
        .hop = points,
        .seconds = cuda_stage_seconds(&rates, &stage),
        .flops = count * (5 * windows * log2((double)points) + 8 * pairs) * (double)points,
        .shared = decision.layout.cache_bytes,
        .bytes = size_add(filter, decision.layout.cache_bytes),
        .error = cuda_transform_error(shape, points, rows.parts),
    };
    estimate_store(ret, &decision, sizeof decision);
    return true;
}

void cuda_long_rows_search(const struct request *request, const struct shape *shape,
                           struct estimate *ret)
{
    for (size_t points = CUDA_FFT_POINTS; points <= cuda_fft_max(shape->f64); points *= 2) {
        struct estimate estimate;
        if (request->transform && request->transform != 2 * points) continue;
        if (2 * points > request_max_transform(request)) break;
        if (try_long_rows(request, shape, points, &estimate) &&
            (!ret->applicable || estimate.seconds < ret->seconds))
            *ret = estimate;
    }
}
