// SPDX-License-Identifier: MIT
// cuda/partitioned: streams of many channels and long filters on a device, in partitions of up to
// three sizes. Spectra of filter and history stay in the device's memory, and every quantum
// runs three kernels (kernels.h, decision 25). Source: Gardner, Efficient
// convolution without input-output delay, JAES 43 (1995).
#include <assert.h>
#include <math.h>

#include "base/hash.h"
#include "base/sizes.h"
#include "cuda/device/rates.h"
#include "partitioned.h"

// Limits of this engine.
static const struct {
    size_t max_channels, max_paths;     // so that their thread blocks fit a launch
    size_t max_partitions, max_spectra; // of a path, and of all
} PARTITIONED = {
    .max_channels = (size_t)1 << 20,
    .max_paths = (size_t)1 << 24,
    .max_partitions = (size_t)1 << 22,
    .max_spectra = (size_t)1 << 30,
};

static const struct cuda_gpu_rates *partition_rates(const struct request *request)
{
    return &cuda_device_for(request)->rates;
}

// Hops and so transforms are powers of two, all of which a device takes.
static size_t cuda_partition_good_size(const struct signal_rates *rates, size_t n)
{
    (void)rates;
    return n;
}

// Slots of a bank, which share launches. The following is the part of one of them.
static double streams_at_once(const struct shape *shape)
{
    return shape->streams ? (double)shape->streams : 1;
}

static double cuda_partition_transform_seconds(const struct signal_rates *rates, size_t n,
                                               double count)
{
    const struct request *request = rates->context;
    const double points = (double)(request->shape->complex_signal ? n : n / 2);
    const double slots = streams_at_once(request->shape);
    const double threads = slots * count * points / CUDA_FFT_POINTS;
    const double waves = ceil(threads / cuda_rates_of(request).threads);
    return waves * ceil(log2(points) / 4) * partition_rates(request)->pass / slots;
}

static struct signal_rates cuda_partition_rates(const struct request *request)
{
    const struct shape *shape = request->shape;
    const struct cuda_rates device = cuda_rates_of(request);
    // A thread sums the direct taps of an output.
    const double threads = streams_at_once(shape) * (double)(shape->out_channels * shape->block);
    // Of every product two bins are read from the device's memory, wherever they are, and that of
    // the filter may have 16 bits. Widening it takes operations that the memory leaves time for.
    const double bin = 2 * (double)shape->scalar_bytes / device.bytes;
    const double product = bin * (partition_allows_i16(request) ? 1 + PARTITION_I16_BYTES : 2);
    return (struct signal_rates){
        .context = request,
        .good_size = cuda_partition_good_size,
        .transforms = cuda_partition_transform_seconds,
        .product[COST_NEAR] = {product, product, product},
        .work.fma = 1 / (device.fma * fmin(1, threads / device.threads)),
        .fast_bytes = SIZE_MAX,
        .shared_bytes = SIZE_MAX,
    };
}

static struct partition_device cuda_partition_device(const struct request *request,
                                                     const struct signal_rates *rates)
{
    const struct shape *shape = request->shape;
    const struct cuda_gpu_rates *gpu = partition_rates(request);
    const double moved = (double)(shape->in_channels + shape->out_channels); // by the host
    const double reals = shape->complex_signal ? 2 : 1;
    const size_t points = cuda_fft_max(shape->f64);
    return (struct partition_device){
        .rates = rates,
        .max_segments = CUDA_MAX_SEGMENTS,
        .max_multiple = 1,
        .max_batch = 1,
        .max_transform =
            size_min(shape->complex_signal ? points : 2 * points, request_max_transform(request)),
        .max_partitions =
            size_min(PARTITIONED.max_partitions, PARTITIONED.max_spectra / shape_path_count(shape)),
        .first_is_quantum = true,
        .fixed_start = true,
        .any_latency = true,
        .any_waste = true,
        .long_lag = 1,
        .early = 1,
        .whole = shape->streams > 0,
        // A graph of one kernel, and those that take frames, emit outputs and advance.
        .launch = (gpu->graph + 3 * gpu->launch) / streams_at_once(shape),
        .quantum = gpu->host_graph / streams_at_once(shape),
        .frame = moved * reals * request->model->costs[shape->f64].work.copy,
    };
}

