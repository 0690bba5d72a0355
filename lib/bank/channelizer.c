// SPDX-License-Identifier: MIT
#include "channelizer.h"

#include <string.h>

#include "api/sized.h"
#include "base/sizes.h"
#include "base/thread.h"
#include "core/arguments.h"

static const size_t MAX_LENGTH = (size_t)1 << 27;

// The transform is at most about a quarter longer than it must be; without a block of the caller's
// the overlap is at most a quarter of it.
static void choose_sizes(struct partita_channelizer *made)
{
    enum { SHARE = 4, MIN_LENGTH = 4096 };
    const struct partita_channelizer_options *options = &made->options;
    const size_t reach = options->n_taps - 1, stride = options->stride;
    const size_t overlap = size_round_up(reach, stride);
    const size_t least =
        options->block ? options->block + overlap : size_max(SHARE * overlap, MIN_LENGTH);
    made->n = channelizer_length(least, stride);
    made->block = options->block ? options->block : made->n - overlap;
    made->overlap = made->n - made->block;
}

static enum partita_status create_transforms(struct partita_channelizer *channelizer)
{
    const struct partita_allocator *allocator = &channelizer->options.allocator;
    struct fft_request request = {.n = channelizer->n,
                                  .f64 = channelizer->f64,
                                  .complex = channelizer->is_complex,
                                  .isa = cpu_detect()};
    enum partita_status status = fft_create(&request, allocator, &channelizer->forward);
    request.f64 = request.complex = true;
    if (status == PARTITA_OK) status = fft_create(&request, allocator, &channelizer->exact);
    if (status == PARTITA_OK) status = bins_find(channelizer->forward, &channelizer->bins);
    if (status == PARTITA_OK) status = bins_find(channelizer->exact, &channelizer->exact_bins);
    if (status == PARTITA_ERR_UNSUPPORTED)
        log_line(&channelizer->options.log,
                 "stride = %zu: this build of the library, without FFTW, has transforms of lengths "
                 "without prime factors above 5",
                 channelizer->options.stride);
    return status;
}

static enum partita_status create_arrays(struct partita_channelizer *channelizer)
{
    const struct partita_allocator *allocator = &channelizer->options.allocator;
    const size_t channels = channelizer->options.channels;
    channelizer->slots = mem_allocate(allocator, channels * sizeof *channelizer->slots);
    channelizer->active = mem_allocate(allocator, channels * sizeof *channelizer->active);
    channelizer->window = mem_allocate(allocator, channelizer->n * channelizer->sample_bytes);
    channelizer->spectrum = mem_allocate(allocator, channelizer->forward->spectrum_bytes);
    channelizer->scratch = mem_allocate(allocator, channelizer->forward->scratch_bytes + 1);
    const bool complete = channelizer->slots && channelizer->active && channelizer->window &&
                          channelizer->spectrum && channelizer->scratch;
    return complete ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

enum partita_status
partita_channelizer_create_sized(const struct partita_channelizer_options *options,
                                 size_t options_bytes, struct partita_channelizer **ret_channelizer)
{
    const struct partita_log log = log_given(options);
    struct partita_channelizer made = {0};
    if (!arguments_given(log, options, ret_channelizer)) return PARTITA_ERR_ARG;
    if (!sized_read(&made.options, sizeof made.options, options, options_bytes, &log, "options"))
        return PARTITA_ERR_UNSUPPORTED;
    made.options.log = log;
    if (!channelizer_options_check(&made.options)) return PARTITA_ERR_ARG;
    const enum partita_type type = made.options.signal;
    made.f64 = type == PARTITA_F64 || type == PARTITA_CF64;
    made.is_complex = type == PARTITA_CF32 || type == PARTITA_CF64;
    made.sample_bytes = partita_type_size(type);
    made.kernels = select_kernels_of(cpu_detect(), made.f64);
    choose_sizes(&made);
    if (made.n > MAX_LENGTH)
        return log_error(&log, PARTITA_ERR_ARG,
                         "block = %zu, n_taps = %zu, stride = %zu: transforms of %zu samples; at "
                         "most %zu",
                         made.options.block, made.options.n_taps, made.options.stride, made.n,
                         MAX_LENGTH);
    struct partita_channelizer *channelizer =
        mem_allocate(&made.options.allocator, sizeof *channelizer);
    if (!channelizer) return PARTITA_ERR_NOMEM;
    *channelizer = made;
    enum partita_status status = create_transforms(channelizer);
    if (status == PARTITA_OK) status = create_arrays(channelizer);
    if (status == PARTITA_OK) *ret_channelizer = channelizer;
    else partita_channelizer_destroy(channelizer);
    return status;
}

void partita_channelizer_destroy(struct partita_channelizer *channelizer)
{
    if (!channelizer) return;
    const struct partita_allocator allocator = channelizer->options.allocator;
    if (channelizer->slots) slots_release(channelizer);
    inverses_release(channelizer);
    bins_release(channelizer->forward, &channelizer->bins);
    bins_release(channelizer->exact, &channelizer->exact_bins);
    fft_destroy(channelizer->forward);
    fft_destroy(channelizer->exact);
    void *const arrays[] = {channelizer->slots,    channelizer->active,  channelizer->window,
                            channelizer->spectrum, channelizer->scratch, channelizer};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) mem_release(&allocator, arrays[i]);
}

