// SPDX-License-Identifier: MIT
// Parts of sizes that the caller imposes. All pairs that begin at one output are summed, in one
// transform or in time; the intervals of a division do not overlap, so they are added to the result
// in parallel, one division after the other.
#include <string.h>

#include "base/thread.h"
#include "blocks.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

enum { MOST_ROW = 64 }; // products summed in a row before they are rounded into a sum of sums

static const struct blocks *blocks_of(const struct partita_plan *plan)
{
    return plan->state;
}

// What one thread needs; in time there are samples alone.
struct work {
    char *samples, *narrow, *scratch; // of a part with its zeros, of an interval
    char *sum, *row, *spare;          // spectra; in time `sum` is an interval's samples
};

static struct work cut_work(const struct partita_plan *plan, struct arena *arena)
{
    const struct blocks *blocks = blocks_of(plan);
    const size_t bytes = blocks_shape(plan)->sample_bytes, part = blocks->layout.part,
                 signal = blocks->layout.signal_part;
    struct work work = {0};
    if (blocks->fft) {
        work.samples = arena_take(arena, blocks->layout.n * bytes);
        work.narrow = arena_take(arena, part * bytes);
        work.scratch = arena_take(arena, fft_scratch_bytes(blocks->fft));
        work.sum = arena_take(arena, fft_spectrum_bytes(blocks->fft));
        work.row = arena_take(arena, fft_spectrum_bytes(blocks->fft));
        work.spare = arena_take(arena, fft_spectrum_bytes(blocks->fft));
    } else {
        work.samples = arena_take(arena, (signal + 2 * (part - 1)) * bytes);
        work.sum = arena_take(arena, (part + signal - 1) * bytes);
    }
    return work;
}

static size_t work_bytes(const struct partita_plan *plan)
{
    struct arena arena = {0};
    cut_work(plan, &arena);
    return arena.used;
}

// A part of the taps as a filter holds it: a spectrum, or the causal taps.
static size_t part_bytes(const struct partita_plan *plan)
{
    const struct blocks *blocks = blocks_of(plan);
    return blocks->fft ? fft_spectrum_bytes(blocks->fft)
                       : mem_round(blocks->layout.part * blocks_shape(plan)->tap_bytes);
}

struct part_schedule blocks_divisions(const struct partita_plan *plan)
{
    const struct blocks_layout *layout = &blocks_of(plan)->layout;
    return part_schedule_of(blocks_shape(plan), layout->part, layout->signal_part);
}

void divisions_sizes(const struct partita_plan *plan, struct blocks *blocks)
{
    const struct part_schedule divisions = blocks_divisions(plan);
    const size_t spectra =
        size_mul(blocks_shape(plan)->group_in, part_schedule_signals(&divisions).count);
    blocks->layout.worker = work_bytes(plan);
    blocks->layout.shared = blocks->fft ? size_mul(spectra, fft_spectrum_bytes(blocks->fft)) : 0;
}

