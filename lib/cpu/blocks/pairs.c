// SPDX-License-Identifier: MIT
// The usual method of cpu/blocks: all pairs of segments (pair_sums.h), some output blocks in flight
// at a time.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "blocks.h"
#include "geometry/samples.h"

// A filter's state: the spectra of every path, [out][in of group].
static struct segment_spectra path_spectra(const struct partita_plan *plan, void *state,
                                           size_t path)
{
    const size_t segments = blocks_layout(plan)->segments;
    const size_t bytes = segment_spectra_bytes(fft_lines(blocks_of(plan)->fft), segments);
    return (struct segment_spectra){(char *)state + path * bytes, segments};
}

// As many before the first as there are segments of the taps.
struct segment_range pairs_inputs(const struct partita_plan *plan, size_t first, size_t end)
{
    const struct block_layout *layout = blocks_layout(plan);
    const size_t size = blocks_shape(plan)->axis[0].size;
    struct segment_range range = segments_inside(layout->trimmed.first, layout->segment, size);
    const ptrdiff_t from = (ptrdiff_t)first - (ptrdiff_t)layout->segments;
    ptrdiff_t behind = range.first + (ptrdiff_t)range.count;
    if (range.first < from) range.first = from;
    if (behind > (ptrdiff_t)end) behind = (ptrdiff_t)end;
    range.count = behind > range.first ? (size_t)(behind - range.first) : 0;
    return range;
}

void pairs_load_input(const struct partita_plan *plan, const char *x, ptrdiff_t index,
                      char *samples)
{
    const struct block_layout *layout = blocks_layout(plan);
    const struct shape *shape = blocks_shape(plan);
    const ptrdiff_t at = layout->trimmed.first + index * (ptrdiff_t)layout->segment;
    samples_window(samples, x, shape->axis[0].size, at, 1, layout->segment, shape->sample_bytes);
}

// Spectra of inputs that are held at most.
static size_t max_inputs(const struct partita_plan *plan)
{
    const struct block_layout *layout = blocks_layout(plan);
    const size_t size = blocks_shape(plan)->axis[0].size;
    const size_t all = segments_inside(layout->trimmed.first, layout->segment, size).count;
    return size_min(all, layout->in_flight + layout->segments);
}

static size_t inputs_bytes(const struct partita_plan *plan)
{
    return segment_spectra_bytes(fft_lines(blocks_of(plan)->fft), max_inputs(plan));
}

void pairs_sizes(const struct partita_plan *plan, struct block_layout *layout)
{
    const struct segment_transform transform = blocks_transform(plan);
    const size_t outputs = size_mul(fft_spectrum_bytes(transform.fft), layout->in_flight + 1);
    layout->shared = size_add(size_mul(blocks_shape(plan)->group_in, inputs_bytes(plan)), outputs);
    layout->worker = size_add(pair_sums_bytes(layout->segments), segment_buffers_bytes(&transform));
}

static size_t pairs_filtering_bytes(const struct partita_plan *plan)
{
    const struct segment_transform transform = blocks_transform(plan);
    return segment_buffers_bytes(&transform) +
           mem_round(blocks_layout(plan)->segment * blocks_shape(plan)->tap_bytes);
}

// One task: one segment of one path.
static void pairs_transform_segment(void *context, size_t task, int worker)
{
    const struct blocks_filtering *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    const struct segment_transform transform = blocks_transform(plan);
    const size_t path = task / layout->segments, segment = task % layout->segments;
    struct arena arena = {.base = call->work + (size_t)worker * call->work_bytes,
                          .size = call->work_bytes};
    struct segment_buffers buffers = segment_buffers_layout(&transform, &arena);
    char *narrow = arena_take(&arena, layout->segment * shape->tap_bytes);
    const struct blocks_taps taps =
        blocks_segment(plan, call->taps, path, segment, layout->segment);
    blocks_load_taps(shape, &taps, buffers.samples, narrow);
    const struct segment_spectra spectra = path_spectra(plan, call->filter->state, path);
    segment_forward(&transform, &spectra, segment, &buffers);
}

enum partita_status pairs_filter(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const size_t paths = blocks_shape(plan)->out_channels * blocks_shape(plan)->group_in;
    const size_t bytes =
        segment_spectra_bytes(fft_lines(blocks_of(plan)->fft), blocks_layout(plan)->segments);
    return blocks_filter(filter, taps, size_mul(paths, bytes), pairs_filtering_bytes(plan),
                         pairs_transform_segment);
}

// Some output blocks of one group of one item of the batch.
struct flight {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    struct segment_transform transform;
    char *inputs, *outputs; // spectra
    char *workspace;
    const char *x; // of the group's first channel
    char *y;       // of the output channel
    size_t first, count;
    struct segment_range range;
    size_t kept; // of these inputs, from the blocks before
    struct pair_sums sums;
};

static struct segment_spectra input_spectra(const struct flight *flight, size_t channel)
{
    return (struct segment_spectra){flight->inputs + channel * inputs_bytes(flight->plan),
                                    max_inputs(flight->plan)};
}

static struct segment_buffers pairs_worker_buffers(const struct flight *flight, int worker)
{
    struct arena arena = blocks_worker(flight->plan, flight->workspace, worker);
    return segment_buffers_layout(&flight->transform, &arena);
}

