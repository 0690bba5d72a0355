// SPDX-License-Identifier: MIT
// cpu/overlap-save (also called overlap-discard): each block is transformed together with the
// span-1 samples before it; the outputs that the transform wraps around are discarded. Backward
// data is the same with the adjoint problem. Source: Stockham, High-speed convolution and
// correlation, AFIPS 1966; Oppenheim & Schafer, 8.7.3.
#include "cpu/conv/finish.h"
#include "overlap.h"

// Halves are moved where they do not lie in place, and then half of their samples.
static bool save_estimate_size(const struct request *request, size_t n, double moves, double limit,
                               struct estimate *ret)
{
    const struct axis *axis = &request->shape->axis[0];
    struct overlap_half half;
    if (overlap_fits_half(request->shape, n, false, &half)) {
        const bool reads = half.at < 0 || (size_t)half.at + n / 2 > axis->size;
        const bool writes = axis->stride > 1 || axis->out != n / 2;
        moves = 0.5 * (reads + writes);
    }
    return overlap_estimate_filtering(request, n, moves, limit, ret);
}

static void save_estimate(const struct request *request, struct estimate *ret)
{
    struct request forward = *request;
    struct shape adjoint;
    if (request->direction == PARTITA_BACKWARD_WEIGHT) {
        overlap_weight_estimate(request, ret);
        return;
    }
    if (request->direction == PARTITA_BACKWARD_DATA) {
        if (!shape_forward(request->shape, request->direction, &adjoint, ret->reason,
                           sizeof ret->reason))
            return;
        forward.shape = &adjoint;
    }
    overlap_search(&forward, save_estimate_size, 2, ret);
}

static enum partita_status save_plan_create(struct partita_plan *plan,
                                            const struct request *request)
{
    const enum partita_status status = overlap_plan_create(plan, request);
    if (status != PARTITA_OK) return status;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    struct overlap *overlap = plan->state;
    const bool half = overlap_fits_half(&overlap->shape, overlap->n, weight, &overlap->half);
    if (weight) {
        plan->choice.shared = overlap_weight_shared(overlap);
    } else if (!plan->shape.stream && !half && overlap_is_long(overlap)) {
        overlap->shared = true;
        plan->choice.shared = plan->choice.worker;
        plan->choice.worker = 0;
    }
    return PARTITA_OK;
}

struct save_call {
    const struct partita_filter *filter;
    char *y;
    const char *x;
    char *workspace;
    size_t blocks;        // of a row
    size_t chunk, chunks; // blocks of a task; tasks of a row
};

// A block of some groups.
struct save_block {
    const struct save_call *call;
    struct overlap_groups groups;
    struct overlap_rows from, to;
    size_t skip; // samples of the block before its first output
    bool whole;  // all samples of a transform may be written to rows of the result; those before
                 // its outputs are outputs of the block before
};

// The outputs of a channel of the groups. A row of the buffer has space for a whole transform.
static void save_output(const struct save_block *at, size_t channel,
                        struct overlap_buffers *buffers)
{
    const struct partita_filter *filter = at->call->filter;
    const struct overlap *overlap = overlap_of(filter->plan);
    const struct overlap_rows *to = &at->to;
    const size_t stride = overlap->shape.axis[0].stride, bytes = overlap->shape.sample_bytes;
    const size_t before = overlap->before * bytes;
    const size_t output = at->groups.first * overlap->shape.group_out + channel;
    const bool half = overlap->half.used, whole = to->transposed ? stride == 1 : at->whole;
    const bool in_place = half ? stride == 1 && to->n == overlap->n / 2 : whole;
    char *rows = buffers->y_rows + before, *row = overlap_row_to(to, rows, at->call->y, channel);
    char *samples = in_place ? row : buffers->samples;
    overlap_sum(filter, output, buffers);
    if (half) {
        fft_inverse_half(overlap->fft, samples, buffers->output, buffers->samples,
                         buffers->scratch);
    } else {
        if (in_place) samples -= before;
        fft_inverse(overlap->fft, samples, buffers->output, buffers->scratch);
        samples += before + at->skip * bytes;
    }
    if (!in_place) samples_copy(row, 1, samples, stride, to->n, bytes);
    conv_finish_row(filter->plan, filter, output, row, to->n);
    overlap_write_row(filter->plan, to, at->call->y, rows, channel);
}

// Of longer blocks, prefetched lines would leave the L2 cache again.
enum { AHEAD_BYTES = 1 << 16 };

// The spectrum of input c of a group, as overlap_transform. Lines of the first output channel that
// will be written in place are prefetched step by step: the last pass writes to so many places at
// once that the hardware does not prefetch them. The last lines of the transform were written with
// the block before.
static void save_transform_ahead(const struct overlap *overlap, size_t c, const char *samples,
                                 const char *y, struct overlap_buffers *buffers)
{
    const struct fft *fft = overlap->fft;
    const size_t lines = overlap->hop * overlap->shape.sample_bytes / MEM_ALIGN;
    size_t line = 0;
    for (size_t step = 0; step < fft->steps; step++) {
        fft_forward_steps(fft, buffers->inputs + c * fft->spectrum_bytes, samples, buffers->scratch,
                          (struct fft_steps){step, step + 1});
        for (const size_t end = lines * (step + 1) / fft->steps; line < end; line++)
            __builtin_prefetch(y + line * MEM_ALIGN, 1, 2);
    }
}