// Seconds of a quantum in which the blocks of all segments are complete: of every segment those of
// one group in `quanta`.
static double worst_quantum_seconds(const struct shape *shape, const struct signal_rates *rates,
                                    const struct partition_layout *layout)
{
    const size_t group = (shape->in_channels + shape->out_channels) / shape->groups;
    const double outside = layout->head_seconds * (double)layout->quantum;
    double device = layout->segment_seconds * (double)layout->quantum;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        const size_t due = ceil_div(shape->groups, segment->quanta) * group;
        const double all = rates->transforms(rates, segment->n, (double)(group * shape->groups));
        device += rates->transforms(rates, segment->n, (double)due) - all / (double)segment->quanta;
    }
    return outside + device;
}

// False, with a reason, if there are no partitions for a stream.
static bool cuda_partitioned_search(const struct request *request, struct estimate *estimate,
                                    struct partition_layout *ret)
{
    const struct shape *shape = request->shape;
    const struct signal_rates rates = cuda_partition_rates(request);
    const struct partition_device device = cuda_partition_device(request, &rates);
    const size_t slots = shape->streams ? shape->streams : 1;
    const size_t inputs = size_mul(slots, shape->in_channels),
                 outputs = size_mul(slots, shape->out_channels);
    if (inputs > PARTITIONED.max_channels || outputs > PARTITIONED.max_channels ||
        shape_path_count(shape) > PARTITIONED.max_paths) {
        estimate_refuse(estimate, "%zu x %zu channels are more than a launch takes", inputs,
                        outputs);
        return false;
    }
    if (partition_search(shape, &device, NULL, ret)) return true;
    estimate_refuse(estimate, "%zu taps are too few for partitions", shape->axis[0].span);
    return false;
}

// The layout for the kernels, without the transforms' tables.
static struct cuda_partition_layout cuda_partitioned_layout(const struct request *request,
                                                            const struct partition_layout *split)
{
    const struct shape *shape = request->shape;
    const int quantum = (int)split->quantum;
    struct cuda_partition_layout layout = {
        .quantum = quantum,
        .log2_share = __builtin_ctz((unsigned)quantum) + shape->complex_signal,
        .inputs = (int)shape->in_channels,
        .outputs = (int)shape->out_channels,
        .groups = (int)shape->groups,
        .group_inputs = (int)(shape->in_channels / shape->groups),
        .group_outputs = (int)(shape->out_channels / shape->groups),
        .complex = shape->complex_signal,
        .f64 = shape->f64,
        .i16 = partition_allows_i16(request),
        .n_segments = (int)split->n_segments,
        .ring_quanta = (int)(cuda_partitioned_delay(split) / split->quantum + 2),
        .history = (int64_t)cuda_partitioned_history(split),
        .latency = (int64_t)partition_delay(split),
        .delay = (int64_t)(partition_delay(split) + split->head),
        .span = (int64_t)shape->axis[0].span,
        .stride = (int64_t)shape->axis[0].stride,
        .complex_taps = shape->complex_taps,
    };
    assert(layout.n_segments >= 1 && layout.n_segments <= CUDA_MAX_SEGMENTS);
    for (int i = 0; i < layout.n_segments; i++) {
        const struct partition_segment *from = &split->segment[i];
        struct cuda_segment *segment = &layout.segment[i];
        const int quanta = (int)from->quanta;
        assert(from->n == 2 * from->hop && from->batch == 1);
        assert(i == 0 ? quanta == 1 : quanta > layout.segment[i - 1].quanta);
        segment->quanta = quanta;
        segment->hop = quanta * quantum;
        segment->points = segment->hop * (shape->complex_signal ? 2 : 1);
        segment->partitions = (int)from->partitions;
        segment->start = i ? 2 * quanta - 1 : 0;
        assert(from->first == split->head + split->quantum * (size_t)segment->start);
        layout.window = 2 * segment->hop;
        assert((size_t)segment->points <= cuda_fft_max(shape->f64));
    }
    return layout;
}