enum partita_status divisions_filter(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const struct blocks *blocks = blocks_of(plan);
    const size_t cells = shape->out_channels * shape->group_in, parts = blocks->layout.parts,
                 bytes = part_bytes(plan);
    struct arena arena = {.base = mem_reserve(&plan->allocator, work_bytes(plan))};
    filter->state = mem_reserve(&plan->allocator, size_mul(cells, size_mul(parts, bytes)));
    if (arena.base && filter->state) {
        char *base = arena.base;
        struct work work = cut_work(plan, &arena);
        for (size_t i = 0; i < cells * parts; i++) {
            const size_t from =
                shape_path(shape, i / parts / shape->group_in, i / parts % shape->group_in);
            const char *cell = (const char *)taps + from * shape->axis[0].kernel * shape->tap_bytes;
            const size_t first = i % parts * blocks->layout.part;
            char *to = (char *)filter->state + i * bytes;
            if (!blocks->fft) {
                causal_part(shape, to, cell, first, blocks->layout.part);
                continue;
            }
            blocks_load_taps(shape, work.samples, work.narrow, cell, first, blocks->layout.part,
                             blocks->layout.n);
            fft_forward(blocks->fft, to, work.samples, work.scratch);
        }
        arena.base = base;
    }
    const bool complete = arena.base && filter->state;
    mem_release(&plan->allocator, arena.base);
    return complete ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

struct call {
    const struct partita_filter *filter;
    const char *x; // of the group's first channel
    char *y;       // of the output channel
    size_t output, division;
    struct part_schedule divisions;
    struct segment_range signals;
    char *spectra, *worker; // [group_in][signals]; [threads] work
};

// samples = zeros, part `index` of a channel, zeros.
static void load_signal(const struct call *call, size_t channel, size_t index, char *samples,
                        size_t before, size_t length)
{
    const struct shape *shape = blocks_shape(call->filter->plan);
    const size_t size = shape->axis[0].size, bytes = shape->sample_bytes,
                 part = call->divisions.signal_part;
    memset(samples, 0, before * bytes);
    samples_window(samples + before * bytes, call->x + channel * size * bytes, size,
                   (ptrdiff_t)(index * part), 1, part, bytes);
    memset(samples + (before + part) * bytes, 0, (length - before - part) * bytes);
}

// One task: the spectrum of one part of one channel.
static void transform_signal(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct blocks *blocks = blocks_of(plan);
    struct arena arena = {.base = call->worker + (size_t)worker * work_bytes(plan)};
    struct work work = cut_work(plan, &arena);
    const size_t index = (size_t)call->signals.first + task % call->signals.count;
    load_signal(call, task / call->signals.count, index, work.samples, 0, blocks->layout.n);
    fft_forward(blocks->fft, call->spectra + task * fft_spectrum_bytes(blocks->fft), work.samples,
                work.scratch);
}

static const char *taps_at(const struct call *call, size_t channel, size_t part)
{
    const struct partita_plan *plan = call->filter->plan;
    const size_t cell = call->output * blocks_shape(plan)->group_in + channel;
    return (const char *)call->filter->state +
           (cell * blocks_of(plan)->layout.parts + part) * part_bytes(plan);
}

// sum = the samples of all pairs of an interval by one transform. It lies behind the samples in
// `work`.
static char *interval_by_transform(const struct call *call, const struct part_schedule_pairs *pairs,
                                   struct work *work)
{
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const struct blocks *blocks = blocks_of(plan);
    const size_t spectrum_blocks = fft_lines(blocks->fft), bytes = fft_spectrum_bytes(blocks->fft);
    memset(work->sum, 0, bytes);
    for (size_t c = 0; c < shape->group_in; c++)
        for (size_t i = 0; i < pairs->count; i++) {
            const size_t signal =
                pairs->signal - i * pairs->signal_step - (size_t)call->signals.first;
            const char *x = call->spectra + (c * call->signals.count + signal) * bytes;
            const bool fresh = i % MOST_ROW == 0;
            plan->kernels->cmac(fresh ? work->row : work->spare, x, spectrum_blocks,
                                taps_at(call, c, pairs->taps + i * pairs->taps_step),
                                spectrum_blocks, 1, spectrum_blocks);
            if (!fresh) plan->kernels->add(work->row, work->spare, bytes / shape->scalar_bytes);
            if ((i + 1) % MOST_ROW == 0 || i + 1 == pairs->count)
                plan->kernels->add(work->sum, work->row, bytes / shape->scalar_bytes);
        }
    fft_inverse(blocks->fft, work->samples, work->sum, work->scratch);
    const size_t reals = blocks->layout.n * shape->sample_bytes / shape->scalar_bytes;
    plan->kernels->scale(work->samples, work->samples, 1 / fft_gain(blocks->fft), reals);
    return work->samples;
}

static char *interval_in_time(const struct call *call, const struct part_schedule_pairs *pairs,
                              struct work *work)
{
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const size_t taps = call->divisions.taps_part, n = call->divisions.apart - 1, zeros = taps - 1;
    memset(work->sum, 0, n * shape->sample_bytes);
    for (size_t c = 0; c < shape->group_in; c++)
        for (size_t i = 0; i < pairs->count; i++) {
            const char *h = taps_at(call, c, pairs->taps + i * pairs->taps_step);
            const char *x = work->samples + zeros * shape->sample_bytes;
            load_signal(call, c, pairs->signal - i * pairs->signal_step, work->samples, zeros,
                        n + zeros);
            if (shape->complex_taps) plan->kernels->fir_complex(work->sum, x, h, n, taps);
            else if (shape->complex_signal) plan->kernels->fir(work->sum, x, h, 2 * n, taps, 2);
            else plan->kernels->fir(work->sum, x, h, n, taps, 1);
        }
    return work->sum;
}

// One task: one interval of the division at hand.
static void run_interval(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const struct part_schedule *divisions = &call->divisions;
    const size_t begin = part_schedule_begin(divisions, call->division, task),
                 bytes = shape->sample_bytes;
    const struct part_schedule_pairs pairs = part_schedule_pairs(divisions, begin);
    if (!pairs.count) return;
    struct arena arena = {.base = call->worker + (size_t)worker * work_bytes(plan)};
    struct work work = cut_work(plan, &arena);
    const char *samples = blocks_of(plan)->fft ? interval_by_transform(call, &pairs, &work)
                                               : interval_in_time(call, &pairs, &work);
    const ptrdiff_t from = (ptrdiff_t)begin, end = from + (ptrdiff_t)divisions->apart - 1;
    const ptrdiff_t first = from > divisions->first ? from : divisions->first;
    const ptrdiff_t behind = end < divisions->end ? end : divisions->end;
    plan->kernels->add(call->y + (size_t)(first - divisions->first) * bytes,
                       samples + (size_t)(first - from) * bytes,
                       (size_t)(behind - first) * bytes / shape->scalar_bytes);
}

static void run_channel(struct call *call)
{
    const struct partita_plan *plan = call->filter->plan;
    memset(call->y, 0, blocks_shape(plan)->axis[0].out * blocks_shape(plan)->sample_bytes);
    for (call->division = 0; call->division < call->divisions.count; call->division++)
        thread_loop(plan->threads, part_schedule_intervals(&call->divisions, call->division),
                    run_interval, call);
}

void divisions_forward(const struct partita_filter *filter, void *y, const void *x, void *workspace)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const struct axis *axis = &shape->axis[0];
    const struct blocks *blocks = blocks_of(plan);
    struct call call = {.filter = filter,
                        .divisions = blocks_divisions(plan),
                        .spectra = workspace,
                        .worker = (char *)workspace + blocks->layout.shared};
    call.signals = part_schedule_signals(&call.divisions);
    for (size_t at = 0; at < shape->batch * shape->groups; at++) {
        const size_t item = at / shape->groups, group = at % shape->groups;
        const size_t channel = item * shape->in_channels + group * shape->group_in;
        call.x = (const char *)x + channel * axis->size * shape->sample_bytes;
        if (blocks->fft)
            thread_loop(plan->threads, shape->group_in * call.signals.count, transform_signal,
                        &call);
        for (call.output = group * shape->group_out; call.output < (group + 1) * shape->group_out;
             call.output++) {
            call.y = (char *)y +
                     (item * shape->out_channels + call.output) * axis->out * shape->sample_bytes;
            run_channel(&call);
        }
    }
}
