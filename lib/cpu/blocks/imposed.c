// SPDX-License-Identifier: MIT
// Blocks of sizes that the caller imposes. All pairs that begin at one output are summed, in one
// transform or in time; the intervals of a division do not overlap, so they are added to the result
// in parallel, one division after the other (geometry/part_schedule.h).
#include <assert.h>
#include <string.h>

#include "blocks.h"
#include "geometry/samples.h"

enum { MAX_TERMS = 64 }; // products summed in a row before they are rounded into a sum of sums

static struct part_schedule imposed_schedule(const struct partita_plan *plan)
{
    const struct block_layout *layout = blocks_layout(plan);
    return part_schedule_of(blocks_shape(plan), layout->tap_block, layout->signal_block);
}

size_t imposed_shared(const struct partita_plan *plan)
{
    const struct part_schedule schedule = imposed_schedule(plan);
    const struct fft *fft = blocks_of(plan)->fft;
    return fft ? size_mul(
                     size_mul(blocks_shape(plan)->group_in, part_schedule_signals(&schedule).size),
                     fft->spectrum_bytes)
               : 0;
}

struct imposed_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const char *x; // of the group's first channel
    char *y;       // of the output channel
    size_t output, division;
    struct part_schedule schedule;
    struct range signals;
    char *spectra; // [group_in][signals]
    struct block_transform transform;
};

// samples = zeros, block `index` of a channel, zeros.
static void load_signal(const struct imposed_call *call, size_t channel, size_t index,
                        char *samples, size_t before, size_t length)
{
    const struct shape *shape = blocks_shape(call->plan);
    const size_t size = shape->axis[0].size, bytes = shape->sample_bytes;
    const size_t first = index * call->schedule.signal_part;
    samples_window(samples, call->x + (channel * size + first) * bytes,
                   size_min(size - first, call->schedule.signal_part), -(ptrdiff_t)before, 1,
                   length, bytes);
}

// One task: the spectrum of one block of one channel. Of pairs of an interval, the blocks of the
// signal go down as those of the taps go up, so spectra are stored from the last block on.
static void imposed_transform_signal(void *context, size_t task, int worker)
{
    const struct imposed_call *call = context;
    const struct fft *fft = call->transform.fft;
    const struct block_buffers buffers = block_buffers_of(&call->transform, worker);
    const size_t size = call->signals.size, channel = task / size, i = task % size;
    load_signal(call, channel, (size_t)call->signals.first + size - 1 - i, buffers.samples, 0,
                fft->n);
    fft_forward(fft, call->spectra + task * fft->spectrum_bytes, buffers.samples, buffers.scratch);
}

static const char *taps_at(const struct imposed_call *call, size_t channel, size_t block)
{
    const size_t path = call->output * blocks_shape(call->plan)->group_in + channel;
    const size_t index = path * blocks_layout(call->plan)->tap_blocks + block;
    return (const char *)call->filter->state + index * blocks_taps_bytes(call->plan);
}

// The samples of all pairs of an interval, by one transform.
static char *sum_by_transform(const struct imposed_call *call,
                              const struct part_schedule_pairs *pairs,
                              const struct block_buffers *buffers)
{
    const struct kernels *kernels = call->plan->kernels;
    const struct shape *shape = blocks_shape(call->plan);
    const struct fft *fft = call->transform.fft;
    const size_t lines = fft->lines, bytes = fft->spectrum_bytes;
    const size_t behind = (size_t)range_end(call->signals) - 1;
    char *sum = buffers->spectrum, *row = sum + bytes;
    memset(sum, 0, bytes);
    for (size_t c = 0; c < shape->group_in; c++)
        for (size_t i = 0, n; i < pairs->count; i += n) {
            const size_t signal = behind - (pairs->signal - i * pairs->signal_step);
            const char *x = call->spectra + (c * call->signals.size + signal) * bytes;
            const char *h = taps_at(call, c, pairs->taps + i * pairs->taps_step);
            n = size_min(pairs->count - i, MAX_TERMS);
            assert(signal + (n - 1) * pairs->signal_step < call->signals.size);
            kernels->cmac(row, x, pairs->signal_step * lines, h, pairs->taps_step * lines, n,
                          lines);
            kernels->add(sum, row, bytes / shape->scalar_bytes);
        }
    fft_inverse(fft, buffers->samples, sum, buffers->scratch);
    kernels->scale(buffers->samples, buffers->samples, 1 / fft->gain,
                   fft->n * shape->sample_bytes / shape->scalar_bytes);
    return buffers->samples;
}