// Of a dense filter and of the stream.
static size_t cuda_partitioned_bytes(const struct shape *shape,
                                     const struct cuda_partition_layout *layout)
{
    size_t bytes = size_mul(shape->in_channels, (size_t)layout->window * shape->sample_bytes);
    for (int i = 0; i < layout->n_segments; i++) {
        const struct cuda_segment *segment = &layout->segment[i];
        const size_t partitions = (size_t)segment->partitions;
        const size_t spectrum = (size_t)segment->points * 2 * shape->scalar_bytes;
        // In 16 bits: half the bytes, and a scale in f32 for every 32 reals.
        const size_t filter = layout->i16 ? spectrum / 2 + spectrum / 32 : spectrum;
        const size_t stream =
            size_add(size_mul(shape->in_channels, partitions), 6 * shape->out_channels);
        bytes = size_add(bytes, size_mul(size_mul(shape_path_count(shape), partitions), filter));
        bytes = size_add(bytes, size_mul(stream, spectrum));
    }
    return bytes;
}

static void cuda_partitioned_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct partition_layout split;
    if (!cuda_partitioned_search(request, ret, &split)) return;
    const struct cuda_partition_layout layout = cuda_partitioned_layout(request, &split);
    if (request->transform && request->transform != (size_t)layout.window) {
        estimate_refuse(ret, "chooses its transforms itself");
        return;
    }
    ret->applicable = true;
    ret->transform = (size_t)layout.window;
    ret->hop = (size_t)layout.window / 2;
    ret->latency = partition_delay(&split);
    ret->seconds = split.seconds;
    ret->flops = partition_flops(shape, &split);
    ret->bytes = cuda_partitioned_bytes(shape, &layout);
    ret->error = shape_roundoff(shape) * 1.3 * sqrt(log2((double)layout.window)) +
                 (layout.i16 ? PARTITION_I16_ERROR : 0);
    const struct partition_choice choice = {split.quantum, split.begin};
    estimate_store(ret, &choice, sizeof choice);
}

static enum partita_status cuda_partitioned_plan_create(struct partita_plan *plan,
                                                        const struct request *request)
{
    struct cuda_partitioned *partitioned = plan->state;
    pthread_mutex_init(&partitioned->lock, NULL);
    const struct signal_rates rates = cuda_partition_rates(request);
    const struct partition_device device = cuda_partition_device(request, &rates);
    partition_search(request->shape, &device, &plan->choice, &partitioned->split);
    partitioned->layout = cuda_partitioned_layout(request, &partitioned->split);
    partitioned->worst_quantum = worst_quantum_seconds(request->shape, &rates, &partitioned->split);
    enum partita_status status = PARTITA_OK;
    for (int i = 0; i < partitioned->layout.n_segments && status == PARTITA_OK; i++) {
        struct cuda_segment *segment = &partitioned->layout.segment[i];
        status = cuda_fft_create(plan, (size_t)segment->points, 1, false, &partitioned->fft[i]);
        segment->form = partitioned->fft[i].params.form;
        assert(status != PARTITA_OK || 1 << segment->form.log2_points == segment->points);
    }
    if (status != PARTITA_OK || plan->shape.streams) return status; // a bank has its own memory
    return cuda_partitioned_prepare(plan);
}

static void cuda_partitioned_plan_destroy(struct partita_plan *plan)
{
    struct cuda_partitioned *partitioned = plan->state;
    struct cuda_scope scope;
    cuda_enter(plan, &scope);
    for (struct cuda_stream_memory *idle; (idle = cuda_memory_take_idle(plan)) != NULL;)
        cuda_memory_close(plan, *idle);
    cuda_leave(&scope);
    pthread_mutex_destroy(&partitioned->lock);
    for (int i = 0; i < CUDA_MAX_SEGMENTS; i++) cuda_fft_destroy(plan, &partitioned->fft[i]);
}

