// SPDX-License-Identifier: MIT
// Backward weight by the blocks of cpu/overlap-save: gw[r] = sum over the batch and outputs q of
// gy[q] x[begin + q + r], r < span, is the correlation of the window of a block of outputs with
// these outputs. Spectra of these correlations add up over blocks and batch, and one inverse
// transform a path ends them. A term is a block of an item of the batch.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "overlap.h"
#include "product/split_k.h"

enum { TARGET_TASKS = 16 }; // groups are split into chunks of terms until there are so many

static size_t overlap_weight_terms(const struct shape *shape, size_t hop)
{
    return shape->batch * overlap_block_count(shape, hop);
}

static size_t group_paths(const struct shape *shape)
{
    return shape->group_in * shape->group_out;
}

// Sums of chunks; those of a lone chunk need no memory but the worker's.
static size_t sums_bytes(const struct shape *shape, size_t chunks, size_t spectrum)
{
    return chunks < 2 ? 0
                      : size_mul(chunks * shape->groups, size_mul(group_paths(shape), spectrum));
}

// As many chunks as there are tasks for, whose sums fit the workspace limit with one thread's
// `worker` bytes and hold no more than the operands do.
static size_t choose_chunks(const struct request *request, size_t terms, size_t spectrum,
                            size_t worker)
{
    const struct shape *shape = request->shape;
    const size_t operands =
        shape->sample_bytes * shape->batch *
        (shape->in_channels * shape_inputs(shape) + shape->out_channels * shape_outputs(shape));
    const size_t tasks = ceil_div(shape->groups, overlap_max_groups(shape));
    size_t chunks = size_min(ceil_div(TARGET_TASKS, tasks), terms);
    while (chunks > 1) {
        const size_t sums = sums_bytes(shape, chunks, spectrum);
        if (sums <= operands && size_add(sums, worker) <= request->workspace_limit) break;
        chunks--;
    }
    return chunks;
}

static bool estimate_weight(const struct request *request, size_t n, double moves, double limit,
                            struct estimate *ret)
{
    const struct shape *shape = request->shape;
    if (n < shape->axis[0].span) return false;
    const size_t hop = n - shape->axis[0].span + 1, spectrum = overlap_spectrum_bytes(shape, n);
    const size_t terms = overlap_weight_terms(shape, hop);
    // The transform's own scratch is at most three times its samples.
    const size_t operands = size_mul(shape->group_in + shape->group_out, spectrum);
    const size_t several = size_add(operands, 4 * mem_round(n * shape->sample_bytes) +
                                                  2 * overlap_rows_bytes(shape, n));
    const size_t chunks = choose_chunks(request, terms, spectrum, several);
    const size_t lone = overlap_max_groups(shape) * group_paths(shape);
    const size_t alone = chunks > 1 ? 0 : size_mul(lone, spectrum);
    const size_t worker = size_add(several, alone), shared = sums_bytes(shape, chunks, spectrum);
    if (worker > request->workspace_limit) return false;
    const double paths = (double)shape_path_count(shape), bins = (double)n / 2 + 1;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double fft = cost_model_fft(request->model, shape->f64, false, n);
    const double end = paths * (fft / 2 + (double)n * (double)(chunks + 1) * costs->work.copy);
    const double seconds = (double)terms * overlap_block_seconds(request, n, moves, fft) + end +
                           memory_seconds(request->model, shape);
    if (seconds >= limit) return false;
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const double transforms = (double)terms * channels + paths;
    // Errors of transforms grow as everywhere; products add up within a chunk.
    const double sums = 0.3 * sqrt((double)terms / (double)chunks + log2((double)chunks));
    *ret = (struct estimate){
        .applicable = true,
        .spread = 1,
        .transform = n,
        .hop = hop,
        .seconds = seconds,
        .flops = transforms * 2.5 * (double)n * log2((double)n) + 8 * (double)terms * paths * bins,
        .shared = shared,
        .worker = worker,
        .bytes = size_add(shared, worker),
        .error = shape_roundoff(shape) * hypot(1.3 * sqrt(log2((double)n)), sums),
    };
    estimate_store(ret, &chunks, sizeof chunks);
    return true;
}

