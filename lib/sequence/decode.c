// SPDX-License-Identifier: MIT
// Calls on a state: frames of groups of channels in and out, and the work that is due. Arguments
// are checked before anything changes.
#include <string.h>

#include "base/thread.h"
#include "core/arguments.h"
#include "decode.h"
#include "geometry/samples.h"

struct group {
    const struct partita_decode *d;
    size_t number, phase;
    size_t lanes;       // that have a channel
    float *ring, *sums; // of frames; parts of a quantum's outputs from earlier quanta
};

static struct group group_in_slot(const struct partita_decode *d, size_t slot, size_t number)
{
    float *ring = d->slots + (slot * d->groups + number) * d->group_floats;
    assert(number < d->groups);
    return (struct group){
        .d = d,
        .number = number,
        .phase = number * DECODE_QUANTUM / d->groups,
        .lanes = size_min(d->options.channels - number * DECODE_LANES, DECODE_LANES),
        .ring = ring,
        .sums = ring + 2 * d->recent * DECODE_LANES,
    };
}

static float *channel_of(const struct group *group, size_t lane)
{
    return group->ring + group->d->channel_at + lane * group->d->channel_floats;
}

// y[i] += direct sums of taps first .. end-1 for outputs at `at` .. at+n-1.
static void add_direct(const struct group *group, float *y, size_t first, size_t end, size_t at,
                       size_t n)
{
    const struct partita_decode *d = group->d;
    const size_t row = (group->number + 1) * d->n_direct - end;
    const float *oldest = group->ring + ((at + 1 - end) & (d->recent - 1)) * DECODE_LANES;
    d->kernels->lanes_conv(y, oldest, d->direct + row * DECODE_LANES,
                           d->spans + first / MAX_SPAN_TAPS, ceil_div(end - first, MAX_SPAN_TAPS),
                           n);
}

// Copies the quantum that ends at `end` to the rings of the channels.
static void store_past(const struct group *group, size_t end)
{
    const struct partita_decode *d = group->d;
    const size_t first = end - DECODE_QUANTUM, at = first & (d->past - 1);
    const float *from = group->ring + (first & (d->recent - 1)) * DECODE_LANES;
    for (size_t copy = 0; copy < (at < d->mirror ? 2 : 1); copy++)
        d->kernels->transpose(channel_of(group, 0) + d->past_at + at + copy * d->past,
                              d->channel_floats, from, DECODE_LANES, DECODE_QUANTUM, group->lanes);
}

// The parts of the quantum from `first` on that earlier ones give. A segment gives nothing to its
// first two blocks.
static void gather_sums(const struct group *group, size_t first)
{
    const struct partita_decode *d = group->d;
    float tile[DECODE_TILE] __attribute__((aligned(MEM_ALIGN))) = {0};
    memcpy(group->sums, tile, sizeof tile);
    if (d->n_direct > DECODE_QUANTUM)
        add_direct(group, group->sums, DECODE_QUANTUM, d->n_direct, first, DECODE_QUANTUM);
    for (size_t i = 0; i < d->n_segments && first >> d->segments[i].shift >= 2; i++) {
        const struct decode_segment *segment = &d->segments[i];
        const size_t slot = (first >> segment->shift) % segment->outputs;
        const size_t at = segment->outputs_at + slot * segment->block + first % segment->block;
        d->kernels->transpose(tile, DECODE_LANES, channel_of(group, 0) + at, d->channel_floats,
                              group->lanes, DECODE_QUANTUM);
        d->kernels->add(group->sums, tile, DECODE_TILE);
    }
}

// Parts of the products of a channel with the spectrum of the blocks source-1 and source.
static void multiply(const struct group *group, const struct decode_segment *segment, size_t lane,
                     size_t source, struct fft_steps parts)
{
    enum { BYTES_AHEAD = 4096 };
    const size_t channel = group->number * DECODE_LANES + lane, lines = segment->fft->lines;
    const struct cmac_path path = {
        .x = channel_of(group, lane) + segment->spectra_at,
        .h = group->d->filters + channel * group->d->filter_floats + segment->filter_at,
        .count = size_min(segment->partitions, source + 1),
        .x_pitch = segment->spectra,
        .h_pitch = segment->partitions,
    };
    const struct cmac_terms terms = {
        .slots = segment->spectra,
        .newest = source % segment->spectra,
        .multiple = 1,
        .sums = 1,
        .overwrite = {true},
        .ahead = ceil_div(BYTES_AHEAD, segment->partitions * SPECTRUM_LINE_BYTES),
    };
    group->d->kernels->cmac_partitions((void *[]){group->ring + segment->work_at}, &terms, &path, 1,
                                       parts.first * lines / segment->products,
                                       parts.end * lines / segment->products);
}