static char *sum_in_time(const struct imposed_call *call, const struct part_schedule_pairs *pairs,
                         const struct block_buffers *buffers)
{
    const struct kernels *kernels = call->plan->kernels;
    const struct shape *shape = blocks_shape(call->plan);
    const size_t taps = call->schedule.taps_part, n = call->schedule.apart - 1, zeros = taps - 1;
    const char *x = buffers->samples + zeros * shape->sample_bytes;
    memset(buffers->spectrum, 0, n * shape->sample_bytes);
    for (size_t c = 0; c < shape->group_in; c++)
        for (size_t i = 0; i < pairs->count; i++) {
            const char *h = taps_at(call, c, pairs->taps + i * pairs->taps_step);
            load_signal(call, c, pairs->signal - i * pairs->signal_step, buffers->samples, zeros,
                        n + zeros);
            kernels->fir(buffers->spectrum, x, h, n, taps, shape_fir_type(shape));
        }
    return buffers->spectrum;
}

// One task: one interval of the division at hand.
static void add_interval(void *context, size_t task, int worker)
{
    const struct imposed_call *call = context;
    const struct shape *shape = blocks_shape(call->plan);
    const struct part_schedule *schedule = &call->schedule;
    const size_t begin = part_schedule_begin(schedule, call->division, task);
    const size_t bytes = shape->sample_bytes;
    const struct part_schedule_pairs pairs = part_schedule_pairs(schedule, begin);
    if (!pairs.count) return;
    const struct block_buffers buffers = block_buffers_of(&call->transform, worker);
    const char *samples = blocks_layout(call->plan)->n ? sum_by_transform(call, &pairs, &buffers)
                                                       : sum_in_time(call, &pairs, &buffers);
    const struct range interval = {(ptrdiff_t)begin, schedule->apart - 1};
    const struct range wanted = range_within(interval, schedule->first, schedule->end);
    assert(wanted.size > 0);
    call->plan->kernels->add(call->y + (size_t)(wanted.first - schedule->first) * bytes,
                             samples + (size_t)(wanted.first - interval.first) * bytes,
                             wanted.size * bytes / shape->scalar_bytes);
}

void imposed_run(const struct partita_plan *plan, const struct partita_filter *filter,
                 const struct operands *operands, char *workspace)
{
    const struct shape *shape = blocks_shape(plan);
    const struct axis *axis = &shape->axis[0];
    struct imposed_call call = {.plan = plan,
                                .filter = filter,
                                .schedule = imposed_schedule(plan),
                                .spectra = workspace,
                                .transform = blocks_transform(plan, workspace)};
    call.signals = part_schedule_signals(&call.schedule);
    for (size_t at = 0; at < shape->batch * shape->groups; at++) {
        const size_t in = at * shape->group_in, out = at * shape->group_out;
        call.x = (const char *)operands->from[0] + in * axis->size * shape->sample_bytes;
        if (blocks_layout(plan)->n)
            thread_loop(plan->threads, shape->group_in * call.signals.size,
                        imposed_transform_signal, &call);
        for (size_t k = 0; k < shape->group_out; k++) {
            call.output = at % shape->groups * shape->group_out + k;
            call.y = (char *)operands->to + (out + k) * axis->out * shape->sample_bytes;
            memset(call.y, 0, axis->out * shape->sample_bytes);
            for (call.division = 0; call.division < call.schedule.count; call.division++)
                thread_loop(plan->threads, part_schedule_intervals(&call.schedule, call.division),
                            add_interval, &call);
        }
    }
}