// One task: one segment of one channel.
static void transform_input(void *context, size_t task, int worker)
{
    const struct flight *flight = context;
    const struct shape *shape = blocks_shape(flight->plan);
    const size_t fresh = flight->range.count - flight->kept;
    const size_t channel = task / fresh, i = flight->kept + task % fresh;
    const char *x = flight->x + channel * shape->axis[0].size * shape->sample_bytes;
    struct segment_buffers buffers = pairs_worker_buffers(flight, worker);
    pairs_load_input(flight->plan, x, flight->range.first + (ptrdiff_t)i, buffers.samples);
    const struct segment_spectra spectra = input_spectra(flight, channel);
    segment_forward(&flight->transform, &spectra, i, &buffers);
}

// Goes on to the inputs of the blocks at hand; those that the last ones read too are kept.
static void next_inputs(struct flight *flight)
{
    const struct partita_plan *plan = flight->plan;
    const size_t end_block = flight->first + flight->count;
    const struct segment_range next = pairs_inputs(plan, flight->first, end_block);
    const struct segment_range last = flight->range;
    const ptrdiff_t end = last.first + (ptrdiff_t)last.count;
    const size_t channels = blocks_shape(plan)->group_in;
    flight->kept = end > next.first ? (size_t)(end - next.first) : 0;
    flight->range = next;
    assert(next.count <= max_inputs(plan) && flight->kept <= next.count);
    for (size_t c = 0; flight->kept && c < channels; c++) {
        const struct segment_spectra spectra = input_spectra(flight, c);
        segment_spectra_shift(&flight->transform, &spectra, (size_t)(next.first - last.first),
                              flight->kept, plan->threads);
    }
    thread_loop(plan->threads, channels * (next.count - flight->kept), transform_input, flight);
    // Between the signal's ends no sum reaches beyond these segments.
    const bool inside =
        flight->first > 0 && next.first + (ptrdiff_t)next.count >= (ptrdiff_t)end_block;
    for (size_t c = 0; !inside && c < channels; c++) {
        const struct segment_spectra spectra = input_spectra(flight, c);
        segment_spectra_margins(&flight->transform, &spectra, next.count, plan->threads);
    }
}

// One task: one output block.
static void pairs_finish_output(void *context, size_t task, int worker)
{
    const struct flight *flight = context;
    const struct axis *axis = &blocks_shape(flight->plan)->axis[0];
    const size_t bytes = flight->transform.sample_bytes;
    const size_t hop = flight->transform.length, begin = (flight->first + task) * hop;
    struct segment_buffers buffers = pairs_worker_buffers(flight, worker);
    const struct segment_outputs out = segment_outputs(axis, begin, begin + hop);
    if (!out.count) return;
    segment_inverse(&flight->transform, pair_sums_out(&flight->sums, task), &buffers);
    samples_copy(flight->y + out.first * bytes, 1, buffers.samples + out.skip * bytes, axis->stride,
                 out.count, bytes);
}

// One output channel.
static void sum_channel(struct flight *flight, size_t channel)
{
    const struct partita_plan *plan = flight->plan;
    const struct shape *shape = blocks_shape(plan);
    struct arena arena = blocks_worker(plan, flight->workspace, 0);
    segment_buffers_layout(&flight->transform, &arena);
    for (size_t c = 0; c < shape->group_in; c++) {
        flight->sums = (struct pair_sums){
            .transform = &flight->transform,
            .left = path_spectra(plan, flight->filter->state, channel * shape->group_in + c),
            .right = input_spectra(flight, c),
            .right_first = flight->range.first,
            .right_count = flight->range.count,
            .first = (ptrdiff_t)flight->first,
            .count = flight->count,
            .out = flight->outputs,
            .work = arena.base + arena.used,
            .work_stride = plan->choice.worker,
            .add = c > 0,
            .gather = c + 1 == shape->group_in,
        };
        pair_sums_run(&flight->sums, plan->threads);
    }
    thread_loop(plan->threads, flight->count, pairs_finish_output, flight);
}

void pairs_run(const struct partita_plan *plan, const struct partita_filter *filter,
               const struct operands *operands, char *workspace)
{
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    const size_t bytes = shape->sample_bytes, outputs = shape->axis[0].out;
    struct flight flight = {.plan = plan,
                            .filter = filter,
                            .transform = blocks_transform(plan),
                            .inputs = workspace,
                            .workspace = workspace};
    flight.outputs = workspace + shape->group_in * inputs_bytes(plan);
    for (size_t at = 0; at < shape->batch * shape->groups; at++) {
        const size_t in = at * shape->group_in, out = at * shape->group_out;
        const size_t first_channel = at % shape->groups * shape->group_out;
        flight.x = (const char *)operands->from[0] + in * shape->axis[0].size * bytes;
        flight.range = (struct segment_range){PTRDIFF_MIN, 0};
        for (flight.first = 0; flight.first < layout->blocks; flight.first += layout->in_flight) {
            flight.count = size_min(layout->blocks - flight.first, layout->in_flight);
            next_inputs(&flight);
            for (size_t k = 0; k < shape->group_out; k++) {
                flight.y = (char *)operands->to + (out + k) * outputs * bytes;
                sum_channel(&flight, first_channel + k);
            }
        }
    }
}
