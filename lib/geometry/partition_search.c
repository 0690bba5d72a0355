// SPDX-License-Identifier: MIT
// The shortest path over predicted costs: a node is the hop with which a segment may begin, an edge
// a segment that covers the taps up to where the next, larger hop is in time. Source: Garcia,
// Optimal filter partition for efficient convolution with short input/output delay, AES 113 (2002);
// Wefers, Partitioned convolution algorithms for real-time auralization (2015).
#include "partition_search.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"
#include "base/sizes.h"
#include "core/plan.h"
#include "kernels/kernels.h"

enum {
    MAX_HOP = 1 << 17,
    MAX_HOPS = 14, // PARTITION_MIN_QUANTUM << 13
    MAX_MULTIPLE = 4,
    // Zeros behind the last tap: a tenth of the filter, so that spectra take 2.2 times its bytes at
    // most.
    MAX_WASTE_DIVISOR = 10,
};

void partition_sections(const struct partition_segment *segment, size_t bounds[SECTIONS + 1])
{
    // The first partition that is known early enough for the whole batch, and for one block more.
    const size_t known = (segment->batch + segment->multiple - 2) / segment->multiple;
    const size_t pair = segment->batch > 1 ? 1 : 0;
    bounds[SECTION_ALONE] = 0;
    bounds[SECTIONS] = segment->partitions;
    bounds[SECTION_BATCH] = size_min(known, segment->partitions);
    bounds[SECTION_PAIR] = size_min(pair, bounds[SECTION_BATCH]);
}

// One share's batch of 4 blocks, with 15 partitions of multiple 1:
//
//      age            0       1       2       3
//      for 4 blocks   3..14
//      for 2 blocks   1..2            1..2
//      for 1 block    0       0       0       0
size_t partition_sums(const struct partition_segment *segment, size_t age,
                      struct partition_sum ret[SECTIONS])
{
    size_t bounds[SECTIONS + 1];
    size_t n = 0;
    partition_sections(segment, bounds);
    if (age == 0 && bounds[SECTIONS] > bounds[SECTION_BATCH])
        ret[n++] = (struct partition_sum){SECTION_BATCH, segment->batch};
    if (age % 2 == 0 && bounds[SECTION_BATCH] > bounds[SECTION_PAIR])
        ret[n++] = (struct partition_sum){SECTION_PAIR, 2};
    if (bounds[SECTION_PAIR] > 0) ret[n++] = (struct partition_sum){SECTION_ALONE, 1};
    return n;
}

// Complex bins of a segment's spectra.
static size_t partition_bins(const struct shape *shape, const struct partition_segment *segment)
{
    return shape->complex_signal ? segment->n : segment->n / 2;
}

static size_t streams_of(const struct partition_device *device)
{
    return device->streams ? device->streams : 1;
}

// How far away a segment's spectra are: the partitions of all paths and the slots of all inputs. In
// bytes of reals, since the distance decides whether the partitions have 16 bits.
static enum cost_distance distance_of(const struct shape *shape,
                                      const struct partition_device *device,
                                      const struct partition_segment *segment)
{
    const size_t shared = device->rates->shared_bytes;
    const size_t paths = shape_path_count(shape);
    const size_t spectrum = 2 * partition_bins(shape, segment) * shape->scalar_bytes;
    const size_t kept =
        spectrum * (paths * segment->partitions + shape->in_channels * partition_slots(segment));
    // A filter that no cache holds comes from memory block after block, but for its small segments.
    const size_t filter = 2 * paths * shape->axis[0].span * shape->tap_bytes;
    if (filter > shared / 2 && kept > shared / 16) return COST_MEMORY;
    const size_t of_all = size_mul(kept, streams_of(device));
    return of_all > device->rates->fast_bytes / 2 ? COST_FAR : COST_NEAR;
}

// Seconds of a bin's product with a filter in 16 bits from memory. Each sum takes three
// multiply-adds in place of four; widening a bin adds two multiplications by the scale for all
// sums; the other operations run beside them.
static double product_rate_i16(const struct signal_rates *rates, int i, double share)
{
    const double widen = 2.0 / 4 * rates->product[COST_NEAR][2] / (double)(1 << i);
    const double sum = 3.0 / 4 * rates->product[COST_NEAR][i];
    const double bytes = PARTITION_I16_BYTES + share;
    return fmax(sum + widen, rates->product[COST_MEMORY][i] * bytes);
}

