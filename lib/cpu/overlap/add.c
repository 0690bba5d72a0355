// SPDX-License-Identifier: MIT
// cpu/overlap-add: each block is transformed alone; the span-1 samples by which its result is
// longer are added to the next ones. A signal is split into chunks of blocks. A chunk carries its
// overlap along by itself, and the overlap at its end is added afterwards, so chunks are computed
// in parallel and no two of them write one sample (decision 3). Source: Stockham, High-speed
// convolution and correlation, AFIPS 1966; Oppenheim & Schafer, 8.7.3.
#include <assert.h>
#include <string.h>

#include "cpu/conv/finish.h"
#include "overlap.h"

// How a signal is split, the same for any number of threads. Blocks lie at multiples of hop in x;
// block b yields the full result from b*hop on.
struct add_chunks {
    size_t first, blocks; // blocks that reach the outputs asked for
    size_t length, count; // blocks of a chunk, chunks
};

static struct add_chunks add_chunks_of(const struct shape *shape, size_t hop)
{
    const struct axis *axis = &shape->axis[0];
    const struct windows results = {0, hop, hop + axis->span - 1};
    const struct range wanted = {causal_first(axis), (axis->out - 1) * axis->stride + 1};
    const struct range blocks =
        range_within(windows_outputs(&results, wanted), 0, (ptrdiff_t)ceil_div(axis->size, hop));
    struct add_chunks chunks = {.first = (size_t)blocks.first, .blocks = blocks.size};
    // The overlap at the end of a chunk is at most an eighth of it.
    chunks.length = 8 * (axis->span - 1) / hop + 8;
    chunks.count = ceil_div(chunks.blocks, chunks.length);
    return chunks;
}

// The overlap at the end of a chunk, of all outputs of a group.
static size_t carried_bytes(const struct shape *shape)
{
    return mem_round(size_mul(shape->group_out, (shape->axis[0].span - 1) * shape->sample_bytes));
}

static void add_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    overlap_search(request, overlap_estimate_filtering, 3, ret);
    if (!ret->applicable) return;
    const size_t chunks = shape->batch * shape->groups * add_chunks_of(shape, ret->hop).count;
    ret->shared = size_mul(chunks, carried_bytes(shape));
    ret->bytes = size_add(ret->bytes, ret->shared);
}

// Adds the overlap of earlier blocks to the first samples of this block's result, and keeps its own
// overlap.
static void carry_overlap(const struct partita_plan *plan, char *samples, char *carried)
{
    const struct shape *shape = &plan->shape;
    const size_t length = shape->axis[0].span - 1, hop = overlap_of(plan)->hop;
    const size_t bytes = shape->sample_bytes, reals = shape->complex_signal ? 2 : 1;
    if (length <= hop) {
        plan->kernels->add(samples, carried, length * reals);
        memcpy(carried, samples + hop * bytes, length * bytes);
    } else {
        plan->kernels->add(samples, carried, hop * reals);
        memmove(carried, carried + hop * bytes, (length - hop) * bytes);
        memset(carried + (length - hop) * bytes, 0, hop * bytes);
        plan->kernels->add(carried, samples + hop * bytes, length * reals);
    }
}

struct add_call {
    const struct partita_filter *filter;
    char *y;
    const char *x;
    char *workspace; // carried_bytes a chunk, then buffers a thread
    struct add_chunks chunks;
};

// Writes or adds the full result's samples from q on to those outputs that are asked for.
static void put_outputs(const struct partita_plan *plan, char *y, size_t q, const char *samples,
                        size_t n, bool add)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t bytes = shape->sample_bytes, stride = axis->stride;
    const size_t reals = shape->complex_signal ? 2 : 1;
    // Positions among full-rate outputs; those before the first are left out.
    const struct range all = {(ptrdiff_t)q - causal_first(axis), n};
    const struct range kept = range_within(all, 0, PTRDIFF_MAX);
    const struct block_outputs out =
        block_outputs(axis, (size_t)kept.first, (size_t)kept.first + kept.size);
    if (!out.count) return;
    y += out.first * bytes;
    samples += ((size_t)(kept.first - all.first) + out.skip) * bytes;
    if (!add) samples_copy(y, 1, samples, stride, out.count, bytes);
    else if (stride == 1) plan->kernels->add(y, samples, out.count * reals);
    else
        for (size_t i = 0; i < out.count; i++)
            plan->kernels->add(y + i * bytes, samples + i * stride * bytes, reals);
}