// Some tasks of a channel's block: steps of the transform of the blocks source-1 and source,
// products, steps of the inverse transform to the outputs of the block source+2.
static void run_tasks(const struct group *group, const struct decode_segment *segment, size_t lane,
                      size_t source, struct fft_steps tasks)
{
    const struct partita_decode *d = group->d;
    const struct fft *fft = segment->fft;
    const size_t block = segment->block;
    const struct fft_steps forward = fft_steps_within(tasks, 0, fft->steps);
    const struct fft_steps middle = fft_steps_within(tasks, fft->steps, segment->products);
    const struct fft_steps inverse =
        fft_steps_within(tasks, fft->steps + segment->products, fft->steps);
    float *channel = channel_of(group, lane), *work = group->ring + segment->work_at;
    float *to = channel + segment->spectra_at + source % segment->spectra * DECODE_LINE;
    float *samples = work + fft->lines * DECODE_LINE, *scratch = samples + fft->n;
    const float *past = channel + d->past_at + ((source - 1) * block & (d->past - 1));
    const struct fft_target target = {to, work, segment->spectra * SPECTRUM_LINE_BYTES};
    assert(tasks.first < tasks.end && tasks.end <= segment->tasks);
    if (forward.first < forward.end) fft_forward_apart(fft, &target, past, scratch, forward);
    if (middle.first < middle.end) multiply(group, segment, lane, source, middle);
    if (inverse.first < inverse.end)
        fft_inverse_steps(fft, samples, work, scratch, inverse, FFT_UPPER);
    if (tasks.end == segment->tasks)
        memcpy(channel + segment->outputs_at + (source + 2) % segment->outputs * block,
               samples + block, block * sizeof *samples);
}

// Runs the group's tasks of a segment that are due between two times of one block. The tasks of all
// channels, lane by lane and group by group, are spread evenly over the block; groups are rotated
// against their phases. `again`: of the channel that is computed in part at the end, all tasks
// until then, and no others.
static void run_segment(const struct group *group, const struct decode_segment *segment,
                        size_t first, size_t end, bool again)
{
    const size_t channels = group->d->options.channels, whole = channels / DECODE_LANES;
    const size_t block = first >> segment->shift, start = block << segment->shift;
    const size_t rate = channels * segment->tasks;
    const size_t done = ((first - start) * rate) >> segment->shift;
    const size_t due = ((end - start) * rate) >> segment->shift;
    size_t rank = group->number;
    if (rank < whole) rank = (rank + ((group->phase * channels) >> segment->shift)) % whole;
    for (size_t lane = 0; block && lane < group->lanes; lane++) {
        const size_t order = lane * whole + size_min(lane, channels % DECODE_LANES) + rank;
        const size_t at = order * segment->tasks, after = at + segment->tasks;
        if (at >= due || (again ? after <= due : after <= done || done == due)) continue;
        const size_t from = again ? 0 : size_max(at, done) - at;
        run_tasks(group, segment, lane, block - 1,
                  (struct fft_steps){from, size_min(after, due) - at});
    }
}

// A call whose arguments were checked: appends frames to some sequences.
struct decode_call {
    struct partita_decode *decode;
    const size_t *slots;
    size_t n_slots, frames;
    char *y;
    const char *x;
};

// Frames first .. first+n-1 of one quantum; `at`: bytes before the samples of the call.
static void advance_group(const struct group *group, const struct decode_call *call, size_t at,
                          size_t first, size_t n)
{
    const struct partita_decode *d = group->d;
    const size_t bytes = n * DECODE_LANES * sizeof(float);
    float sum[DECODE_TILE] __attribute__((aligned(MEM_ALIGN)));
    float *ring = group->ring + (first & (d->recent - 1)) * DECODE_LANES;
    struct sample_rows rows = {(char *)ring, n, DECODE_LANES, call->frames, group->lanes};
    samples_convert(d->kernels, d->options.signal, &rows, call->x + at, false);
    memcpy(ring + d->recent * DECODE_LANES, ring, bytes);
    memcpy(sum, group->sums + first % DECODE_QUANTUM * DECODE_LANES, bytes);
    add_direct(group, sum, 0, size_min(d->n_direct, DECODE_QUANTUM), first, n);
    rows.rows = (char *)sum;
    samples_convert(d->kernels, d->options.signal, &rows, call->y + at, true);
    for (size_t i = 0; i < d->n_segments; i++)
        run_segment(group, &d->segments[i], first, first + n, false);
    if ((first + n) % DECODE_QUANTUM) return;
    if (d->n_segments) store_past(group, first + n);
    gather_sums(group, first + n);
}

