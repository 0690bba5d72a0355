// SPDX-License-Identifier: MIT
// The gradient of the taps as one kernel (lags.h): how it is split, its cost, its calls.
#include <assert.h>
#include <math.h>

#include "base/ranges.h"
#include "cuda/device/filter.h"
#include "spectral.h"

enum {
    TARGET_THREADS = 1 << 18,   // several thread blocks for each resident one on any device
    MIN_TERMS = 4,              // that a thread row adds up: sums are a small part of the bytes
    MAX_BLOCKS = INT32_MAX / 2, // of gy and chains, counted in int
    MAX_JOBS = 64,              // of a path
};

static size_t paths_of(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}

// Which lags a sum has, and which blocks of gy it is a sum over.
static bool split_lags(const struct shape *shape, size_t points, int sums, struct cuda_lags *ret)
{
    const struct axis *axis = &shape->axis[0];
    const size_t samples = 2 * points, length = (axis->out - 1) * axis->stride + 1;
    // One sum has all lags, and a block as many positions as then go, or as many as there are lags.
    const bool whole = sums == 1 && axis->span <= points;
    const size_t chunk = whole ? axis->span : points;
    const size_t chunks = ceil_div(axis->span, chunk), jobs = ceil_div(chunks, (size_t)sums);
    // Windows begin a sample earlier where a block less one position takes no more blocks: those of
    // causal rows then hold zeros in one half and a row in the other.
    const bool lead =
        !whole || ceil_div(length, samples - chunk) == ceil_div(length, samples - chunk + 1);
    const size_t hop = samples - chunk + !lead, blocks = ceil_div(length, hop);
    if (jobs > MAX_JOBS || blocks > MAX_BLOCKS) return false;
    if (sums == 2 && blocks > CUDA_LAGS_TERMS) return false; // a row is not split
    ret->lead = lead;
    ret->x = cuda_row_windows(axis->size, false);
    ret->x.first = axis->begin - (ptrdiff_t)lead;
    ret->x.length = (int64_t)samples;
    ret->w = cuda_row_windows(axis->out, false);
    ret->w.step = (int64_t)axis->stride;
    ret->w.count = (int64_t)blocks;
    ret->w.hop = ret->w.length = (int64_t)hop;
    ret->chunk = (int64_t)chunk;
    ret->chunks = (int64_t)chunks;
    ret->jobs = (int64_t)jobs;
    ret->tasks = (int64_t)(paths_of(shape) * jobs);
    return true;
}

size_t cuda_gradient_bytes(const struct shape *shape, const struct cuda_lags *gradient)
{
    const size_t spectrum = ((size_t)1 << gradient->form.log2_points) * 2 * shape->scalar_bytes;
    return size_mul(size_mul((size_t)(gradient->splits * gradient->chunks), paths_of(shape)),
                    spectrum);
}

bool cuda_gradient_split(const struct shape *shape, size_t points, int sums, size_t limit,
                         size_t splits, struct cuda_lags *ret)
{
    const size_t rows = (size_t)cuda_fft_rows(points);
    const size_t threads = rows * (size_t)cuda_fft_threads(points);
    const int64_t groups = (int64_t)shape->groups, in = (int64_t)shape->group_in,
                  out = (int64_t)shape->group_out;
    *ret = (struct cuda_lags){.form = cuda_form_of(shape, points),
                              .x_rows = {{groups, out, in}, {in, 0, 1}},
                              .w_rows = {{groups, out, in}, {out, 1, 0}},
                              .terms = (int64_t)shape->batch,
                              .x_term = groups * in,
                              .w_term = groups * out,
                              .splits = 1};
    if (points > cuda_fft_max(shape->f64) || !split_lags(shape, points, sums, ret)) return false;
    const size_t blocks = (size_t)ret->w.count, terms = size_mul(shape->batch, blocks);
    const size_t sum_bytes = cuda_gradient_bytes(shape, ret);
    if (!splits) {
        const size_t wished =
            ceil_div(TARGET_THREADS, size_mul(threads, paths_of(shape) * (size_t)ret->jobs));
        splits = size_min(size_min(wished, terms / (MIN_TERMS * rows)), limit / sum_bytes);
        if (sums == 2) splits = size_min(splits, shape->batch);
        if (!splits) splits = 1;
    }
    ret->splits = (int64_t)splits;
    // Chains are no longer than the terms of a sum; no thread row shall be without one.
    const size_t chains = ceil_div(blocks, CUDA_LAGS_TERMS);
    const size_t wanted = ceil_div(splits * rows, shape->batch);
    ret->chains = sums == 2 ? 1 : (int64_t)size_min(size_max(wanted, chains), blocks);
    return sum_bytes <= limit && size_mul(shape->batch, (size_t)ret->chains) <= MAX_BLOCKS;
}

// Work of thread blocks on one path.
struct counted {
    double transforms, products, longest; // longest: products of one sum
};

