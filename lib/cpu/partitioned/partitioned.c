// SPDX-License-Identifier: MIT
// cpu/partitioned: long filters at low latency, in partitions that grow with their distance, with
// the work of every segment spread over all calls. Source: Gardner, Efficient convolution without
// input-output delay, JAES 43 (1995); Garcia, AES 113 (2002).
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/sizes.h"
#include "morph.h"

struct partition_device cpu_partition_device(const struct request *request,
                                             const struct signal_rates *rates)
{
    return (struct partition_device){
        .rates = rates,
        .max_segments = PARTITION_MAX_SEGMENTS,
        .max_multiple = 4,
        .max_batch = CMAC_SUMS,
        .max_transform = request_max_transform(request),
        .max_partitions = SIZE_MAX,
        .streams = request->shape->streams,
        .half_windows = true,
        .i16 = partition_allows_i16(request),
        .task = rates->work.task,
        .sum = rates->work.task,
        .segment = rates->work.task,
        .call = rates->work.task,
    };
}

// The ring holds the frames that the segment that looks back furthest may still read when its work
// on a block ends, and the head.
static size_t ring_frames(const struct partition_layout *layout)
{
    size_t frames = layout->head + layout->latency + layout->quantum;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        frames = size_max(frames, segment->n + (segment->start + 2) * layout->quantum);
    }
    return ceil_div(frames, layout->quantum) * layout->quantum;
}

static size_t largest_transform(const struct partition_layout *layout)
{
    size_t n = 0;
    for (size_t i = 0; i < layout->n_segments; i++) n = size_max(n, layout->segment[i].n);
    return n;
}

// Spectra of a dense filter, and of the stream.
static size_t bytes_of(const struct shape *shape, const struct partition_layout *layout)
{
    // Every frame twice, and whether it was a number.
    size_t bytes =
        size_mul(shape->in_channels, size_mul(ring_frames(layout), 2 * shape->sample_bytes + 1));
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        const size_t spectrum = segment->n * shape->sample_bytes;
        // In 16 bits one real in 32 is a scale.
        const size_t filter = segment->i16 ? spectrum / 2 + spectrum / 32 : spectrum;
        const size_t stream = shape->in_channels * (slot_pitch(segment) + 1) +
                              (2 * segment->batch + 4) * shape->out_channels;
        bytes = size_add(bytes,
                         size_mul(size_mul(shape_path_count(shape), segment->partitions), filter));
        bytes = size_add(bytes, size_mul(stream, spectrum));
    }
    return bytes;
}

static double error_of(const struct shape *shape, const struct partition_layout *layout)
{
    double error = shape_roundoff(shape) * 1.3 * sqrt(log2((double)largest_transform(layout)));
    for (size_t i = 0; i < layout->n_segments; i++)
        if (layout->segment[i].i16) return error + PARTITION_I16_ERROR;
    return error;
}

// A segment's tasks, which planning visits some forty times, are in proportion to the channels.
enum { MAX_CHANNELS = 1 << 18 };

static void partitioned_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const struct signal_rates rates = cpu_signal_rates(request);
    const struct partition_device device = cpu_partition_device(request, &rates);
    struct partition_layout layout;
    if (size_max(shape->in_channels, shape->out_channels) > MAX_CHANNELS) {
        estimate_refuse(ret, "works on at most %d channels", MAX_CHANNELS);
    } else if (!partition_search(shape, &device, NULL, &layout)) {
        estimate_refuse(ret, "%zu taps are too few for partitions", shape->axis[0].span);
    } else if (request->transform && request->transform != largest_transform(&layout)) {
        estimate_refuse(ret, "chooses its transforms itself");
    } else {
        *ret = (struct estimate){
            .applicable = true,
            .transform = largest_transform(&layout),
            .hop = layout.segment[layout.n_segments - 1].hop,
            .latency = partition_delay(&layout),
            .seconds = layout.seconds,
            .flops = partition_flops(shape, &layout),
            .bytes = bytes_of(shape, &layout),
            .error = error_of(shape, &layout),
        };
        const struct partition_choice choice = {layout.quantum, layout.begin};
        estimate_store(ret, &choice, sizeof choice);
    }
}

static enum partita_status partitioned_plan_create(struct partita_plan *plan,
                                                   const struct request *request)
{
    struct partitioned *partitioned = plan->state;
    const struct signal_rates rates = cpu_signal_rates(request);
    const struct partition_device device = cpu_partition_device(request, &rates);
    const bool found =
        partition_search(request->shape, &device, &plan->choice, &partitioned->layout);
    assert(found);
    (void)found;
    partitioned->ring = ring_frames(&partitioned->layout);
    return schedule_create(plan, request, &device);
}

static void partitioned_plan_destroy(struct partita_plan *plan)
{
    struct partitioned *partitioned = plan->state;
    for (size_t i = 0; i < partitioned->layout.n_segments; i++) {
        fft_destroy(partitioned->work[i].fft);
        mem_release(&plan->allocator, partitioned->work[i].due);
    }
    mem_release(&plan->allocator, partitioned->quantum_seconds);
}

// Saved states are restored only by plans with equal tasks, since a state says which are done.
static uint64_t partitioned_key(const struct partita_plan *plan)
{
    const struct partitioned *partitioned = partitioned_of(plan);
    const struct partition_layout *layout = &partitioned->layout;
    const size_t whole[] = {layout->quantum, layout->latency, layout->whole, layout->head,
                            layout->n_segments};
    uint64_t hash = hash_bytes(HASH_BEGIN, whole, sizeof whole);
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        const struct segment_work *work = &partitioned->work[i];
        const size_t parts[] = {segment->hop,         segment->n,       segment->partitions,
                                segment->start,       segment->window,  segment->batch,
                                work->transform.each, work->store.each, work->product.each};
        const char *provider = fft_provider(work->fft);
        hash = hash_bytes(hash, provider, strlen(provider));
        hash = hash_bytes(hash, parts, sizeof parts);
        hash = hash_bytes(hash, &segment->i16, sizeof segment->i16); // of the sums' values
    }
    return hash;
}

static void partitioned_load(const struct partita_plan *plan, struct partita_load *ret)
{
    *ret = ((const struct partitioned *)plan->state)->load;
}

const struct engine engine_partitioned = {
    .name = "cpu/partitioned",
    .estimate = partitioned_estimate,
    .state_bytes = sizeof(struct partitioned),
    .plan_create = partitioned_plan_create,
    .plan_destroy = partitioned_plan_destroy,
    .explain = partitioned_explain,
    .filter = {.create = paths_create_dense, .create_paths = partitioned_filter_create},
    .stream = {.layout = partitioned_stream_layout,
               .open = workers_open,
               .close = morph_close,
               .step = partitioned_stream_step,
               .reset = morph_reset,
               .region = morph_region,
               .copy_out = morph_copy_out,
               .copy_in = morph_copy_in,
               .region_key = partitioned_key,
               .prefetch = partitioned_prefetch,
               .pause = workers_pause,
               .resume = workers_resume,
               .swap_begin = partitioned_swap_begin,
               .swap_end = partitioned_swap_end,
               .plan_load = partitioned_load},
};