static void run_group(void *context, size_t number, int worker)
{
    const struct decode_call *call = context;
    const struct partita_decode *d = call->decode;
    const size_t bytes = partita_type_size(d->options.signal);
    (void)worker;
    for (size_t i = 0; i < call->n_slots; i++) {
        const struct group group = group_in_slot(d, call->slots[i], number);
        const size_t channel = i * d->options.channels + number * DECODE_LANES;
        size_t at = d->sequences[call->slots[i]].position + group.phase;
        for (size_t done = 0, n; done < call->frames; done += n, at += n) {
            n = size_min(call->frames - done, DECODE_QUANTUM - at % DECODE_QUANTUM);
            advance_group(&group, call, (channel * call->frames + done) * bytes, at, n);
        }
    }
}

// Moves a sequence back; clear: first its slot becomes a sequence of no frames. The rings
// still have all samples that an earlier position reads.
static void move_back(const struct partita_decode *d, size_t slot, size_t position, bool clear)
{
    for (size_t number = 0; number < d->groups; number++) {
        const struct group group = group_in_slot(d, slot, number);
        const size_t at = position + group.phase;
        if (clear) memset(group.ring, 0, 2 * d->recent * DECODE_LANES * sizeof *group.ring);
        for (size_t lane = 0; clear && lane < group.lanes; lane++) // before the first block
            memset(channel_of(&group, lane) + d->past_at + d->past - d->mirror, 0,
                   d->mirror * sizeof(float));
        gather_sums(&group, at - at % DECODE_QUANTUM);
        for (size_t i = 0; i < d->n_segments; i++)
            run_segment(&group, &d->segments[i], at, at, true);
    }
    d->sequences[slot].position = position;
}

static void run_call(const struct decode_call *call)
{
    enum { SMALL = 512 }; // samples that take about as long as to wake a thread
    const struct partita_decode *d = call->decode;
    const size_t samples = size_mul(call->n_slots * d->options.channels, call->frames);
    thread_loop(samples < SMALL ? 1 : d->threads, d->groups, run_group, (void *)call);
    for (size_t i = 0; i < call->n_slots; i++) {
        struct decode_sequence *sequence = &d->sequences[call->slots[i]];
        sequence->position += call->frames;
        sequence->longest = size_max(sequence->longest, sequence->position);
    }
}

static struct partita_log log_of_decode(const struct partita_decode *decode)
{
    return decode ? decode->options.log : log_default();
}

static bool slot_is_open(const struct partita_decode *decode, const char *function, size_t slot)
{
    if (!arguments_check_null(log_of_decode(decode), function, "decode",
                              (const void *const[]){decode}, 1))
        return false;
    if (slot < decode->options.sequences && decode->sequences[slot].open) return true;
    return log_line(&decode->options.log, "%s: slot %zu is not open (%zu slots)", function, slot,
                    decode->options.sequences);
}

// Opens a slot, for a copy of a sequence unless that is NULL.
static enum partita_status open_sequence(struct partita_decode *decode, const char *function,
                                         const size_t *copied, size_t *ret_slot)
{
    if (!arguments_check_null(log_of_decode(decode), function, "decode, ret_slot",
                              (const void *const[]){decode, ret_slot}, 2) ||
        (copied && !slot_is_open(decode, function, *copied)))
        return PARTITA_ERR_ARG;
    size_t slot = 0, floats = decode->groups * decode->group_floats;
    while (slot < decode->options.sequences && decode->sequences[slot].open) slot++;
    if (slot == decode->options.sequences)
        return log_error(&decode->options.log, PARTITA_ERR_STATE,
                         "%s: all %zu slots are open; drop a sequence first", function, slot);
    decode->sequences[slot] =
        copied ? decode->sequences[*copied] : (struct decode_sequence){.open = true};
    if (copied)
        memcpy(decode->slots + slot * floats, decode->slots + *copied * floats,
               floats * sizeof(float));
    else move_back(decode, slot, 0, true);
    *ret_slot = slot;
    return PARTITA_OK;
}