static struct counted count(const struct cuda_lags *gradient, int sums)
{
    struct counted ret = {0};
    const double batch = (double)gradient->terms;
    const struct cuda_windows *x = &gradient->x;
    const size_t hop = (size_t)gradient->w.hop;
    for (int64_t j = 0; j < gradient->jobs; j++) {
        // Blocks whose windows hold samples of x for any sum of the job.
        const int64_t begin = x->first + j * sums * gradient->chunk;
        const int64_t reach = x->length + (sums - 1) * gradient->chunk;
        const struct windows windows = {begin, hop, (size_t)reach};
        const struct range all = windows_outputs(&windows, (struct range){0, (size_t)x->size});
        const struct range found = range_within(all, 0, gradient->w.count);
        const double blocks = (double)found.size;
        // Of two sums the first block's window comes besides.
        const int64_t window = begin + found.first * gradient->w.hop;
        const bool more = sums == 2 && window > -gradient->x.length && window < gradient->x.size;
        ret.transforms += batch * (2 * blocks + more);
        ret.products += batch * sums * blocks;
        ret.longest = fmax(ret.longest, batch * blocks);
    }
    return ret;
}

bool cuda_gradient_try(const struct request *request, const struct shape *shape, size_t points,
                       int variant, struct estimate *ret)
{
    const struct cuda_gpu *gpu = cuda_device_for(request)->gpu;
    const int sums = variant + 1;
    struct cuda_lags gradient;
    if (!cuda_gradient_split(shape, points, sums, request->workspace_limit, 0, &gradient) ||
        cuda_lags_shared(points, sums, shape->f64) > gpu->shared_bytes)
        return false;
    const struct counted counted = count(&gradient, sums);
    const double paths = (double)paths_of(shape), splits = (double)gradient.splits;
    const double transforms = paths * (counted.transforms + (double)gradient.chunks);
    const double products = paths * counted.products;
    const double blocks = paths * (double)gradient.jobs * splits;
    const double rows = (double)(cuda_input_bytes(shape) / shape->in_channels +
                                 cuda_output_bytes(shape) / shape->out_channels);
    const size_t sum_bytes = cuda_gradient_bytes(shape, &gradient);
    const struct cuda_rates rates = cuda_rates_of(request);
    const struct cuda_stage stage = {
        .launches = gradient.splits > 1 ? 3 : 2,
        .blocks = blocks,
        .threads = (double)(cuda_fft_rows(points) * cuda_fft_threads(points)),
        .slots = cuda_transform_slots(points, transforms) +
                 (double)points * products * CUDA_CACHED_PRODUCT_SLOTS,
        .bytes = paths * (double)gradient.jobs * rows + 3 * (double)sum_bytes,
    };
    const double in_a_row = fmin(counted.longest, CUDA_LAGS_TERMS);
    *ret = (struct estimate){
        .applicable = blocks <= INT32_MAX,
        .transform = 2 * points,
        .hop = (size_t)gradient.w.hop,
        .seconds = cuda_stage_seconds(&rates, &stage),
        .flops = (5 * transforms * log2((double)points) + 8 * products) * (double)points,
        .variant = variant,
        .shared = sum_bytes,
        .bytes = sum_bytes,
        .error = cuda_transform_error(shape, points,
                                      in_a_row + counted.longest / CUDA_LAGS_TERMS + splits),
    };
    const struct cuda_gradient_decision decision = {points, (size_t)gradient.splits, sums};
    estimate_store(ret, &decision, sizeof decision);
    return ret->applicable;
}

enum partita_status cuda_gradient_create(struct partita_plan *plan, struct cuda_gradient_plan *ret)
{
    const struct shape *shape = &plan->shape;
    struct cuda_gradient_decision decision;
    estimate_load(&plan->choice, &decision, sizeof decision);
    ret->sums = decision.sums;
    const bool fits = cuda_gradient_split(shape, decision.points, ret->sums, plan->choice.shared,
                                          decision.splits, &ret->kernel);
    assert(fits && cuda_gradient_bytes(shape, &ret->kernel) == plan->choice.shared);
    (void)fits;
    const enum partita_status status = cuda_fft_create(plan, decision.points, 1, false, &ret->fft);
    ret->kernel.form = ret->fft.params.form;
    return status;
}

enum partita_status cuda_gradient_run(const struct partita_plan *plan,
                                      const struct cuda_gradient_plan *gradient,
                                      const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const struct cuda_sink sink = {.y = operands->to,
                                   .rows = (int64_t)paths_of(shape),
                                   .length = (int64_t)axis->kernel,
                                   .stride = (int64_t)axis->dilation,
                                   .end = (int64_t)axis->span,
                                   .channels = 1,
                                   .reversed = shape->flip};
    struct cuda_lags lags = gradient->kernel;
    const enum partita_status status =
        CU(plan, cuda_launch_lags(&lags, gradient->sums, shape->f64, workspace, operands->from[0],
                                  operands->from[1]));
    if (status != PARTITA_OK) return status;
    lags.tasks = (int64_t)paths_of(shape) * lags.chunks;
    return CU(plan, cuda_launch_lags_results(&lags, &sink, shape->f64, workspace));
}