void overlap_weight_estimate(const struct request *request, struct estimate *ret)
{
    overlap_search(request, estimate_weight, 1, ret);
}

size_t overlap_weight_shared(const struct overlap *overlap)
{
    return sums_bytes(&overlap->shape, overlap->chunks, overlap->fft->spectrum_bytes);
}

struct weight_call {
    const struct partita_plan *plan;
    const struct overlap *overlap;
    const struct operands *operands;
    char *workspace;
};

// A block of outputs of one of a task's groups of one item of the batch.
struct weight_term {
    struct overlap_groups groups;
    size_t group, block;
};

// Where a chunk keeps the sums of a group's paths, if there are several chunks.
static char *overlap_weight_sums(const struct weight_call *call, size_t group, size_t chunk)
{
    const size_t index = group * call->overlap->chunks + chunk;
    const size_t paths = group_paths(&call->overlap->shape);
    assert(call->overlap->chunks > 1);
    return call->workspace + index * paths * call->overlap->fft->spectrum_bytes;
}

// One inverse transform, and the taps in the caller's order: correlation counts them as lags go.
static void store_path(const struct weight_call *call, size_t path, char *sum,
                       struct overlap_buffers *buffers)
{
    const struct overlap *overlap = call->overlap;
    const struct axis *axis = &overlap->shape.axis[0];
    const size_t bytes = overlap->shape.sample_bytes;
    char *gw = (char *)call->operands->to + path * axis->kernel * bytes;
    char *samples = buffers->samples, *lags = samples;
    if (overlap->half.used) {
        lags += overlap->half.first * bytes;
        fft_inverse_half(overlap->fft, samples, sum, samples, buffers->scratch);
    } else {
        lags += (overlap->hop - 1) * bytes;
        fft_inverse(overlap->fft, samples, sum, buffers->scratch);
    }
    call->plan->kernels->scale(lags, lags, 1 / overlap->fft->gain, axis->span);
    if (overlap->shape.flip) samples_reverse(gw, 1, lags, axis->dilation, axis->kernel, bytes);
    else samples_copy(gw, 1, lags, axis->dilation, axis->kernel, bytes);
}

// Spectra of the windows that a block of outputs reads.
static void overlap_weight_inputs(const struct weight_call *call, const struct weight_term *term,
                                  struct overlap_buffers *buffers)
{
    const struct overlap *overlap = call->overlap;
    const size_t inputs = overlap->shape.group_in;
    const ptrdiff_t first = overlap->shape.axis[0].begin + (ptrdiff_t)(term->block * overlap->hop);
    const struct overlap_rows rows = overlap_input_rows(overlap, &term->groups, first);
    for (size_t c = 0; c < inputs; c++)
        overlap_transform(overlap, c,
                          overlap_read_row(call->plan, &rows, buffers->x_rows,
                                           call->operands->from[0], term->group * inputs + c),
                          buffers);
}

// Spectra of a block of outputs, the last one first, so that products correlate.
static void overlap_weight_outputs(const struct weight_call *call, const struct weight_term *term,
                                   struct overlap_buffers *buffers)
{
    const struct overlap *overlap = call->overlap;
    const struct shape *shape = &overlap->shape;
    const struct axis *axis = &shape->axis[0];
    const bool half = overlap->half.used;
    char *samples = buffers->samples;
    // Half a transform ends with the last output there is; blocks all end after `hop`.
    const size_t hop = half ? (axis->out - 1) * axis->stride + 1 : overlap->hop;
    const size_t bytes = shape->sample_bytes, n = half ? overlap->n / 2 : overlap->n;
    const struct block_outputs out =
        block_outputs(axis, term->block * hop, (term->block + 1) * hop);
    const struct overlap_rows rows = overlap_output_rows(overlap, &term->groups, &out);
    for (size_t k = 0; k < shape->group_out; k++) {
        const char *row =
            overlap_read_row(call->plan, &rows, buffers->y_rows, call->operands->from[1],
                             term->group * shape->group_out + k);
        char *spectrum = buffers->output + k * overlap->fft->spectrum_bytes;
        if (out.count < n) memset(samples, 0, n * bytes);
        if (out.count) {
            const size_t last = out.skip + (out.count - 1) * axis->stride;
            assert(last < hop && hop - 1 < n);
            samples_reverse(samples + (hop - 1 - last) * bytes, axis->stride, row, 1, out.count,
                            bytes);
        }
        if (half) fft_forward_half(overlap->fft, spectrum, samples, samples, buffers->scratch);
        else fft_forward(overlap->fft, spectrum, samples, buffers->scratch);
    }
}

