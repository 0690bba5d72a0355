// SPDX-License-Identifier: MIT
// cpu/overlap-save (also called overlap-discard): each block is transformed together with the span-1 samples before it;
// the outputs that the transform wraps around are discarded.
// Source: Stockham, High-speed convolution and correlation, AFIPS 1966; Oppenheim & Schafer, 8.7.3.
#include <string.h>

#include "../thread.h"
#include "samples.h"
#include "spectral.h"

static void save_estimate(const struct request *request, struct estimate *ret)
{
    spectral_estimate(request, 2, ret);
}

struct forward {
    const struct partita_filter *filter;
    char *y;
    const char *x;
    char *workspace;
    size_t blocks;
};

// The window of one input channel whose first output is at q: in place where it lies inside the signal.
static const void *window(const struct partita_plan *plan, const char *x, ptrdiff_t q, char *samples)
{
    const struct shape *shape = &plan->shape;
    const struct spectral *spectral = plan->state;
    const struct axis *axis = &shape->axis[0];
    const ptrdiff_t first = q - (ptrdiff_t)(axis->span - 1);
    if (first >= 0 && (size_t)first + spectral->n <= axis->size) return x + (size_t)first * shape->sample_bytes;
    samples_window(samples, x, axis->size, first, 1, spectral->n, shape->sample_bytes);
    return samples;
}

// One task: one block of one group of one item of the batch.
static void forward_block(void *context, size_t task, int worker)
{
    const struct forward *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = &plan->shape;
    const struct spectral *spectral = plan->state;
    const struct axis *axis = &shape->axis[0];
    const size_t block = task % call->blocks, group = task / call->blocks % shape->groups;
    const size_t item = task / call->blocks / shape->groups, bytes = shape->sample_bytes;
    struct arena arena = {.base = call->workspace + (size_t)worker * spectral_work_bytes(shape, spectral->fft)};
    struct spectral_work work = spectral_work_cut(shape, spectral->fft, &arena);
    const ptrdiff_t q = causal_first(axis) + (ptrdiff_t)(block * spectral->hop);
    for (size_t c = 0; c < shape->group_in; c++) {
        const char *x = call->x + (item * shape->in_channels + group * shape->group_in + c) * axis->size * bytes;
        fft_forward(spectral->fft, work.inputs + c * fft_spectrum_bytes(spectral->fft),
                    window(plan, x, q, work.samples), work.scratch);
    }
    // Outputs of the whole result that lie in this block: p with block*hop <= stride*p < (block+1)*hop.
    const size_t p = (block * spectral->hop + axis->stride - 1) / axis->stride;
    const size_t end = ((block + 1) * spectral->hop + axis->stride - 1) / axis->stride;
    const size_t n = (end < axis->out ? end : axis->out) - p, skip = p * axis->stride - block * spectral->hop;
    for (size_t k = group * shape->group_out; k < (group + 1) * shape->group_out; k++) {
        spectral_output(call->filter, k, &work);
        samples_copy(call->y + ((item * shape->out_channels + k) * axis->out + p) * bytes, 1,
                     work.samples + (axis->span - 1 + skip) * bytes, axis->stride, n, bytes);
    }
}

static void save_forward(const struct partita_plan *plan, const struct partita_filter *filter, void *y, const void *x,
                         void *workspace)
{
    const struct shape *shape = &plan->shape;
    const struct spectral *spectral = plan->state;
    const size_t full_rate = (shape->axis[0].out - 1) * shape->axis[0].stride + 1;
    struct forward call = {filter, y, x, workspace, (full_rate + spectral->hop - 1) / spectral->hop};
    thread_loop(plan->threads, shape->batch * shape->groups * call.blocks, forward_block, &call);
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
            fft_forward(spectral->fft, state->work.inputs + c * fft_spectrum_bytes(spectral->fft), samples,
                        state->work.scratch);
            memmove(samples, samples + spectral->hop * bytes, history);
        }
        for (size_t k = group * shape->group_out; k < (group + 1) * shape->group_out; k++) {
            spectral_output(stream->filter, k, &state->work);
            memcpy(block_stream_ready(stream, *state->set, k), state->work.samples + history, spectral->hop * bytes);
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
    .plan_create = spectral_plan_create,
    .plan_destroy = spectral_plan_destroy,
    .filter_create = spectral_filter_create,
    .stream_open = save_stream_open,
    .stream_step = save_step,
    .stream_reset = block_stream_reset,
    .stream_region = block_stream_region,
    .swap_begin = block_stream_swap_begin,
    .swap_end = block_stream_swap_end,
    .plan_load = block_stream_load,
    .forward = save_forward,
};