static void cuda_partitioned_load(const struct partita_plan *plan, struct partita_load *ret)
{
    const struct cuda_partitioned *partitioned = cuda_partitioned_of(plan);
    const struct partition_layout *split = &partitioned->split;
    const size_t block = plan->shape.block, quanta = ceil_div(block, split->quantum);
    const struct cuda_segment *last = &partitioned->layout.segment[split->n_segments - 1];
    // One quantum more where another swap settles first.
    const size_t swap_quanta = (size_t)last->start + 1;
    *ret = (struct partita_load){.frames = block,
                                 .mean = split->seconds * (double)block,
                                 .worst = partitioned->worst_quantum * (double)quanta,
                                 .swap_delay =
                                     swap_quanta * split->quantum + cuda_partitioned_delay(split)};
}

static void cuda_partitioned_explain(const struct partita_plan *plan, struct text *text)
{
    const struct cuda_partitioned *partitioned = cuda_partitioned_of(plan);
    const struct partition_layout *split = &partitioned->split;
    const bool i16 = partitioned->layout.i16;
    struct partita_load load;
    cuda_partitioned_load(plan, &load);
    text_add(text, "  quanta of %zu frames; latency %zu; %zu taps in the head\n", split->quantum,
             plan->choice.latency, split->head);
    text_add(text, "  outside the segments %.3g us a quantum%s\n",
             split->head_seconds * (double)split->quantum * 1e6,
             split->head ? ", direct sums of the head included" : "");
    for (size_t i = 0; i < split->n_segments; i++) {
        const struct cuda_segment *segment = &partitioned->layout.segment[i];
        text_add(text, "  segment %zu %7zu+ %d x %d taps, fft %d, blocks of %d quanta%s\n", i,
                 split->segment[i].first, segment->partitions, segment->hop, 2 * segment->hop,
                 segment->quanta, i16 ? ", 16 bits" : "");
    }
    if (i16)
        text_add(text,
                 "  the filter's spectra have 16-bit mantissas; the error stays %.0f dB below the "
                 "outputs\n",
                 -20 * log10(plan->choice.error));
    if (plan->shape.streams)
        text_add(text, "  kernels queued every call for all slots, their outputs waited for\n");
    else text_add(text, "  a graph launched every quantum or call, its outputs waited for\n");
    text_add(text, "  a call of %zu frames: %.3g us in the mean, %.3g us at worst\n", load.frames,
             load.mean * 1e6, load.worst * 1e6);
    text_add(text, "  a swap begins to fade within %zu frames\n", load.swap_delay);
}

static uint64_t cuda_partitioned_key(const struct partita_plan *plan)
{
    const struct cuda_partition_layout *layout = &cuda_partitioned_of(plan)->layout;
    const struct partition_layout *split = &cuda_partitioned_of(plan)->split;
    const size_t whole[] = {split->quantum, split->latency, split->head, split->whole, layout->i16};
    uint64_t hash = hash_bytes(HASH_BEGIN, whole, sizeof whole);
    for (int i = 0; i < layout->n_segments; i++) {
        const int parts[] = {layout->segment[i].quanta, layout->segment[i].partitions};
        hash = hash_bytes(hash, parts, sizeof parts);
    }
    return hash;
}

const struct engine cuda_partitioned = {
    .name = "cuda/partitioned",
    .estimate = cuda_partitioned_estimate,
    .state_bytes = sizeof(struct cuda_partitioned),
    .plan_create = cuda_partitioned_plan_create,
    .plan_destroy = cuda_partitioned_plan_destroy,
    .explain = cuda_partitioned_explain,
    .filter = {.create = paths_create_dense,
               .create_paths = cuda_partitioned_filter_create,
               .destroy = cuda_partitioned_filter_destroy},
    .stream = {.layout = cuda_partitioned_state_layout,
               .open = cuda_partitioned_open,
               .step = cuda_partitioned_step,
               .queue = cuda_partitioned_queue,
               .reset = cuda_partitioned_reset,
               .region = cuda_partitioned_region,
               .region_key = cuda_partitioned_key,
               .close = cuda_partitioned_close,
               .copy_out = cuda_partitioned_copy_out,
               .copy_in = cuda_partitioned_copy_in,
               .plan_load = cuda_partitioned_load},
    .bank = {.open = cuda_bank_open,
             .close = cuda_bank_close,
             .open_slot = cuda_bank_open_slot,
             .process = cuda_bank_process},
};
