// SPDX-License-Identifier: MIT
// cpu/overlap-add: each block is transformed alone; the span-1 samples by which its result is
// longer are added to what follows. Bounded signals are cut into runs of blocks: a run carries its
// overlap along by itself, what sticks out of it is gathered afterwards, so runs go in parallel
// without two of them ever writing one sample (decision 3). Source: Stockham, High-speed
// convolution and correlation, AFIPS 1966; Oppenheim & Schafer, 8.7.3.
#include <string.h>

#include "base/thread.h"
#include "cpu/conv/finish.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"
#include "spectral.h"
#include "stream/stream.h"

// How a bounded signal is cut, the same for any number of threads. Blocks lie at multiples of hop
// in x; block b yields the full result from b*hop on.
struct cut {
    size_t first, blocks; // blocks that reach the outputs asked for
    size_t per_run, runs;
};

static struct cut cut_signal(const struct shape *shape, size_t hop)
{
    const struct axis *axis = &shape->axis[0];
    const ptrdiff_t begin = causal_first(axis),
                    end = begin + (ptrdiff_t)((axis->out - 1) * axis->stride);
    const ptrdiff_t reach = begin - (ptrdiff_t)(hop + axis->span - 2);
    struct cut cut = {.first = reach > 0 ? ((size_t)reach + hop - 1) / hop : 0};
    size_t last = (axis->size - 1) / hop;
    if (end >= 0 && (size_t)end / hop < last) last = (size_t)end / hop;
    cut.blocks = end < 0 || last < cut.first ? 0 : last - cut.first + 1;
    // What sticks out of a run is at most an eighth of it.
    cut.per_run = 8 * (axis->span - 1) / hop + 8;
    cut.runs = (cut.blocks + cut.per_run - 1) / cut.per_run;
    return cut;
}

static size_t overlap_bytes(const struct shape *shape)
{
    return mem_round(size_mul(shape->group_out, (shape->axis[0].span - 1) * shape->sample_bytes));
}

static size_t runs_of(const struct shape *shape, size_t hop)
{
    return shape->batch * shape->groups * cut_signal(shape, hop).runs;
}

static void add_estimate(const struct request *request, struct estimate *ret)
{
    spectral_search(request, spectral_filtering, 3, ret);
    if (!ret->applicable || request->shape->stream) return;
    const size_t overlaps =
        size_mul(runs_of(request->shape, ret->hop), overlap_bytes(request->shape));
    ret->shared = overlaps;
    ret->bytes = size_add(ret->bytes, overlaps);
}

// Adds what earlier blocks left over to the first samples of this block's result, and keeps what it
// leaves over itself.
static void carry(const struct partita_plan *plan, char *samples, char *overlap)
{
    const struct shape *shape = &plan->shape;
    const struct spectral *spectral = plan->state;
    const size_t length = shape->axis[0].span - 1, hop = spectral->hop, bytes = shape->sample_bytes;
    const size_t reals = shape->complex_signal ? 2 : 1;
    if (length <= hop) {
        plan->kernels->add(samples, overlap, length * reals);
        memcpy(overlap, samples + hop * bytes, length * bytes);
    } else {
        plan->kernels->add(samples, overlap, hop * reals);
        memmove(overlap, overlap + hop * bytes, (length - hop) * bytes);
        memset(overlap + (length - hop) * bytes, 0, hop * bytes);
        plan->kernels->add(overlap, samples + hop * bytes, length * reals);
    }
}

struct forward {
    const struct partita_filter *filter;
    char *y;
    const char *x;
    char *workspace, *overlaps; // a spectral_work a thread, then an overlap a run
    struct cut cut;
};

// Writes or adds the full result's samples from q on to those outputs that are asked for.
static void place(const struct partita_plan *plan, char *y, size_t q, const char *samples, size_t n,
                  bool add)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t bytes = shape->sample_bytes, stride = axis->stride;
    const ptrdiff_t from =
        (ptrdiff_t)q - causal_first(axis); // position of samples[0] among full-rate outputs
    const size_t p = from <= 0 ? 0 : ((size_t)from + stride - 1) / stride;
    const size_t skip = (size_t)((ptrdiff_t)(p * stride) - from);
    if (skip >= n || p >= axis->out) return;
    size_t count = (n - skip - 1) / stride + 1;
    if (count > axis->out - p) count = axis->out - p;
    char *end = y + p * bytes;
    samples += skip * bytes;
    if (!add) {
        samples_copy(end, 1, samples, stride, count, bytes);
    } else if (stride == 1) {
        plan->kernels->add(end, samples, count * (shape->complex_signal ? 2 : 1));
    } else {
        for (size_t i = 0; i < count; i++)
            plan->kernels->add(end + i * bytes, samples + i * stride * bytes,
                               shape->complex_signal ? 2 : 1);
    }
}

struct place_of_run {
    size_t item, group, run;
};

static struct place_of_run run_at(const struct forward *call, size_t task)
{
    const size_t groups = call->filter->plan->shape.groups;
    return (struct place_of_run){task / call->cut.runs / groups, task / call->cut.runs % groups,
                                 task % call->cut.runs};
}

static char *channel_at(const struct forward *call, size_t item, size_t channel)
{
    const struct shape *shape = &call->filter->plan->shape;
    return call->y +
           (item * shape->out_channels + channel) * shape->axis[0].out * shape->sample_bytes;
}

