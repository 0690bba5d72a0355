// SPDX-License-Identifier: MIT
#include "weight.h"

#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "cpu/conv/split_k.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

enum { ENOUGH_TASKS = 32 }; // groups are cut into runs of terms until there are so many

// A term is a block of an item of the batch.
static size_t terms_of(const struct shape *shape, size_t hop)
{
    return shape->batch * spectral_blocks(shape, hop);
}

static size_t group_cells(const struct shape *shape)
{
    return shape->group_in * shape->group_out;
}

// Runs of terms, each with sums of its own; those of a lone run need no memory but the worker's.
static size_t shared_bytes(const struct shape *shape, size_t runs, size_t spectrum)
{
    return runs < 2 ? 0 : size_mul(runs * shape->groups, size_mul(group_cells(shape), spectrum));
}

static bool consider_weight(const struct request *request, size_t n, double moves, double limit,
                            struct estimate *ret)
{
    const struct shape *shape = request->shape;
    if (n < shape->axis[0].span) return false;
    const size_t hop = n - shape->axis[0].span + 1, terms = terms_of(shape, hop),
                 spectrum = spectral_bytes(shape, n);
    // The transform's own scratch is at most three times its samples.
    const size_t operands = size_mul(shape->group_in + shape->group_out, spectrum);
    const size_t several = size_add(operands, 4 * mem_round(n * shape->sample_bytes));
    // Runs of their own may hold as much as the operands, not a multiple of it.
    const size_t most =
        shape->sample_bytes * shape->batch *
        (shape->in_channels * shape_inputs(shape) + shape->out_channels * shape_outputs(shape));
    size_t runs = (ENOUGH_TASKS + shape->groups - 1) / shape->groups;
    if (runs > terms) runs = terms;
    while (runs > 1 &&
           (shared_bytes(shape, runs, spectrum) > most ||
            size_add(shared_bytes(shape, runs, spectrum), several) > request->workspace_limit))
        runs--;
    const size_t worker =
        runs > 1 ? several : size_add(several, size_mul(group_cells(shape), spectrum));
    if (worker > request->workspace_limit) return false;
    const double cells = (double)(shape->out_channels * shape->group_in), bins = (double)n / 2 + 1;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double end = cells * (cost_model_fft(request->model, shape->f64, false, n) / 2 +
                                (double)n * (double)(runs + 1) * costs->copy);
    const double seconds = (double)terms * spectral_block_seconds(request, n, moves) + end +
                           memory_seconds(request->model, shape);
    if (seconds >= limit) return false;
    const double transforms =
        (double)terms * (double)(shape->in_channels + shape->out_channels) + cells;
    // Transforms walk as everywhere; products add up within a run.
    const double walk = 0.3 * sqrt((double)terms / (double)runs + log2((double)runs));
    *ret = (struct estimate){
        .applicable = true,
        .transform = n,
        .variant = (int)runs,
        .hop = hop,
        .seconds = seconds,
        .flops = transforms * 2.5 * (double)n * log2((double)n) + 8 * (double)terms * cells * bins,
        .shared = shared_bytes(shape, runs, spectrum),
        .worker = worker,
        .bytes = size_add(shared_bytes(shape, runs, spectrum), worker),
        .error = shape_roundoff(shape) * hypot(1.3 * sqrt(log2((double)n)), walk),
    };
    return true;
}

void spectral_weight_estimate(const struct request *request, struct estimate *ret)
{
    spectral_search(request, consider_weight, 1, ret);
}

// What one thread needs: spectra of a group's inputs and of its outputs, without runs sums of its
// cells, samples, FFT scratch.
struct work {
    char *inputs, *outputs, *sums, *samples, *scratch;
};

static struct work cut_work(const struct spectral *spectral, size_t runs, struct arena *arena)
{
    const struct shape *shape = &spectral->shape;
    const size_t bytes = fft_spectrum_bytes(spectral->fft);
    struct work work;
    work.inputs = arena_take(arena, shape->group_in * bytes);
    work.outputs = arena_take(arena, shape->group_out * bytes);
    work.sums = runs < 2 ? arena_take(arena, group_cells(shape) * bytes) : NULL;
    work.samples = arena_take(arena, spectral->n * shape->sample_bytes);
    work.scratch = arena_take(arena, fft_scratch_bytes(spectral->fft));
    return work;
}