enum partita_status partita_channel_filter_create_sized(struct partita_channelizer *channelizer,
                                                        const struct partita_channel *channel,
                                                        size_t channel_bytes,
                                                        struct partita_channel_filter **ret_filter)
{
    const struct partita_log log = channelizer ? channelizer->options.log : log_default();
    struct partita_channel known;
    if (!arguments_given(log, channelizer, channel, ret_filter)) return PARTITA_ERR_ARG;
    if (!sized_read(&known, sizeof known, channel, channel_bytes, &log, "channel"))
        return PARTITA_ERR_UNSUPPORTED;
    if (!channel_check(channelizer, &known)) return PARTITA_ERR_ARG;
    const enum partita_status status = response_create(channelizer, &known, ret_filter);
    if (status == PARTITA_ERR_UNSUPPORTED)
        log_line(&log,
                 "channel.stride = %zu: this build of the library, without FFTW, has transforms of "
                 "lengths without prime factors above 5",
                 known.stride);
    return status;
}

void partita_channel_filter_destroy(struct partita_channel_filter *filter)
{
    if (filter) mem_release(&filter->owner->options.allocator, filter);
}

struct block_job {
    const struct partita_channelizer *channelizer;
    uint64_t start;
};

static void run_channel(void *context, size_t task, int worker)
{
    const struct block_job *job = context;
    const struct partita_channelizer *channelizer = job->channelizer;
    const struct channel_slot *slot = &channelizer->slots[channelizer->active[task]];
    channel_run(channelizer, slot->now, job->start, worker);
    if (!slot->before) return;
    channel_run(channelizer, slot->before, job->start, worker);
    channel_fade(channelizer, slot->before, slot->now);
}

static void transform_steps(const struct partita_channelizer *channelizer, size_t first, size_t end)
{
    fft_forward_steps(channelizer->forward, channelizer->spectrum, channelizer->window,
                      channelizer->scratch, (struct fft_steps){first, end});
}

enum { SAMPLE_PARTS = 16 };

static void transform_samples(void *context, size_t task, int worker)
{
    const struct partita_channelizer *channelizer = context;
    const size_t steps = channelizer->forward->sample_steps;
    (void)worker;
    transform_steps(channelizer, steps * task / SAMPLE_PARTS, steps * (task + 1) / SAMPLE_PARTS);
}

static void transform_part(void *context, size_t task, int worker)
{
    const struct partita_channelizer *channelizer = context;
    const struct fft *fft = channelizer->forward;
    const size_t steps = (fft->steps - fft->sample_steps) / fft->subtransforms;
    const size_t first = fft->sample_steps + task * steps;
    (void)worker;
    transform_steps(channelizer, first, first + steps);
}

// Only transforms of several subtransforms have parts that threads can share.
static void transform_window(struct partita_channelizer *channelizer)
{
    const int threads = channelizer->options.threads;
    const struct fft *fft = channelizer->forward;
    if (threads == 1 || fft->subtransforms == 1) {
        transform_steps(channelizer, 0, fft->steps);
        return;
    }
    thread_loop(threads, SAMPLE_PARTS, transform_samples, channelizer);
    thread_loop(threads, fft->subtransforms, transform_part, channelizer);
}

static void run_block(struct partita_channelizer *channelizer)
{
    struct block_job job = {channelizer, channelizer->position - channelizer->block};
    const size_t n = slots_take(channelizer);
    transform_window(channelizer);
    thread_loop(channelizer->options.threads, n, run_channel, &job);
    memmove(channelizer->window,
            channelizer->window + channelizer->block * channelizer->sample_bytes,
            channelizer->overlap * channelizer->sample_bytes);
    channelizer->filled = 0;
}

size_t partita_channelizer_process(struct partita_channelizer *channelizer, const void *x,
                                   size_t n_frames)
{
    const size_t bytes = channelizer->sample_bytes;
    const size_t n = size_min(n_frames, channelizer->block - channelizer->filled);
    char *to = channelizer->window + (channelizer->overlap + channelizer->filled) * bytes;
    if (x) memcpy(to, x, n * bytes);
    else memset(to, 0, n * bytes);
    channelizer->filled += n;
    channelizer->position += n;
    channelizer->complete = channelizer->filled == channelizer->block;
    if (channelizer->complete) run_block(channelizer);
    return n;
}

const void *partita_channelizer_output(const struct partita_channelizer *channelizer,
                                       size_t channel, size_t *ret_n)
{
    const bool exists = channel < channelizer->options.channels && channelizer->complete;
    const struct channel *now = exists ? channelizer->slots[channel].now : NULL;
    *ret_n = now ? now->count : 0;
    return now ? now->output : NULL;
}

size_t partita_channelizer_block(const struct partita_channelizer *channelizer)
{
    return channelizer->block;
}

size_t partita_channelizer_overlap(const struct partita_channelizer *channelizer)
{
    return channelizer->overlap;
}

uint64_t partita_channelizer_position(const struct partita_channelizer *channelizer)
{
    return channelizer->position;
}

enum partita_status partita_channelizer_reset(struct partita_channelizer *channelizer,
                                              uint64_t position)
{
    if (!channelizer || position % channelizer->options.stride) return PARTITA_ERR_ARG;
    memset(channelizer->window, 0, channelizer->overlap * channelizer->sample_bytes);
    channelizer->filled = 0;
    channelizer->position = position;
    channelizer->complete = false;
    return PARTITA_OK;
}
