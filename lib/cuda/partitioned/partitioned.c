// SPDX-License-Identifier: MIT
// cuda/partitioned: streams of many channels and long filters on a device, in partitions of up to
// three sizes. Spectra of filter and history stay in the device's memory, and every quantum
// launches one graph of three kernels (kernels.h, decision 25). Source: Gardner, Efficient
// convolution without input-output delay, JAES 43 (1995).
#include "partitioned.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/sizes.h"

// Of a dense filter and of the stream.
static size_t cuda_partitioned_bytes(const struct shape *shape,
                                     const struct cuda_partition_layout *layout)
{
    size_t bytes = size_mul(shape->in_channels, (size_t)layout->window * shape->sample_bytes);
    for (int i = 0; i < layout->n_segments; i++) {
        const struct cuda_segment *segment = &layout->segment[i];
        const size_t stored = dense_paths(shape) + shape->in_channels;
        const size_t spectra =
            size_add(size_mul(stored, (size_t)segment->partitions), 6 * shape->out_channels);
        const size_t spectrum = (size_t)segment->points * 2 * shape->scalar_bytes;
        bytes = size_add(bytes, size_mul(spectra, spectrum));
    }
    return bytes;
}

static void cuda_partitioned_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct cuda_partitioned_choice choice;
    if (!shape->stream) {
        snprintf(ret->reason, sizeof ret->reason, "works on streams, not on bounded signals");
        return;
    }
    if (!cuda_partitioned_choose(request, ret)) return;
    estimate_load(ret, &choice, sizeof choice);
    const struct cuda_partition_layout layout = cuda_partitioned_layout(shape, &choice);
    if (request->transform && request->transform != (size_t)layout.window) {
        snprintf(ret->reason, sizeof ret->reason, "chooses its transforms itself");
        return;
    }
    ret->applicable = true;
    ret->transform = (size_t)layout.window;
    ret->hop = (size_t)layout.window / 2;
    ret->latency = choice.latency - (choice.whole ? choice.quantum : 0);
    ret->seconds = choice.seconds;
    ret->bytes = cuda_partitioned_bytes(shape, &layout);
    ret->error = shape_roundoff(shape) * 1.3 * sqrt(log2((double)layout.window));
}

static enum partita_status cuda_partitioned_plan_create(struct partita_plan *plan,
                                                        const struct request *request)
{
    struct cuda_partitioned *partitioned = mem_allocate(&plan->allocator, sizeof *partitioned);
    if (!partitioned) return PARTITA_ERR_NOMEM;
    plan->state = partitioned;
    estimate_load(&plan->choice, &partitioned->choice, sizeof partitioned->choice);
    partitioned->layout = cuda_partitioned_layout(request->shape, &partitioned->choice);
    enum partita_status status = cuda_enter(plan);
    for (int i = 0; i < partitioned->layout.n_segments && status == PARTITA_OK; i++) {
        struct cuda_segment *segment = &partitioned->layout.segment[i];
        status = cuda_fft_create(plan, (size_t)segment->points, 1, false, &partitioned->fft[i]);
        segment->form = partitioned->fft[i].params.form;
        assert(status != PARTITA_OK || 1 << segment->form.log2_points == segment->points);
    }
    return status;
}

static void cuda_partitioned_plan_destroy(struct partita_plan *plan)
{
    struct cuda_partitioned *partitioned = plan->state;
    if (!partitioned) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    for (int i = 0; i < CUDA_MAX_SEGMENTS; i++) cuda_fft_destroy(plan, &partitioned->fft[i]);
    mem_release(&plan->allocator, partitioned);
}

static void cuda_partitioned_load(const struct partita_plan *plan, struct partita_load *ret)
{
    const struct cuda_partitioned *partitioned = cuda_partitioned_of(plan);
    const struct cuda_partitioned_choice *choice = &partitioned->choice;
    const size_t block = plan->shape.block, quanta = ceil_div(block, choice->quantum);
    const struct cuda_segment *last = &partitioned->layout.segment[choice->n_segments - 1];
    // One quantum more where another swap settles first.
    const size_t swap_quanta = (size_t)last->start + 1;
    *ret = (struct partita_load){.frames = block,
                                 .mean = choice->seconds * (double)block,
                                 .worst = choice->worst_quantum * (double)quanta,
                                 .swap_delay = swap_quanta * choice->quantum +
                                               cuda_partitioned_delay(choice)};
}

static void cuda_partitioned_explain(const struct partita_plan *plan, struct text *text)
{
    const struct cuda_partitioned *partitioned = cuda_partitioned_of(plan);
    const struct cuda_partitioned_choice *choice = &partitioned->choice;
    struct partita_load load;
    cuda_partitioned_load(plan, &load);
    text_add(text, "  quanta of %zu frames; latency %zu; %zu taps in the head\n", choice->quantum,
             plan->choice.latency, choice->head);
    text_add(text, "  host %.3g us a quantum%s\n",
             choice->host_seconds * (double)choice->quantum * 1e6,
             choice->head ? ", the head's direct sums included" : "");
    for (int i = 0; i < choice->n_segments; i++) {
        const struct cuda_segment *segment = &partitioned->layout.segment[i];
        text_add(text, "  segment %d %7zu+ %d x %d taps, fft %d, blocks of %d quanta\n", i,
                 choice->head + (size_t)segment->start * choice->quantum, segment->partitions,
                 segment->hop, 2 * segment->hop, segment->quanta);
    }
    text_add(text, "  a graph launched every quantum, its outputs waited for %s\n",
             choice->ahead ? "a quantum later" : "at once");
    text_add(text, "  a call of %zu frames: %.3g us in the mean, %.3g us at worst\n", load.frames,
             load.mean * 1e6, load.worst * 1e6);
    text_add(text, "  a swap begins to fade within %zu frames\n", load.swap_delay);
}

static uint64_t cuda_partitioned_key(const struct partita_plan *plan)
{
    const struct cuda_partitioned_choice *choice = &cuda_partitioned_of(plan)->choice;
    const size_t whole[] = {choice->quantum, choice->latency, choice->head, choice->whole,
                            choice->ahead};
    uint64_t hash = hash_bytes(HASH_BEGIN, whole, sizeof whole);
    return hash_bytes(hash, choice->segment,
                      (size_t)choice->n_segments * sizeof choice->segment[0]);
}

const struct engine cuda_partitioned = {
    .name = "cuda/partitioned",
    .estimate = cuda_partitioned_estimate,
    .plan_create = cuda_partitioned_plan_create,
    .plan_destroy = cuda_partitioned_plan_destroy,
    .plan_load = cuda_partitioned_load,
    .plan_explain = cuda_partitioned_explain,
    .filter_create = paths_create_dense,
    .filter_create_paths = cuda_partitioned_filter_create,
    .filter_destroy = cuda_partitioned_filter_destroy,
    .stream_open = cuda_partitioned_open,
    .stream_step = cuda_partitioned_step,
    .stream_reset = cuda_partitioned_reset,
    .stream_region = cuda_partitioned_region,
    .region_key = cuda_partitioned_key,
    .stream_close = cuda_partitioned_close,
    .stream_pause = cuda_partitioned_pause,
    .stream_resume = cuda_partitioned_resume,
    .swap_begin = cuda_partitioned_swap_begin,
    .swap_end = cuda_partitioned_swap_end,
};