static size_t work_bytes(const struct spectral *spectral, size_t runs)
{
    struct arena arena = {0};
    cut_work(spectral, runs, &arena);
    return arena.used;
}

void spectral_weight_sizes(struct partita_plan *plan)
{
    const struct spectral *spectral = plan->state;
    plan->choice.shared = shared_bytes(&spectral->shape, (size_t)plan->choice.variant,
                                       fft_spectrum_bytes(spectral->fft));
    plan->choice.worker = work_bytes(spectral, (size_t)plan->choice.variant);
}

struct call {
    const struct partita_plan *plan;
    char *gw;
    const char *x, *gy;
    char *shared, *workers;
};

static struct work work_of(const struct call *call, int worker)
{
    const struct spectral *spectral = call->plan->state;
    const size_t runs = (size_t)call->plan->choice.variant;
    struct arena arena = {.base = call->workers + (size_t)worker * work_bytes(spectral, runs)};
    return cut_work(spectral, runs, &arena);
}

// Where a run keeps the sums of a group's cells, if there are several runs.
static char *shared_sums(const struct call *call, size_t group, size_t run)
{
    const struct spectral *spectral = call->plan->state;
    const size_t runs = (size_t)call->plan->choice.variant;
    return call->shared +
           (group * runs + run) * group_cells(&spectral->shape) * fft_spectrum_bytes(spectral->fft);
}

// One inverse transform, and the taps in the caller's order: correlation counts them as lags go.
static void store_cell(const struct call *call, size_t group, size_t cell, char *sum,
                       struct work *work)
{
    const struct spectral *spectral = call->plan->state;
    const struct shape *shape = &spectral->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t bytes = shape->sample_bytes;
    char *gw = call->gw + (group * group_cells(shape) + cell) * axis->kernel * bytes;
    const bool half = spectral->half.used;
    char *lags = work->samples + (half ? spectral->half.first : spectral->hop - 1) * bytes;
    if (half) fft_inverse_half(spectral->fft, work->samples, sum, work->samples, work->scratch);
    else fft_inverse(spectral->fft, work->samples, sum, work->scratch);
    call->plan->kernels->scale(lags, lags, 1 / fft_gain(spectral->fft), axis->span);
    if (shape->flip) samples_reverse(gw, 1, lags, axis->dilation, axis->kernel, bytes);
    else samples_copy(gw, 1, lags, axis->dilation, axis->kernel, bytes);
}

// Spectra of the windows that a block of outputs reads.
static void transform_inputs(const struct call *call, size_t item, size_t group, size_t block,
                             struct work *work)
{
    const struct spectral *spectral = call->plan->state;
    const struct shape *shape = &spectral->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t bytes = shape->sample_bytes;
    const ptrdiff_t first = axis->begin + (ptrdiff_t)(block * spectral->hop);
    for (size_t c = 0; c < shape->group_in; c++) {
        const char *x = call->x + (item * shape->in_channels + group * shape->group_in + c) *
                                      axis->size * bytes;
        char *spectrum = work->inputs + c * fft_spectrum_bytes(spectral->fft);
        if (spectral->half.used) {
            spectral_forward_half(spectral, spectrum, x, work->samples, work->scratch);
            continue;
        }
        samples_window(work->samples, x, axis->size, first, 1, spectral->n, bytes);
        fft_forward(spectral->fft, spectrum, work->samples, work->scratch);
    }
}

