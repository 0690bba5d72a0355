// SPDX-License-Identifier: MIT
// Blocks of sizes that the caller imposes. All pairs that begin at one output are summed, in one
// transform or in time; the intervals of a division do not overlap, so they are added to the result
// in parallel, one division after the other (geometry/part_schedule.h). If several divisions are
// summed at once, all but the first are summed in rows of their own, which are then added to the
// result in the order of the divisions: the bits are the same.
#include <assert.h>
#include <string.h>

#include "blocks.h"
#include "geometry/samples.h"

enum {
    MAX_TERMS = 64,        // products summed in a row before they are rounded into a sum of sums
    OUTPUTS_OF_TASK = 4096 // that a task adds to the result
};

static struct part_schedule imposed_schedule(const struct partita_plan *plan)
{
    const struct block_layout *layout = blocks_layout(plan);
    return part_schedule_of(blocks_shape(plan), layout->tap_block, layout->signal_block);
}

// Bytes of the rows of divisions that are summed at once.
static size_t rows_bytes(const struct partita_plan *plan)
{
    return size_mul(blocks_layout(plan)->divisions - 1, blocks_row_bytes(blocks_shape(plan)));
}

size_t imposed_shared(const struct partita_plan *plan)
{
    const struct part_schedule schedule = imposed_schedule(plan);
    const struct fft *fft = blocks_of(plan)->fft;
    const size_t spectra =
        size_mul(blocks_shape(plan)->group_in, part_schedule_signals(&schedule).size);
    return size_add(rows_bytes(plan), fft ? size_mul(spectra, fft->spectrum_bytes) : 0);
}

struct imposed_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const char *x;                   // of the group's first channel
    char *y;                         // of the output channel
    size_t output, first, divisions; // divisions at hand
    struct part_schedule schedule;
    struct range signals;
    char *rows, *spectra; // of the divisions at hand but the first; [group_in][signals]
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

// Where the division at `index` of those at hand is summed.
static char *division_row(const struct imposed_call *call, size_t index)
{
    return index ? call->rows + (index - 1) * blocks_row_bytes(blocks_shape(call->plan)) : call->y;
}

// One task: zeros for a division at hand, but not on the sums of earlier ones.
static void clear_division(void *context, size_t task, int worker)
{
    const struct imposed_call *call = context;
    const struct shape *shape = blocks_shape(call->plan);
    (void)worker;
    if (task || !call->first)
        memset(division_row(call, task), 0, shape->axis[0].out * shape->sample_bytes);
}

// One task: some outputs, to which the other divisions at hand are added.
static void add_rows(void *context, size_t task, int worker)
{
    const struct imposed_call *call = context;
    const struct shape *shape = blocks_shape(call->plan);
    const size_t at = task * OUTPUTS_OF_TASK, bytes = shape->sample_bytes;
    const size_t n = size_min(shape->axis[0].out - at, OUTPUTS_OF_TASK);
    (void)worker;
    for (size_t i = 1; i < call->divisions; i++)
        call->plan->kernels->add(call->y + at * bytes, division_row(call, i) + at * bytes,
                                 n * bytes / shape->scalar_bytes);
}

// One task: one interval of a division at hand.
static void add_interval(void *context, size_t task, int worker)
{
    const struct imposed_call *call = context;
    const struct shape *shape = blocks_shape(call->plan);
    const struct part_schedule *schedule = &call->schedule;
    const size_t max = blocks_layout(call->plan)->blocks, index = task / max;
    const size_t division = call->first + index;
    if (task % max >= part_schedule_intervals(schedule, division)) return;
    const size_t begin = part_schedule_begin(schedule, division, task % max);
    const size_t bytes = shape->sample_bytes;
    const struct part_schedule_pairs pairs = part_schedule_pairs(schedule, begin);
    if (!pairs.count) return;
    const struct block_buffers buffers = block_buffers_of(&call->transform, worker);
    const char *samples = blocks_layout(call->plan)->n ? sum_by_transform(call, &pairs, &buffers)
                                                       : sum_in_time(call, &pairs, &buffers);
    const struct range interval = {(ptrdiff_t)begin, schedule->apart - 1};
    const struct range wanted = range_within(interval, schedule->first, schedule->end);
    assert(wanted.size > 0);
    char *row = division_row(call, index);
    call->plan->kernels->add(row + (size_t)(wanted.first - schedule->first) * bytes,
                             samples + (size_t)(wanted.first - interval.first) * bytes,
                             wanted.size * bytes / shape->scalar_bytes);
}

// All divisions of an output channel.
static void run_divisions(struct imposed_call *call)
{
    const struct block_layout *layout = blocks_layout(call->plan);
    const size_t outputs = blocks_shape(call->plan)->axis[0].out, all = call->schedule.count;
    const int threads = call->plan->threads;
    for (call->first = 0; call->first < all; call->first += layout->divisions) {
        call->divisions = size_min(all - call->first, layout->divisions);
        if (!call->first || call->divisions > 1)
            thread_loop(threads, call->divisions, clear_division, call);
        thread_loop(threads, call->divisions * layout->blocks, add_interval, call);
        if (call->divisions > 1)
            thread_loop(threads, ceil_div(outputs, OUTPUTS_OF_TASK), add_rows, call);
    }
}

void imposed_run(const struct partita_plan *plan, const struct partita_filter *filter,
                 const struct operands *operands, char *workspace)
{
    const struct shape *shape = blocks_shape(plan);
    const struct axis *axis = &shape->axis[0];
    struct imposed_call call = {.plan = plan,
                                .filter = filter,
                                .schedule = imposed_schedule(plan),
                                .rows = workspace,
                                .spectra = workspace + rows_bytes(plan),
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
            run_divisions(&call);
        }
    }
}