// Where a task is: a chunk of one group of one item of the batch.
struct add_task {
    size_t first, end; // blocks
    size_t output;     // of the group's first channel in the filter
    const char *x;     // of the group's first channels
    char *y;
    char *carried; // [group_out][span - 1]
};

static struct add_task add_task_of(const struct add_call *call, size_t task)
{
    const struct shape *shape = &call->filter->plan->shape;
    const struct axis *axis = &shape->axis[0];
    const struct add_chunks *chunks = &call->chunks;
    const size_t group = task / chunks->count, chunk = task % chunks->count;
    const size_t end = size_min((chunk + 1) * chunks->length, chunks->blocks);
    return (struct add_task){
        .first = chunks->first + chunk * chunks->length,
        .end = chunks->first + end,
        .output = group % shape->groups * shape->group_out,
        .x = call->x + group * shape->group_in * axis->size * shape->sample_bytes,
        .y = call->y + group * shape->group_out * axis->out * shape->sample_bytes,
        .carried = call->workspace + task * carried_bytes(shape)};
}

// One task: the blocks of one chunk, overlap carried from each to the next.
static void filter_chunk(void *context, size_t task, int worker)
{
    const struct add_call *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = &plan->shape;
    const struct overlap *overlap = overlap_of(plan);
    const struct add_task at = add_task_of(call, task);
    const size_t bytes = shape->sample_bytes, length = (shape->axis[0].span - 1) * bytes;
    const size_t size = shape->axis[0].size;
    struct overlap_buffers buffers = overlap_worker_buffers(plan, call->workspace, worker);
    memset(at.carried, 0, carried_bytes(shape));
    for (size_t block = at.first; block < at.end; block++) {
        const size_t first = block * overlap->hop, end = size_min(size, first + overlap->hop);
        for (size_t c = 0; c < shape->group_in; c++) {
            samples_window(buffers.samples, at.x + c * size * bytes, end, (ptrdiff_t)first, 1,
                           overlap->n, bytes);
            overlap_transform(overlap, c, buffers.samples, &buffers);
        }
        for (size_t k = 0; k < shape->group_out; k++) {
            overlap_output(call->filter, at.output + k, &buffers);
            carry_overlap(plan, buffers.samples, at.carried + k * length);
            put_outputs(plan, at.y + k * shape->axis[0].out * bytes, first, buffers.samples,
                        overlap->hop, false);
        }
    }
}

// One task: the overlap of a chunk is added to the outputs of the chunk after it; behind the last
// one there are none.
static void add_gather_overlap(void *context, size_t task, int worker)
{
    (void)worker;
    const struct add_call *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct add_task at = add_task_of(call, task);
    const size_t length = plan->shape.axis[0].span - 1, bytes = plan->shape.sample_bytes;
    for (size_t k = 0; k < plan->shape.group_out; k++)
        put_outputs(plan, at.y + k * plan->shape.axis[0].out * bytes,
                    at.end * overlap_of(plan)->hop, at.carried + k * length * bytes, length, true);
}

static enum partita_status add_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter,
                                   const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t hop = overlap_of(plan)->hop;
    struct add_call call = {filter, operands->to, operands->from[0], workspace,
                            add_chunks_of(shape, hop)};
    // Outputs that no block starts on: those before the signal, and those behind its last block.
    const ptrdiff_t begin = causal_first(axis);
    const ptrdiff_t end = begin + (ptrdiff_t)((axis->out - 1) * axis->stride);
    if (begin < 0 || end >= (ptrdiff_t)((call.chunks.first + call.chunks.blocks) * hop))
        memset(operands->to, 0,
               shape->batch * shape->out_channels * axis->out * shape->sample_bytes);
    const size_t tasks = shape->batch * shape->groups * call.chunks.count;
    assert(tasks * carried_bytes(shape) <= plan->choice.shared);
    thread_loop(plan->threads, tasks, filter_chunk, &call);
    thread_loop(plan->threads, tasks, add_gather_overlap, &call);
    conv_finish_outputs(plan, filter, operands->to);
    return PARTITA_OK;
}

const struct engine engine_overlap_add = {
    .name = "cpu/overlap-add",
    .estimate = add_estimate,
    .state_bytes = sizeof(struct overlap),
    .plan_create = overlap_plan_create,
    .plan_destroy = overlap_plan_destroy,
    .directions = PARTITA_FORWARD,
    .filter = {.bytes = overlap_filter_bytes, .pack = overlap_filter_pack},
    .bounded = {.run = add_run},
};