// Seconds of a bin's product, with 1, 2 and 4 sums at once. The outputs share their reads of the
// inputs.
static void product_rates(const struct shape *shape, const struct partition_device *device,
                          const struct partition_segment *segment, double ret[3])
{
    const enum cost_distance distance = distance_of(shape, device, segment);
    const double inputs = (double)(segment->multiple * shape->in_channels);
    const double share = fmin(1, inputs / (double)shape_path_count(shape));
    for (int i = 0; i < 3; i++) {
        const double near = device->rates->product[COST_NEAR][i];
        const double measured = device->rates->product[distance][i];
        if (distance == COST_NEAR) ret[i] = near;
        else if (distance == COST_FAR) ret[i] = fmax(near, measured * (1 + share) / 2);
        else if (device->i16) ret[i] = product_rate_i16(device->rates, i, share);
        else ret[i] = measured * (1 + share);
    }
}

// Seconds of one bin's products with a block, of one path.
static double bin_seconds(const struct partition_segment *segment, const double rates[3])
{
    size_t bounds[SECTIONS + 1];
    partition_sections(segment, bounds);
    return (double)(bounds[1] - bounds[0]) * rates[0] + (double)(bounds[2] - bounds[1]) * rates[1] +
           (double)(bounds[3] - bounds[2]) * rates[segment->batch / 2];
}

// Seconds of a block's products for all outputs.
static double products_seconds(const struct shape *shape, const struct partition_device *device,
                               const struct partition_segment *segment, const double rates[3])
{
    struct partition_sum unused[SECTIONS];
    size_t sums = 0;
    for (size_t age = 0; age < segment->batch; age++) sums += partition_sums(segment, age, unused);
    return (double)shape_path_count(shape) * (double)partition_bins(shape, segment) *
               bin_seconds(segment, rates) +
           (double)(sums * shape->out_channels) * device->sum;
}

// Chooses how many blocks are multiplied together, and says how far the spectra are.
static void partition_choose_batch(const struct shape *shape, const struct partition_device *device,
                                   struct partition_segment *segment)
{
    const size_t spectrum = 2 * partition_bins(shape, segment) * shape->scalar_bytes;
    const size_t shares = spectrum / (SPECTRUM_LINE_BYTES);
    // Blocks before its first output at which the last partition's input is known.
    const size_t known = (segment->partitions - 1) * segment->multiple;
    double rates[3];
    product_rates(shape, device, segment, rates);
    segment->far = distance_of(shape, device, segment) != COST_NEAR;
    segment->memory = distance_of(shape, device, segment) == COST_MEMORY;
    segment->i16 = device->i16 && segment->memory;
    segment->batch = 1;
    double least = products_seconds(shape, device, segment, rates);
    for (size_t batch = 2; batch <= device->max_batch && batch <= shares && batch - 1 <= known;
         batch *= 2) {
        struct partition_segment other = *segment;
        other.batch = batch;
        const double seconds = products_seconds(shape, device, &other, rates);
        if (seconds >= least) continue;
        least = seconds;
        segment->batch = batch;
    }
}

double partition_product_seconds(const struct shape *shape, const struct partition_device *device,
                                 const struct partition_segment *segment)
{
    double rates[3];
    product_rates(shape, device, segment, rates);
    return bin_seconds(segment, rates) * (double)partition_bins(shape, segment);
}

// The way to a hop: its cost, the first tap that its segment would cover, and the segment
// before it.
struct node {
    double seconds;
    size_t first, before;
    size_t segments;                  // that lead here
    struct partition_segment segment; // the last of these, from `before` to here
};

struct search {
    const struct shape *shape;
    const struct partition_device *device;
    size_t quantum, latency, n_hops;
    bool whole;          // struct partition_layout
    size_t begin;        // index of the first segment's hop
    size_t slack;        // frames by which the first segment's taps are later than they need be
    double head_seconds; // of the head before it
    struct node node[MAX_HOPS];
    double transforms[MAX_HOPS][MAX_MULTIPLE + 1]; // of a hop and a multiple, seconds a frame; 0:
                                                   // not asked for yet
};

static size_t hop_at(const struct search *search, size_t i)
{
    return search->quantum << i;
}