// Spectra of a block of outputs, the last one first, so that products correlate.
static void transform_outputs(const struct call *call, size_t item, size_t group, size_t block,
                              struct work *work)
{
    const struct spectral *spectral = call->plan->state;
    const struct shape *shape = &spectral->shape;
    const struct axis *axis = &shape->axis[0];
    const bool half = spectral->half.used;
    // Half a transform ends with the last output there is; blocks all end after `hop`.
    const size_t bytes = shape->sample_bytes,
                 hop = half ? (axis->out - 1) * axis->stride + 1 : spectral->hop;
    const size_t p = (block * hop + axis->stride - 1) / axis->stride;
    const size_t end = ((block + 1) * hop + axis->stride - 1) / axis->stride,
                 last = end < axis->out ? end : axis->out;
    const size_t samples = half ? spectral->n / 2 : spectral->n;
    for (size_t k = 0; k < shape->group_out; k++) {
        const size_t channel = item * shape->out_channels + group * shape->group_out + k;
        char *spectrum = work->outputs + k * fft_spectrum_bytes(spectral->fft);
        if (last - p < samples) memset(work->samples, 0, samples * bytes);
        if (last > p)
            samples_reverse(
                work->samples + (hop - 1 - ((last - 1) * axis->stride - block * hop)) * bytes,
                axis->stride, call->gy + (channel * axis->out + p) * bytes, 1, last - p, bytes);
        if (half)
            fft_forward_half(spectral->fft, spectrum, work->samples, work->samples, work->scratch);
        else fft_forward(spectral->fft, spectrum, work->samples, work->scratch);
    }
}

// sums[cell] += or = products of a term.
static void add_products(const struct call *call, char *sums, bool first, const struct work *work)
{
    const struct spectral *spectral = call->plan->state;
    const struct shape *shape = &spectral->shape;
    const size_t bytes = fft_spectrum_bytes(spectral->fft);
    const struct cmac_terms terms = {.slots = 1, .multiple = 1, .sums = 1, .fresh = {first}};
    for (size_t cell = 0; cell < group_cells(shape); cell++) {
        void *sum = sums + cell * bytes;
        const struct cmac_path line = {.x = work->inputs + cell % shape->group_in * bytes,
                                       .h = work->outputs + cell / shape->group_in * bytes,
                                       .count = 1,
                                       .x_pitch = 1,
                                       .h_pitch = 1};
        call->plan->kernels->cmac_partitions(&sum, &terms, &line, 1, 0, fft_lines(spectral->fft));
    }
}

// One task: one run of terms of one group.
static void sum_run(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct spectral *spectral = call->plan->state;
    const struct shape *shape = &spectral->shape;
    const size_t runs = (size_t)call->plan->choice.variant, group = task / runs, run = task % runs;
    const size_t blocks = spectral_blocks(shape, spectral->hop),
                 terms = terms_of(shape, spectral->hop);
    const size_t first = run * terms / runs, end = (run + 1) * terms / runs;
    struct work work = work_of(call, worker);
    char *sums = runs > 1 ? shared_sums(call, group, run) : work.sums;
    for (size_t term = first; term < end; term++) {
        transform_inputs(call, term / blocks, group, term % blocks, &work);
        transform_outputs(call, term / blocks, group, term % blocks, &work);
        add_products(call, sums, term == first, &work);
    }
    for (size_t cell = 0; runs == 1 && cell < group_cells(shape); cell++)
        store_cell(call, group, cell, sums + cell * fft_spectrum_bytes(spectral->fft), &work);
}

// One task: one cell, its sums of all runs.
static void finish_cell(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct spectral *spectral = call->plan->state;
    const struct shape *shape = &spectral->shape;
    const size_t runs = (size_t)call->plan->choice.variant,
                 bytes = fft_spectrum_bytes(spectral->fft);
    const size_t group = task / group_cells(shape), cell = task % group_cells(shape);
    const size_t between = group_cells(shape) * bytes;
    char *sums = shared_sums(call, group, 0) + cell * bytes;
    struct work work = work_of(call, worker);
    split_k_reduce_tree(call->plan->kernels, sums, sums + between, between, runs,
                  bytes / shape->scalar_bytes);
    store_cell(call, group, cell, sums, &work);
}

void spectral_weight_run(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                         void *workspace)
{
    const struct spectral *spectral = plan->state;
    const struct shape *shape = &spectral->shape;
    const size_t runs = (size_t)plan->choice.variant;
    struct call call = {plan, gw, x, gy, workspace, (char *)workspace + plan->choice.shared};
    thread_loop(plan->threads, shape->groups * runs, sum_run, &call);
    if (runs > 1)
        thread_loop(plan->threads, shape->groups * group_cells(shape), finish_cell, &call);
}
