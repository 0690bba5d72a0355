// SPDX-License-Identifier: MIT
// cpu/overlap-save (also called overlap-discard): each block is transformed together with the
// span-1 samples before it; the outputs that the transform wraps around are discarded. Backward
// data is the same with the adjoint problem; backward weight is spectral_weight.c's. Source:
// Stockham, High-speed convolution and correlation, AFIPS 1966; Oppenheim & Schafer, 8.7.3.
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "cpu/conv/finish.h"
#include "geometry/samples.h"
#include "spectral.h"
#include "stream/stream.h"
#include "weight.h"

// Halves are moved where they do not lie in place, and then half of their samples.
static bool consider_save(const struct request *request, size_t n, double moves, double limit,
                          struct estimate *ret)
{
    const struct axis *axis = &request->shape->axis[0];
    struct spectral_half half;
    if (spectral_fits_half(request->shape, n, false, &half)) {
        const bool reads = half.at < 0 || (size_t)half.at + n / 2 > axis->size;
        const bool writes = axis->stride > 1 || axis->out != n / 2;
        moves = 0.5 * (reads + writes);
    }
    return spectral_filtering(request, n, moves, limit, ret);
}

static void save_estimate(const struct request *request, struct estimate *ret)
{
    struct request run = *request;
    struct shape adjoint;
    if (request->direction == PARTITA_BACKWARD_DATA) {
        if (!shape_forward(request->shape, request->direction, &adjoint, ret->reason,
                           sizeof ret->reason))
            return;
        run.shape = &adjoint;
    }
    if (request->direction == PARTITA_BACKWARD_WEIGHT) spectral_weight_estimate(&run, ret);
    else spectral_search(&run, consider_save, 2, ret);
}

static enum partita_status save_plan_create(struct partita_plan *plan,
                                            const struct request *request)
{
    const enum partita_status status = spectral_plan_create(plan, request);
    if (status != PARTITA_OK) return status;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    struct spectral *spectral = plan->state;
    const bool half = spectral_fits_half(&spectral->shape, spectral->n, weight, &spectral->half);
    if (weight) {
        spectral_weight_sizes(plan);
    } else if (!half && plan->threads > 1 && spectral_is_long(&spectral->shape, spectral->fft)) {
        spectral->together = true;
        plan->choice.shared = plan->choice.worker;
        plan->choice.worker = 0;
    }
    return PARTITA_OK;
}

struct forward {
    const struct partita_filter *filter;
    char *y;
    const char *x;
    char *workspace;
    size_t blocks;
};

// The window of one input channel whose first output is at q: in place where it lies inside the
// signal.
static const void *window(const struct partita_plan *plan, const char *x, ptrdiff_t q,
                          char *samples)
{
    const struct spectral *spectral = plan->state;
    const struct shape *shape = &spectral->shape;
    const struct axis *axis = &shape->axis[0];
    const ptrdiff_t first = q - (ptrdiff_t)(axis->span - 1);
    if (first >= 0 && (size_t)first + spectral->n <= axis->size)
        return x + (size_t)first * shape->sample_bytes;
    samples_window(samples, x, axis->size, first, 1, spectral->n, shape->sample_bytes);
    return samples;
}

// Inputs of one block of one group of one item of the batch.
static void transform_inputs(const struct forward *call, size_t item, size_t group, ptrdiff_t q,
                             struct spectral_work *work)
{
    const struct partita_plan *plan = call->filter->plan;
    const struct spectral *spectral = plan->state;
    const struct shape *shape = &spectral->shape;
    for (size_t c = 0; c < shape->group_in; c++) {
        const size_t channel = item * shape->in_channels + group * shape->group_in + c;
        const char *x = call->x + channel * shape->axis[0].size * shape->sample_bytes;
        char *spectrum = work->inputs + c * fft_spectrum_bytes(spectral->fft);
        if (spectral->half.used)
            spectral_forward_half(spectral, spectrum, x, work->samples, work->scratch);
        else fft_forward(spectral->fft, spectrum, window(plan, x, q, work->samples), work->scratch);
    }
}

// Outputs p .. p+n-1 of the whole result, which lie `skip` samples behind the first one of the
// block.
struct outputs {
    size_t p, n, skip;
};

// The only input and output of a group.
static void filter_block(const struct forward *call, size_t channel, const char *x, ptrdiff_t q,
                         const struct outputs *out, char *y, struct spectral_work *work)
{
    const struct partita_plan *plan = call->filter->plan;
    const struct axis *axis = &((const struct spectral *)plan->state)->shape.axis[0];
    const size_t bytes = plan->shape.sample_bytes;
    spectral_long_filter(call->filter, channel, window(plan, x, q, work->samples), work,
                         plan->threads);
    spectral_long_copy(y, work->samples + (axis->span - 1 + out->skip) * bytes, axis->stride,
                       out->n, bytes, plan->threads);
}

