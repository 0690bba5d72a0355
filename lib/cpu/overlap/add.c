// SPDX-License-Identifier: MIT
// cpu/overlap-add: each block is transformed alone, and its result, which is span - 1 samples
// longer, is added to the outputs. A signal is split into chunks of blocks, which are computed in K
// steps: step k computes every K-th chunk from chunk k on in parallel. The results of K
// neighbouring chunks are longer than the overlap, so no two threads write one sample at a time
// (decision 3). Source: Stockham, High-speed convolution and correlation, AFIPS 1966; Oppenheim &
// Schafer, 8.7.3.
#include <string.h>

#include "cpu/conv/finish.h"
#include "overlap.h"

// Chunks of one block in as few steps as their overlap needs, or in so many; else long chunks.
static const char *const add_variants[] = {"steps",   "2-steps", "3-steps", "4-steps", "5-steps",
                                           "6-steps", "7-steps", "8-steps", NULL};

// Blocks lie at multiples of hop in x; block b yields the full result from b*hop on. Chunks are the
// same for any number of threads.
struct add_split {
    struct range blocks;  // that reach the outputs asked for
    size_t chunk, chunks; // blocks of a chunk; chunks of a signal
    size_t steps, tasks;  // every steps-th chunk is computed at a time: at most so many
};

static struct add_split split_signal(const struct axis *axis, size_t hop, int variant)
{
    const size_t overlap = axis->span - 1;
    const struct windows results = {0, hop, hop + overlap};
    const struct range wanted = {causal_first(axis), (axis->out - 1) * axis->stride + 1};
    struct add_split ret = {.chunk = variant == ANY_VARIANT ? 8 * overlap / hop + 8 : 1};
    ret.blocks =
        range_within(windows_outputs(&results, wanted), 0, (ptrdiff_t)ceil_div(axis->size, hop));
    ret.chunks = size_max(ceil_div(ret.blocks.size, ret.chunk), 1); // one clears, without blocks
    ret.steps = ceil_div(overlap, ret.chunk * hop) + 1;
    if (variant > 0) ret.steps = size_max(ret.steps, (size_t)variant + 1);
    ret.tasks = ceil_div(ret.chunks, ret.steps);
    return ret;
}

// Transforms whose blocks need more steps than the variant has are left out.
static bool add_estimate_size(const struct request *request, size_t n, double moves, double limit,
                              struct estimate *ret)
{
    if (!overlap_estimate_filtering(request, n, moves, limit, ret)) return false;
    ret->variant = request->variant;
    const size_t steps = split_signal(&request->shape->axis[0], ret->hop, ret->variant).steps;
    return ret->applicable = ret->variant < 1 || steps == (size_t)ret->variant + 1;
}

static void add_estimate(const struct request *request, struct estimate *ret)
{
    overlap_search(request, add_estimate_size, 3, ret);
}

struct add_call {
    const struct partita_filter *filter;
    char *y;
    const char *x;
    char *workspace;
    struct add_split split;
    size_t step; // the chunks step, step + steps, .. are computed
};

// The outputs at full rate that are in a range of the full result, as far as they are asked for.
static struct block_outputs add_outputs(const struct axis *axis, struct range results)
{
    results.first -= causal_first(axis);
    const struct range kept = range_within(results, 0, PTRDIFF_MAX);
    struct block_outputs ret =
        block_outputs(axis, (size_t)kept.first, (size_t)kept.first + kept.size);
    ret.skip += (size_t)(kept.first - results.first);
    return ret;
}

// Adds the full result's samples from q on, those of one block, to the outputs of a channel.
static void add_result(const struct partita_plan *plan, char *y, size_t q, const char *samples)
{
    const struct axis *axis = &plan->shape.axis[0];
    const size_t bytes = plan->shape.sample_bytes, reals = plan->shape.complex_signal ? 2 : 1;
    const size_t n = overlap_of(plan)->hop + axis->span - 1;
    const struct block_outputs out = add_outputs(axis, (struct range){(ptrdiff_t)q, n});
    y += out.first * bytes, samples += out.skip * bytes;
    const size_t each = axis->stride == 1 ? out.count : 1;
    for (size_t i = 0; i < out.count; i += each)
        plan->kernels->add(y + i * bytes, samples + i * axis->stride * bytes, each * reals);
}