enum partita_status partita_decode_join(struct partita_decode *decode, size_t *ret_slot)
{
    return open_sequence(decode, __func__, NULL, ret_slot);
}

enum partita_status partita_decode_clone(struct partita_decode *decode, size_t slot,
                                         size_t *ret_slot)
{
    return open_sequence(decode, __func__, &slot, ret_slot);
}

enum partita_status partita_decode_drop(struct partita_decode *decode, size_t slot)
{
    if (!slot_is_open(decode, __func__, slot)) return PARTITA_ERR_ARG;
    decode->sequences[slot].open = false;
    return PARTITA_OK;
}

enum partita_status partita_decode_rewind(struct partita_decode *decode, size_t slot, size_t n)
{
    if (!slot_is_open(decode, __func__, slot)) return PARTITA_ERR_ARG;
    const struct decode_sequence *sequence = &decode->sequences[slot];
    const size_t first = sequence->longest - size_min(sequence->longest, decode->options.rewind);
    const size_t kept = sequence->position - first;
    if (n > kept)
        return log_error(&decode->options.log, PARTITA_ERR_ARG,
                         "%s: n = %zu: at most %zu frames of slot %zu are kept (rewind = %zu)",
                         __func__, n, kept, slot, decode->options.rewind);
    move_back(decode, slot, sequence->position - n, false);
    return PARTITA_OK;
}

size_t partita_decode_position(const struct partita_decode *decode, size_t slot)
{
    const bool known = decode && slot < decode->options.sequences && decode->sequences[slot].open;
    return known ? decode->sequences[slot].position : 0;
}

// Whether a slot is open, was not listed before, and has room for the frames.
static bool entry_fits(const struct decode_call *call, const char *function, size_t i)
{
    const struct partita_decode *decode = call->decode;
    const size_t slot = call->slots[i], max = decode->options.max_frames;
    if (!slot_is_open(decode, function, slot)) return false;
    for (size_t k = 0; k < i; k++)
        if (call->slots[k] == slot)
            return log_line(&decode->options.log, "%s: slot %zu is listed twice", function, slot);
    const size_t position = decode->sequences[slot].position;
    if (call->frames <= (max ? max : PTRDIFF_MAX) - position) return true;
    return log_line(&decode->options.log, "%s: %zu frames after %zu of slot %zu: max_frames = %zu",
                    function, call->frames, position, slot, max);
}

static enum partita_status check_and_run(const struct decode_call *call, const char *function,
                                         size_t least, size_t largest)
{
    const struct partita_log log = log_of_decode(call->decode);
    const void *const pointers[] = {call->decode, call->slots, call->y, call->x};
    if (!arguments_check_null(log, function, "decode, slots, y, x", pointers, 4) ||
        !causal_in_range(&log, "decode: frames", call->frames, least, largest))
        return PARTITA_ERR_ARG;
    for (size_t i = 0; i < call->n_slots; i++)
        if (!entry_fits(call, function, i)) return PARTITA_ERR_ARG;
    const struct partita_decode_options *options = &call->decode->options;
    const size_t size = partita_type_size(options->signal), count = call->n_slots * call->frames;
    const size_t bytes = size_mul(size_mul(options->channels, count), size);
    const struct call_array arrays[] = {
        {"y", call->y, bytes, size, true}, {"x", call->x, bytes, size, false}, {.name = NULL}};
    if (!arrays_check(log, function, arrays)) return PARTITA_ERR_ARG;
    run_call(call);
    return PARTITA_OK;
}

enum partita_status partita_decode_prefill(struct partita_decode *decode, size_t slot, void *y,
                                           const void *x, size_t n)
{
    return check_and_run(&(struct decode_call){decode, &slot, 1, n, y, x}, __func__, 0,
                         PTRDIFF_MAX);
}

enum partita_status partita_decode_step(struct partita_decode *decode, const size_t *slots,
                                        size_t n_slots, size_t frames, void *y, const void *x)
{
    return check_and_run(&(struct decode_call){decode, slots, n_slots, frames, y, x}, __func__, 1,
                         PARTITA_DECODE_FRAMES);
}
