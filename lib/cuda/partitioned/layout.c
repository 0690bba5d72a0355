// SPDX-License-Identifier: MIT
// Which partitions a stream is cut into on a device: the search of geometry/partition_search.h with
// the device's rates.
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "cuda/device/rates.h"
#include "geometry/partition_search.h"
#include "partitioned.h"

// What this engine costs beside the device's rates, in seconds that are estimated, not measured,
// and its limits.
static const struct {
    double host_launch;                 // launching a graph, on the host
    double graph;                       // running a graph, and the wait for it
    double pass;                        // one pass of transforms that occupy the device once
    size_t max_channels, max_paths;     // so that their thread blocks fit a launch
    size_t max_partitions, max_spectra; // of a path, and of all
} PARTITIONED = {
    .host_launch = 5e-6,
    .graph = 1e-5,
    .pass = 5e-7,
    .max_channels = (size_t)1 << 20,
    .max_paths = (size_t)1 << 24,
    .max_partitions = (size_t)1 << 22,
    .max_spectra = (size_t)1 << 30,
};

// Hops and so transforms are powers of two, all of which a device takes.
static size_t cuda_partition_good_size(const struct signal_rates *rates, size_t n)
{
    (void)rates;
    return n;
}

static double cuda_partition_transform_seconds(const struct signal_rates *rates, size_t n,
                                               double count)
{
    const struct request *request = rates->context;
    const double points = (double)(request->shape->complex_signal ? n : n / 2);
    const double waves = ceil(count * points / CUDA_FFT_POINTS / cuda_rates_of(request).threads);
    return waves * ceil(log2(points) / 4) * PARTITIONED.pass;
}

static struct signal_rates cuda_partition_rates(const struct request *request)
{
    const struct cost_rates *host = &request->model->costs[request->shape->f64];
    // Of every product two bins are read from the device's memory, wherever they are.
    const double product = 4 * (double)request->shape->scalar_bytes / cuda_rates_of(request).bytes;
    return (struct signal_rates){
        .context = request,
        .good_size = cuda_partition_good_size,
        .transforms = cuda_partition_transform_seconds,
        .product[COST_NEAR] = {product, product, product},
        .multiply_add = host->fma,
        .direct_call = host->fir_call,
        .fast_bytes = SIZE_MAX,
        .shared_bytes = SIZE_MAX,
    };
}

// With `ahead` the device has a quantum's time for its work, beside the host's.
static struct partition_device cuda_partition_device(const struct request *request,
                                                     const struct signal_rates *rates, bool ahead)
{
    const struct shape *shape = request->shape;
    const double moved = (double)(3 * shape->in_channels + 2 * shape->out_channels);
    const double reals = shape->complex_signal ? 2 : 1;
    const size_t points = cuda_fft_max(shape->f64);
    return (struct partition_device){
        .rates = rates,
        .max_segments = CUDA_MAX_SEGMENTS,
        .max_multiple = 1,
        .max_batch = 1,
        .max_transform = shape->complex_signal ? points : 2 * points,
        .max_partitions =
            size_min(PARTITIONED.max_partitions, PARTITIONED.max_spectra / dense_paths(shape)),
        .first_is_quantum = true,
        .fixed_start = true,
        .any_latency = true,
        .any_waste = true,
        .lag = ahead,
        .long_lag = 1,
        .early = 1,
        .parallel = ahead,
        .launch = PARTITIONED.graph,
        .quantum = PARTITIONED.host_launch,
        .frame = moved * reals * request->model->costs[shape->f64].copy,
    };
}

// Seconds of a quantum in which the blocks of all segments are complete.
static double worst_quantum_seconds(const struct shape *shape, const struct signal_rates *rates,
                                    const struct partition_layout *layout)
{
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const double host = layout->head_seconds * (double)layout->quantum;
    double device = layout->segment_seconds * (double)layout->quantum;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        const double mean = 1 / (double)segment->quanta;
        device += rates->transforms(rates, segment->n, channels) * (1 - mean);
    }
    return layout->parallel ? fmax(host, device) : host + device;
}

static struct cuda_partitioned_choice choice_of(const struct shape *shape,
                                                const struct signal_rates *rates,
                                                const struct partition_layout *layout)
{
    struct cuda_partitioned_choice choice = {
        .whole = layout->whole,
        .ahead = layout->parallel,
        .n_segments = (int)layout->n_segments,
        .quantum = layout->quantum,
        .latency = layout->latency,
        .head = layout->head,
        .seconds = layout->seconds,
        .host_seconds = layout->head_seconds,
        .worst_quantum = worst_quantum_seconds(shape, rates, layout),
    };
    assert(layout->n_segments >= 1 && layout->n_segments <= CUDA_MAX_SEGMENTS);
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        assert(segment->n == 2 * segment->hop && segment->batch == 1);
        assert(segment->first ==
               layout->head + layout->quantum * (i ? 2 * segment->quanta - 1 : 0));
        choice.segment[i].quanta = (int)segment->quanta;
        choice.segment[i].partitions = (int)segment->partitions;
    }
    return choice;
}

bool cuda_partitioned_choose(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const struct signal_rates rates = cuda_partition_rates(request);
    struct partition_layout layout = {0};
    if (shape->in_channels > PARTITIONED.max_channels ||
        shape->out_channels > PARTITIONED.max_channels ||
        dense_paths(shape) > PARTITIONED.max_paths) {
        snprintf(ret->reason, sizeof ret->reason, "%zu x %zu channels are more than a launch takes",
                 shape->in_channels, shape->out_channels);
        return false;
    }
    for (int ahead = 0; ahead < 2; ahead++) {
        const struct partition_device device = cuda_partition_device(request, &rates, ahead);
        partition_search(shape, &device, &layout);
    }
    if (!layout.n_segments) {
        snprintf(ret->reason, sizeof ret->reason, "%zu taps are too few to be cut into partitions",
                 shape->axis[0].span);
        return false;
    }
    const struct cuda_partitioned_choice choice = choice_of(shape, &rates, &layout);
    ret->flops = partition_flops(shape, &layout);
    estimate_store(ret, &choice, sizeof choice);
    return true;
}

struct cuda_partition_layout cuda_partitioned_layout(const struct shape *shape,
                                                     const struct cuda_partitioned_choice *choice)
{
    const int quantum = (int)choice->quantum;
    struct cuda_partition_layout layout = {
        .quantum = quantum,
        .log2_share = __builtin_ctz((unsigned)quantum) + shape->complex_signal,
        .inputs = (int)shape->in_channels,
        .outputs = (int)shape->out_channels,
        .complex = shape->complex_signal,
        .f64 = shape->f64,
        .n_segments = choice->n_segments,
        .ring_quanta = (int)(cuda_partitioned_delay(choice) / choice->quantum + 2),
    };
    for (int i = 0; i < choice->n_segments; i++) {
        struct cuda_segment *segment = &layout.segment[i];
        const int quanta = choice->segment[i].quanta;
        assert(i == 0 ? quanta == 1 : quanta > layout.segment[i - 1].quanta);
        segment->quanta = quanta;
        segment->hop = quanta * quantum;
        segment->points = segment->hop * (shape->complex_signal ? 2 : 1);
        segment->partitions = choice->segment[i].partitions;
        segment->start = i ? 2 * quanta - 1 : 0;
        layout.window = 2 * segment->hop;
        assert((size_t)segment->points <= cuda_fft_max(shape->f64));
    }
    return layout;
}