// sums[path] += or = products of a term.
static void add_term(const struct weight_call *call, char *sums, bool overwrite,
                     const struct overlap_buffers *buffers)
{
    const struct shape *shape = &call->overlap->shape;
    const size_t bytes = call->overlap->fft->spectrum_bytes;
    const struct cmac_terms terms = {
        .slots = 1, .multiple = 1, .sums = 1, .overwrite = {overwrite}};
    for (size_t path = 0; path < group_paths(shape); path++) {
        void *sum = sums + path * bytes;
        const struct cmac_path factors = {.x = buffers->inputs + path % shape->group_in * bytes,
                                          .h = buffers->output + path / shape->group_in * bytes,
                                          .count = 1,
                                          .x_pitch = 1,
                                          .h_pitch = 1};
        call->plan->kernels->cmac_partitions(&sum, &terms, &factors, 1, 0,
                                             call->overlap->fft->lines);
    }
}

// One task: one chunk of terms of some groups.
static void overlap_weight_chunk(void *context, size_t task, int worker)
{
    const struct weight_call *call = context;
    const struct overlap *overlap = call->overlap;
    const struct shape *shape = &overlap->shape;
    const size_t chunks = overlap->chunks, chunk = task % chunks, paths = group_paths(shape);
    const size_t bytes = overlap->fft->spectrum_bytes;
    const size_t blocks = overlap_block_count(shape, overlap->hop);
    const size_t terms = overlap_weight_terms(shape, overlap->hop);
    const size_t first = chunk * terms / chunks, end = (chunk + 1) * terms / chunks;
    struct overlap_buffers buffers = overlap_worker_buffers(call->plan, call->workspace, worker);
    struct weight_term term = {.groups = overlap_groups_at(shape, 0, task / chunks)};
    for (size_t i = first; i < end; i++) {
        term.groups.item = i / blocks, term.block = i % blocks;
        for (term.group = 0; term.group < term.groups.count; term.group++) {
            const size_t group = term.groups.first + term.group;
            char *lone = buffers.sums + term.group * paths * bytes;
            overlap_weight_inputs(call, &term, &buffers);
            overlap_weight_outputs(call, &term, &buffers);
            add_term(call, chunks > 1 ? overlap_weight_sums(call, group, chunk) : lone, i == first,
                     &buffers);
        }
    }
    for (size_t path = 0; chunks == 1 && path < term.groups.count * paths; path++)
        store_path(call, term.groups.first * paths + path, buffers.sums + path * bytes, &buffers);
}

// One task: one path, its sums of all chunks.
static void finish_path(void *context, size_t task, int worker)
{
    const struct weight_call *call = context;
    const struct shape *shape = &call->overlap->shape;
    const size_t bytes = call->overlap->fft->spectrum_bytes, paths = group_paths(shape);
    char *sums = overlap_weight_sums(call, task / paths, 0) + task % paths * bytes;
    struct overlap_buffers buffers = overlap_worker_buffers(call->plan, call->workspace, worker);
    split_k_reduce_tree(call->plan->kernels, sums, sums + paths * bytes, paths * bytes,
                        call->overlap->chunks, bytes / shape->scalar_bytes);
    store_path(call, task, sums, &buffers);
}

void overlap_weight_run(const struct partita_plan *plan, const struct operands *operands,
                        char *workspace)
{
    const struct overlap *overlap = overlap_of(plan);
    const size_t groups = overlap->shape.groups;
    struct weight_call call = {plan, overlap, operands, workspace};
    thread_loop(plan->threads,
                ceil_div(groups, overlap_max_groups(&overlap->shape)) * overlap->chunks,
                overlap_weight_chunk, &call);
    if (overlap->chunks > 1)
        thread_loop(plan->threads, groups * group_paths(&overlap->shape), finish_path, &call);
}