// Seconds a frame of a segment's transforms of all channels, samples moved included.
static double transforms_seconds(const struct search *search,
                                 const struct partition_segment *segment)
{
    const struct signal_rates *rates = search->device->rates;
    const double channels = (double)(search->shape->in_channels + search->shape->out_channels);
    const double scalars = (double)(segment->n * (search->shape->complex_signal ? 2 : 1));
    // Inputs are fetched; half of the outputs is written.
    const double moved = scalars * (rates->work.copy / 4 + rates->work.fetch);
    const double seconds = rates->transforms(rates, segment->n, channels) +
                           channels * (moved + 4 * search->device->task);
    return seconds / (double)segment->hop;
}

// Seconds a frame of a segment.
static double segment_seconds(struct search *search, const struct partition_segment *segment)
{
    double *transforms = &search->transforms[__builtin_ctzll(segment->quanta)][segment->multiple];
    if (*transforms <= 0) *transforms = transforms_seconds(search, segment);
    double rates[3];
    product_rates(search->shape, search->device, segment, rates);
    const double products = products_seconds(search->shape, search->device, segment, rates);
    return *transforms + products / (double)segment->hop +
           search->device->segment / (double)search->quantum;
}

// Seconds a frame outside of the segments.
static double head_seconds(const struct search *search, size_t head)
{
    const struct shape *shape = search->shape;
    const struct partition_device *device = search->device;
    const size_t call = size_min(shape->block, search->quantum);
    const double products = (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
    const double sum = (double)head * products * device->rates->work.fma;
    const double path = sum + (head ? device->rates->work.call / (double)call : 0);
    return (double)shape_path_count(shape) * path + device->call / (double)call +
           device->quantum / (double)search->quantum + device->frame;
}

static bool is_served(const struct search *search, size_t i, size_t multiple)
{
    const size_t n = (multiple + 1) * hop_at(search, i);
    return n <= search->device->max_transform &&
           search->device->rates->good_size(search->device->rates, n) == n;
}

// Quanta of work on a block. With half windows the work of larger segments fills the other half.
// Streams in other phases fill the rest, so that the work may take fewer quanta, and longer blocks
// are in time earlier.
static size_t segment_window(const struct search *search, size_t quanta, bool last)
{
    const bool half = search->device->half_windows && !last && quanta > 1;
    const size_t max = half ? quanta / 2 : quanta;
    return size_min(max, ceil_div(quanta, streams_of(search->device)));
}

// The first tap that a segment of a hop can serve in time, latency included.
static size_t in_time(const struct search *search, size_t i, bool last)
{
    const struct partition_device *device = search->device;
    const size_t quanta = (size_t)1 << i;
    const size_t window = segment_window(search, quanta, last);
    const size_t lag = quanta > 1 ? device->long_lag : 0;
    const size_t early = search->whole ? 0 : device->early;
    return hop_at(search, i) + (window - 1 + lag) * search->quantum - early;
}

static struct partition_segment make_segment(const struct search *search, size_t i, size_t first,
                                             size_t multiple, size_t partitions, bool last)
{
    const size_t hop = hop_at(search, i);
    const size_t quanta = (size_t)1 << i;
    const size_t slack = first + search->latency - in_time(search, i, last);
    struct partition_segment segment = {
        .hop = hop,
        .n = (multiple + 1) * hop,
        .multiple = multiple,
        .partitions = partitions,
        .first = first,
        .quanta = quanta,
        .window = segment_window(search, quanta, last),
        .start = quanta - 1 + (search->device->fixed_start ? 0 : slack / search->quantum),
    };
    assert(first + search->latency >= in_time(search, i, last));
    partition_choose_batch(search->shape, search->device, &segment);
    return segment;
}

static size_t partitions_for(size_t taps, size_t multiple, size_t hop)
{
    const size_t partitions = ceil_div(taps, multiple * hop);
    return partitions ? partitions : 1;
}

// The segment from node i to hop j: as few partitions as bring the latter in time.
static struct partition_segment segment_between(const struct search *search, size_t i, size_t j,
                                                size_t multiple, bool last)
{
    const size_t first = search->node[i].first;
    const size_t have = first + search->latency;
    const size_t need = in_time(search, j, last) + search->slack;
    const size_t partitions =
        partitions_for(need > have ? need - have : 0, multiple, hop_at(search, i));
    return make_segment(search, i, first, multiple, partitions, false);
}

static size_t end_of(const struct partition_segment *segment)
{
    return segment->first + segment->partitions * segment->multiple * segment->hop;
}

static void relax(struct search *search, size_t i, size_t j, size_t multiple)
{
    const struct partition_segment segment = segment_between(search, i, j, multiple, false);
    if (end_of(&segment) >= search->shape->axis[0].span) return;
    if (segment.partitions > search->device->max_partitions) return;
    const double seconds = search->node[i].seconds + segment_seconds(search, &segment);
    if (seconds < search->node[j].seconds)
        search->node[j] =
            (struct node){seconds, end_of(&segment), i, search->node[i].segments + 1, segment};
}

// Takes the segments that lead to node i, the one before the last if there is one, and the last, if
// that is the best yet. `seconds` are those of the segments, and of the head unless both run side
// by side.
static void try_partition_layout(const struct search *search, size_t i,
                                 const struct partition_segment *before,
                                 const struct partition_segment *last, double seconds,
                                 struct partition_layout *best)
{
    const size_t span = search->shape->axis[0].span;
    const bool wasteful =
        !search->device->any_waste && end_of(last) - span > span / MAX_WASTE_DIVISOR;
    if (last->partitions > search->device->max_partitions) return;
    if (best->n_segments) {
        const bool slower = best->seconds <= seconds;
        if (best->wasteful == wasteful ? slower : wasteful) return;
    }
    *best = (struct partition_layout){
        .quantum = search->quantum,
        .begin = search->begin,
        .latency = search->latency,
        .whole = search->whole,
        .head = before ? search->node[search->begin].first : last->first,
        .n_segments = before ? search->node[i].segments + 2 : 1,
        .wasteful = wasteful,
        .seconds = seconds,
        .head_seconds = search->head_seconds,
        .segment_seconds = seconds - search->head_seconds,
    };
    assert(best->n_segments <= PARTITION_MAX_SEGMENTS);
    size_t index = best->n_segments;
    best->segment[--index] = *last;
    if (before) best->segment[--index] = *before;
    for (size_t at = i; index > 0; at = search->node[at].before)
        best->segment[--index] = search->node[at].segment;
}

static double seconds_to_beat(const struct partition_layout *best)
{
    return best->n_segments && !best->wasteful ? best->seconds : INFINITY;
}

// Completes the layout up to node i by a segment of hop j that holds the rest.
static void finish_layout(struct search *search, size_t i, size_t j, size_t multiple,
                          struct partition_layout *best)
{
    const size_t span = search->shape->axis[0].span;
    const struct partition_segment before = segment_between(search, i, j, multiple, true);
    if (before.partitions > search->device->max_partitions) return;
    const double seconds = search->node[i].seconds + segment_seconds(search, &before);
    if (end_of(&before) >= span || seconds > seconds_to_beat(best)) return;
    for (size_t fold = 1; fold <= search->device->max_multiple; fold++) {
        if (!is_served(search, j, fold)) continue;
        const size_t partitions = partitions_for(span - end_of(&before), fold, hop_at(search, j));
        const struct partition_segment last =
            make_segment(search, j, end_of(&before), fold, partitions, true);
        try_partition_layout(search, i, &before, &last, seconds + segment_seconds(search, &last),
                             best);
    }
}

// Seconds before the first segment: the head alone, a kernel launch a quantum where that is queued.
static double seconds_before(const struct search *search)
{
    return search->head_seconds + search->device->launch / (double)search->quantum;
}

// Layouts of a single segment, with a head before it.
static void finish_single(struct search *search, size_t i, size_t first,
                          struct partition_layout *best)
{
    const size_t span = search->shape->axis[0].span;
    if (first >= span) return;
    search->head_seconds = head_seconds(search, first);
    for (size_t multiple = 1; multiple <= search->device->max_multiple; multiple++) {
        if (!is_served(search, i, multiple)) continue;
        const size_t partitions = partitions_for(span - first, multiple, hop_at(search, i));
        const struct partition_segment last =
            make_segment(search, i, first, multiple, partitions, true);
        try_partition_layout(search, i, NULL, &last,
                             seconds_before(search) + segment_seconds(search, &last), best);
    }
}

// Delays are whole output frames, and whole quanta unless the device needs none of that; more than
// a first segment needs is not taken. Returns the taps that are left to the head.
static size_t choose_latency(struct search *search, size_t needed, size_t allowed)
{
    const size_t stride = shape_output_step(search->shape);
    // The least common multiple: a quantum is a power of two.
    const size_t twos = stride & (~stride + 1);
    const size_t quanta = size_mul(stride, search->quantum / size_min(twos, search->quantum));
    const size_t unit = search->device->any_latency ? stride : quanta;
    const size_t quantum = search->whole ? search->quantum : 0;
    const size_t more = needed > quantum ? needed - quantum : 0;
    search->latency = quantum + size_min(ceil_div(more, unit), allowed / unit) * unit;
    return needed > search->latency ? needed - search->latency : 0;
}

// All layouts of one quantum whose first segment has hop `begin`.
static void search_from(struct search *search, size_t begin, size_t allowed,
                        struct partition_layout *best)
{
    const size_t span = search->shape->axis[0].span;
    const size_t max_segments = search->device->max_segments;
    search->begin = begin;
    finish_single(search, begin, choose_latency(search, in_time(search, begin, true), allowed),
                  best);
    const size_t needed = in_time(search, begin, false);
    const size_t head = choose_latency(search, needed, allowed);
    if (head >= span) return;
    search->slack = search->device->fixed_start ? head + search->latency - needed : 0;
    search->head_seconds = head_seconds(search, head);
    for (size_t i = 0; i < search->n_hops; i++)
        search->node[i] = (struct node){.seconds = INFINITY};
    search->node[begin] =
        (struct node){.seconds = seconds_before(search), .first = head, .before = begin};
    for (size_t i = begin; i < search->n_hops; i++) {
        const struct node *node = &search->node[i];
        if (node->seconds >= seconds_to_beat(best) || node->segments + 2 > max_segments) continue;
        for (size_t multiple = 1; multiple <= search->device->max_multiple; multiple++) {
            if (!is_served(search, i, multiple)) continue;
            for (size_t j = i + 1; j < search->n_hops; j++) {
                finish_layout(search, i, j, multiple, best);
                if (node->segments + 3 <= max_segments) relax(search, i, j, multiple);
            }
        }
    }
}

double partition_flops(const struct shape *shape, const struct partition_layout *layout)
{
    const double paths = (double)shape_path_count(shape);
    const double complex = shape->complex_signal ? 2 : 1;
    const double channels = (double)(shape->in_channels + shape->out_channels);
    double flops = paths * (double)layout->head * 2 * complex * (shape->complex_taps ? 2 : 1);
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        const double n = (double)segment->n;
        flops += (channels * complex * 2.5 * n * log2(n) +
                  paths * complex * 4 * n * (double)segment->partitions) /
                 (double)segment->hop;
    }
    return flops;
}