// Clears the outputs from a chunk of the first step to the next one of this step, those at the ends
// with all others there.
static void clear_outputs(const struct add_call *call, size_t chunk, char *y)
{
    const struct partita_plan *plan = call->filter->plan;
    const struct axis *axis = &plan->shape.axis[0];
    const struct add_split *split = &call->split;
    const size_t bytes = plan->shape.sample_bytes, length = split->chunk * overlap_of(plan)->hop;
    const size_t base = (size_t)split->blocks.first * overlap_of(plan)->hop;
    const ptrdiff_t first = chunk ? (ptrdiff_t)(base + chunk * length) : causal_first(axis);
    const ptrdiff_t end = chunk + split->steps < split->chunks
                              ? (ptrdiff_t)(base + (chunk + split->steps) * length)
                              : causal_first(axis) + (ptrdiff_t)(axis->out * axis->stride);
    if (end <= first) return;
    const struct block_outputs out =
        add_outputs(axis, (struct range){first, (size_t)(end - first)});
    for (size_t k = 0; k < plan->shape.group_out; k++)
        memset(y + (k * axis->out + out.first) * bytes, 0, out.count * bytes);
}

// One task: the blocks of one chunk, if there is one, of a group of an item of the batch.
static void add_chunk(void *context, size_t task, int worker)
{
    const struct add_call *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = &plan->shape;
    const struct overlap *overlap = overlap_of(plan);
    const struct add_split *split = &call->split;
    const size_t chunk = split->steps * (task % split->tasks) + call->step;
    const size_t first = chunk * split->chunk, row = task / split->tasks;
    const size_t bytes = shape->sample_bytes, size = shape->axis[0].size;
    const char *x = call->x + row * shape->group_in * size * bytes;
    char *y = call->y + row * shape->group_out * shape->axis[0].out * bytes;
    struct overlap_buffers buffers = overlap_worker_buffers(plan, call->workspace, worker);
    if (!call->step) clear_outputs(call, chunk, y);
    for (size_t i = first; i < size_min(first + split->chunk, split->blocks.size); i++) {
        const size_t begin = ((size_t)split->blocks.first + i) * overlap->hop;
        for (size_t c = 0; c < shape->group_in; c++) {
            samples_window(buffers.samples, x + c * size * bytes,
                           size_min(size, begin + overlap->hop), (ptrdiff_t)begin, 1, overlap->n,
                           bytes);
            overlap_transform(overlap, c, buffers.samples, &buffers);
        }
        for (size_t k = 0; k < shape->group_out; k++) {
            overlap_output(call->filter, row % shape->groups * shape->group_out + k, &buffers);
            add_result(plan, y + k * shape->axis[0].out * bytes, begin, buffers.samples);
        }
    }
}

static enum partita_status add_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter,
                                   const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    struct add_call call = {
        .filter = filter,
        .y = operands->to,
        .x = operands->from[0],
        .workspace = workspace,
        .split = split_signal(&shape->axis[0], overlap_of(plan)->hop, plan->choice.variant)};
    for (; call.step < call.split.steps; call.step++)
        thread_loop(plan->threads, shape->batch * shape->groups * call.split.tasks, add_chunk,
                    &call);
    conv_finish_outputs(plan, filter, operands->to);
    return PARTITA_OK;
}

const struct engine engine_overlap_add = {
    .name = "cpu/overlap-add",
    .variants = add_variants,
    .estimate = add_estimate,
    .state_bytes = sizeof(struct overlap),
    .plan_create = overlap_plan_create,
    .plan_destroy = overlap_plan_destroy,
    .directions = PARTITA_FORWARD,
    .filter = {.bytes = overlap_filter_bytes, .pack = overlap_filter_pack},
    .bounded = {.run = add_run},
};