static void store_output(const struct forward *call, size_t channel, const struct outputs *out,
                         char *y, struct spectral_work *work)
{
    const struct spectral *spectral = call->filter->plan->state;
    const struct axis *axis = &spectral->shape.axis[0];
    const size_t bytes = spectral->shape.sample_bytes;
    if (!spectral->half.used) {
        spectral_output(call->filter, channel, work);
        samples_copy(y, 1, work->samples + (axis->span - 1 + out->skip) * bytes, axis->stride,
                     out->n, bytes);
        return;
    }
    const bool in_place = axis->stride == 1 && out->n == spectral->n / 2;
    char *samples = in_place ? y : work->samples;
    spectral_sum(call->filter, channel, work);
    fft_inverse_half(spectral->fft, samples, work->output, work->samples, work->scratch);
    if (!in_place) samples_copy(y, 1, samples, axis->stride, out->n, bytes);
}

// One task: one block of one group of one item of the batch. Tasks of one group follow each other:
// its filters stay in the cache.
static void forward_block(void *context, size_t task, int worker)
{
    const struct forward *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct spectral *spectral = plan->state;
    const struct shape *shape = &spectral->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t block = task % call->blocks, item = task / call->blocks % shape->batch;
    const size_t group = task / call->blocks / shape->batch, hop = spectral->hop;
    struct arena arena = {.base = call->workspace +
                                  (size_t)worker * spectral_work_bytes(shape, spectral->fft)};
    struct spectral_work work = spectral_work_cut(shape, spectral->fft, &arena);
    // Those with block*hop <= stride*p < (block+1)*hop.
    const size_t p = (block * hop + axis->stride - 1) / axis->stride;
    const size_t end = ((block + 1) * hop + axis->stride - 1) / axis->stride;
    const struct outputs out = {p, (end < axis->out ? end : axis->out) - p,
                                p * axis->stride - block * hop};
    const ptrdiff_t q = causal_first(axis) + (ptrdiff_t)(block * hop);
    if (spectral->together) {
        const size_t channel = item * shape->groups + group, bytes = shape->sample_bytes;
        filter_block(call, group, call->x + channel * axis->size * bytes, q, &out,
                     call->y + (channel * axis->out + p) * bytes, &work);
        return;
    }
    transform_inputs(call, item, group, q, &work);
    for (size_t k = group * shape->group_out; k < (group + 1) * shape->group_out; k++)
        store_output(call, k, &out,
                     call->y +
                         ((item * shape->out_channels + k) * axis->out + p) * shape->sample_bytes,
                     &work);
}

static void run_blocks(const struct partita_filter *filter, void *y, const void *x, void *workspace)
{
    const struct spectral *spectral = filter->plan->state;
    const struct shape *shape = &spectral->shape;
    const int threads = filter->plan->threads;
    struct forward call = {filter, y, x, workspace, spectral_blocks(shape, spectral->hop)};
    thread_loop(spectral->together ? 1 : threads, shape->batch * shape->groups * call.blocks,
                forward_block, &call);
}

static enum partita_status save_run(const struct partita_plan *plan,
                                    const struct partita_filter *filter,
                                    const struct operands *operands, void *workspace)
{
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) {
        spectral_weight_run(plan, operands->to, operands->from[0], operands->from[1], workspace);
        return PARTITA_OK;
    }
    run_blocks(filter, operands->to, operands->from[0], workspace);
    if (plan->direction == PARTITA_FORWARD) conv_finish_outputs(plan, filter, operands->to);
    return PARTITA_OK;
}

static enum partita_status save_stream_open(struct partita_stream *stream)
{
    return block_stream_open(stream, stream->plan->shape.axis[0].span - 1, false);
}

static void run_block(struct partita_stream *stream)
{
    struct block_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const struct spectral *spectral = stream->plan->state;
    const size_t bytes = shape->sample_bytes, history = state->history * bytes;
    for (size_t group = 0; group < shape->groups; group++) {
        for (size_t c = 0; c < shape->group_in; c++) {
            char *samples = state->window + (group * shape->group_in + c) * spectral->n * bytes;
            fft_forward(spectral->fft, state->work.inputs + c * fft_spectrum_bytes(spectral->fft),
                        samples, state->work.scratch);
            memmove(samples, samples + spectral->hop * bytes, history);
        }
        for (size_t k = group * shape->group_out; k < (group + 1) * shape->group_out; k++) {
            spectral_output(stream->filter, k, &state->work);
            memcpy(block_stream_ready(stream, *state->set, k), state->work.samples + history,
                   spectral->hop * bytes);
            if (!stream->swap.incoming) continue;
            spectral_output(stream->swap.incoming, k, &state->work);
            memcpy(block_stream_ready(stream, 1 - *state->set, k), state->work.samples + history,
                   spectral->hop * bytes);
        }
    }
}

static struct step save_step(struct partita_stream *stream, const struct frames *frames)
{
    return block_stream_step(stream, frames, run_block);
}

const struct engine engine_overlap_save = {
    .name = "cpu/overlap-save",
    .estimate = save_estimate,
    .plan_create = save_plan_create,
    .plan_destroy = spectral_plan_destroy,
    .filter_create = spectral_filter_create,
    .stream_open = save_stream_open,
    .stream_step = save_step,
    .stream_reset = block_stream_reset,
    .stream_region = block_stream_region,
    .swap_begin = block_stream_swap_begin,
    .swap_end = block_stream_swap_end,
    .plan_load = block_stream_load,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = save_run,
};