bool partition_search(const struct shape *shape, const struct partition_device *device,
                      const struct estimate *estimate, struct partition_layout *ret)
{
    struct partition_choice choice = {0};
    const size_t allowed = shape->latency == PARTITA_UNBOUNDED ? 4 * MAX_HOP : shape->latency;
    const size_t max_quantum = size_min(shape->block, PARTITION_MAX_QUANTUM);
    assert(device->max_multiple <= MAX_MULTIPLE && device->max_batch <= PARTITION_MAX_BATCH);
    if (estimate) estimate_load(estimate, &choice, sizeof choice);
    *ret = (struct partition_layout){0};
    for (size_t quantum = PARTITION_MIN_QUANTUM;
         quantum == PARTITION_MIN_QUANTUM || quantum <= max_quantum; quantum *= 2) {
        // Whole blocks admit the layouts for any calls, too, which may be cheaper.
        for (int whole = shape->whole_blocks && shape->block % quantum == 0; whole >= 0; whole--) {
            struct search search = {
                .shape = shape, .device = device, .quantum = quantum, .whole = whole};
            if ((device->whole && !whole) || (estimate && choice.quantum != quantum)) continue;
            // A hop beyond the filter's length covers it with one partition.
            while (search.n_hops < MAX_HOPS && hop_at(&search, search.n_hops) <= MAX_HOP &&
                   (search.n_hops == 0 || hop_at(&search, search.n_hops - 1) < shape->axis[0].span))
                search.n_hops++;
            for (size_t begin = 0; begin < (device->first_is_quantum ? 1 : search.n_hops); begin++)
                if (!estimate || choice.begin == begin) search_from(&search, begin, allowed, ret);
        }
    }
    return ret->n_segments > 0;
}