static void save_block(const struct save_block *at, struct overlap_buffers *buffers)
{
    const struct save_call *call = at->call;
    const struct partita_plan *plan = call->filter->plan;
    const struct overlap *overlap = overlap_of(plan);
    const size_t group_in = overlap->shape.group_in, group_out = overlap->shape.group_out;
    const size_t bytes = overlap->shape.sample_bytes, before = overlap->before * bytes;
    const bool ahead = at->whole && !at->to.transposed && overlap->hop * bytes <= AHEAD_BYTES;
    for (size_t group = 0; group < at->groups.count; group++) {
        for (size_t c = 0; c < group_in; c++) {
            const char *window =
                overlap_read_row(plan, &at->from, buffers->x_rows, call->x, group * group_in + c);
            if (ahead && c + 1 == group_in)
                save_transform_ahead(
                    overlap, c, window,
                    overlap_row_to(&at->to, NULL, call->y, group * group_out) - before, buffers);
            else overlap_transform(overlap, c, window, buffers);
        }
        for (size_t k = 0; k < group_out; k++) save_output(at, group * group_out + k, buffers);
    }
}

// One task: neighbouring blocks, last to first: so a block may write over outputs of the one before
// it. Tasks of one group follow each other: its filters stay in the cache.
static void save_task(void *context, size_t task, int worker)
{
    const struct save_call *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct overlap *overlap = overlap_of(plan);
    const struct shape *shape = &overlap->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t row = task / call->chunks, first = task % call->chunks * call->chunk;
    struct save_block at = {
        .call = call, .groups = overlap_groups_at(shape, row % shape->batch, row / shape->batch)};
    struct overlap_buffers buffers = overlap_worker_buffers(plan, call->workspace, worker);
    for (size_t block = size_min(first + call->chunk, call->blocks); block-- > first;) {
        const size_t begin = block * overlap->hop, end = begin + overlap->hop;
        const struct block_outputs outputs = block_outputs(axis, begin, end);
        at.from = overlap_input_rows(overlap, &at.groups, overlap_block_begin(overlap, begin));
        at.to = overlap_output_rows(overlap, &at.groups, &outputs);
        at.skip = outputs.skip;
        at.whole = block > first && axis->stride == 1 && overlap->before < overlap->hop &&
                   end <= axis->out;
        save_block(&at, &buffers);
    }
}

// The signals one after the other, each by all threads.
static void save_long(const struct save_call *call)
{
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = &overlap_of(plan)->shape;
    const struct axis *axis = &shape->axis[0];
    const struct overlap_buffers buffers = overlap_worker_buffers(plan, call->workspace, 0);
    for (size_t i = 0; i < shape->batch * shape->groups; i++)
        overlap_long_filter(call->filter, i % shape->groups,
                            call->y + i * axis->out * shape->sample_bytes,
                            call->x + i * axis->size * shape->sample_bytes, &buffers);
    conv_finish_outputs(plan, call->filter, call->y);
}

static enum partita_status save_run(const struct partita_plan *plan,
                                    const struct partita_filter *filter,
                                    const struct operands *operands, void *workspace)
{
    const struct overlap *overlap = overlap_of(plan);
    const struct shape *shape = &overlap->shape;
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) {
        overlap_weight_run(plan, operands, workspace);
        return PARTITA_OK;
    }
    struct save_call call = {.filter = filter,
                             .y = operands->to,
                             .x = operands->from[0],
                             .workspace = workspace,
                             .blocks = overlap_block_count(shape, overlap->hop)};
    // Large tasks copy less, small ones let threads finish together.
    const size_t tasks = plan->threads > 1 ? 32 * (size_t)plan->threads : 1;
    const size_t rows = shape->batch * ceil_div(shape->groups, overlap_max_groups(shape));
    call.chunk = size_max(call.blocks / tasks, 1);
    call.chunks = ceil_div(call.blocks, call.chunk);
    if (overlap->shared) save_long(&call);
    else thread_loop(plan->threads, rows * call.chunks, save_task, &call);
    return PARTITA_OK;
}

const struct engine engine_overlap_save = {
    .name = "cpu/overlap-save",
    .estimate = save_estimate,
    .state_bytes = sizeof(struct overlap),
    .plan_create = save_plan_create,
    .plan_destroy = overlap_plan_destroy,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .channels_last = true,
    .filter = {.bytes = overlap_filter_bytes, .pack = overlap_filter_pack},
    .bounded = {.run = save_run},
    .stream = {.layout = overlap_stream_layout,
               .step = overlap_stream_step,
               .region = overlap_stream_region,
               .swap_begin = overlap_swap_begin,
               .swap_end = overlap_swap_end,
               .plan_load = overlap_stream_load},
};