static void transform_block(const struct forward *call, struct place_of_run at, size_t block,
                            struct spectral_work *work)
{
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = &plan->shape;
    const struct spectral *spectral = plan->state;
    const size_t size = shape->axis[0].size, bytes = shape->sample_bytes;
    const size_t left = size - block * spectral->hop,
                 n = left < spectral->hop ? left : spectral->hop;
    memset(work->samples + n * bytes, 0, (spectral->n - n) * bytes);
    for (size_t c = 0; c < shape->group_in; c++) {
        const size_t channel = at.item * shape->in_channels + at.group * shape->group_in + c;
        memcpy(work->samples, call->x + (channel * size + block * spectral->hop) * bytes,
               n * bytes);
        fft_forward(spectral->fft, work->inputs + c * fft_spectrum_bytes(spectral->fft),
                    work->samples, work->scratch);
    }
}

// One task: the blocks of one run, overlap carried from each to the next.
static void forward_run(void *context, size_t task, int worker)
{
    const struct forward *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = &plan->shape;
    const struct spectral *spectral = plan->state;
    const struct place_of_run at = run_at(call, task);
    const size_t length = shape->axis[0].span - 1;
    struct arena arena = {.base = call->workspace +
                                  (size_t)worker * spectral_work_bytes(shape, spectral->fft)};
    struct spectral_work work = spectral_work_cut(shape, spectral->fft, &arena);
    char *overlaps = call->overlaps + task * overlap_bytes(shape);
    memset(overlaps, 0, overlap_bytes(shape));
    const size_t begin = at.run * call->cut.per_run;
    const size_t end =
        begin + call->cut.per_run < call->cut.blocks ? begin + call->cut.per_run : call->cut.blocks;
    for (size_t block = call->cut.first + begin; block < call->cut.first + end; block++) {
        transform_block(call, at, block, &work);
        for (size_t k = 0; k < shape->group_out; k++) {
            const size_t channel = at.group * shape->group_out + k;
            spectral_output(call->filter, channel, &work);
            carry(plan, work.samples, overlaps + k * length * shape->sample_bytes);
            place(plan, channel_at(call, at.item, channel), block * spectral->hop, work.samples,
                  spectral->hop, false);
        }
    }
}

// One task: what run `task` leaves over goes onto the outputs of the run after it; behind the last
// run there are none.
static void gather_overlap(void *context, size_t task, int worker)
{
    (void)worker;
    const struct forward *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = &plan->shape;
    const struct spectral *spectral = plan->state;
    const struct place_of_run at = run_at(call, task);
    const bool last = at.run + 1 == call->cut.runs;
    const size_t length = shape->axis[0].span - 1;
    const size_t block =
        call->cut.first + (last ? call->cut.blocks : (at.run + 1) * call->cut.per_run);
    for (size_t k = 0; k < shape->group_out; k++)
        place(plan, channel_at(call, at.item, at.group * shape->group_out + k),
              block * spectral->hop,
              call->overlaps + task * overlap_bytes(shape) + k * length * shape->sample_bytes,
              length, true);
}

static enum partita_status add_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter,
                                   const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const struct spectral *spectral = plan->state;
    struct forward call = {filter,    operands->to, operands->from[0],
                           workspace, workspace,    cut_signal(shape, spectral->hop)};
    call.overlaps += (size_t)plan->threads * spectral_work_bytes(shape, spectral->fft);
    // Outputs that no block starts on: those before the signal, and those behind its last block.
    const ptrdiff_t begin = causal_first(axis),
                    end = begin + (ptrdiff_t)((axis->out - 1) * axis->stride);
    if (begin < 0 || end >= (ptrdiff_t)((call.cut.first + call.cut.blocks) * spectral->hop))
        memset(operands->to, 0,
               shape->batch * shape->out_channels * axis->out * shape->sample_bytes);
    const size_t tasks = shape->batch * shape->groups * call.cut.runs;
    thread_loop(plan->threads, tasks, forward_run, &call);
    thread_loop(plan->threads, tasks, gather_overlap, &call);
    conv_finish_outputs(plan, filter, operands->to);
    return PARTITA_OK;
}

static enum partita_status add_stream_open(struct partita_stream *stream)
{
    return block_stream_open(stream, 0, true);
}

static void run_block(struct partita_stream *stream)
{
    struct block_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const struct spectral *spectral = stream->plan->state;
    const size_t bytes = shape->sample_bytes, length = shape->axis[0].span - 1;
    for (size_t group = 0; group < shape->groups; group++) {
        for (size_t c = 0; c < shape->group_in; c++)
            fft_forward(spectral->fft, state->work.inputs + c * fft_spectrum_bytes(spectral->fft),
                        state->window + (group * shape->group_in + c) * spectral->n * bytes,
                        state->work.scratch);
        for (size_t k = group * shape->group_out; k < (group + 1) * shape->group_out; k++) {
            spectral_output(stream->filter, k, &state->work);
            carry(stream->plan, state->work.samples, state->overlap + k * length * bytes);
            memcpy(block_stream_ready(stream, 0, k), state->work.samples, spectral->hop * bytes);
        }
    }
}

static struct step add_step(struct partita_stream *stream, const struct frames *frames)
{
    return block_stream_step(stream, frames, run_block);
}

const struct engine engine_overlap_add = {
    .name = "cpu/overlap-add",
    .estimate = add_estimate,
    .plan_create = spectral_plan_create,
    .plan_destroy = spectral_plan_destroy,
    .filter_create = spectral_filter_create,
    .stream_open = add_stream_open,
    .stream_step = add_step,
    .stream_reset = block_stream_reset,
    .stream_region = block_stream_region,
    .plan_load = block_stream_load,
    .directions = PARTITA_FORWARD,
    .run = add_run,
};
