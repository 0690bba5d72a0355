// SPDX-License-Identifier: MIT
// Checks of the options of channelizers and channels.
#include "base/sizes.h"
#include "base/thread.h"
#include "channelizer.h"
#include "core/arguments.h"

static const size_t MAX_SIZE = (size_t)1 << 26; // of a block, of taps and of strides

static bool channelizer_size_check(const struct partita_log *log, const char *field, size_t value,
                                   size_t min, size_t max)
{
    return (value >= min && value <= max) ||
           log_line(log, "%s = %zu: from %zu to %zu", field, value, min, max);
}

static bool is_f32_or_f64(enum partita_type type)
{
    return type >= PARTITA_F32 && type <= PARTITA_CF64;
}

static size_t without_small_factors(size_t n)
{
    while (n % 2 == 0) n /= 2;
    while (n % 3 == 0) n /= 3;
    while (n % 5 == 0) n /= 5;
    return n;
}

size_t channelizer_length(size_t least, size_t stride)
{
    enum { UNIT = 128 }; // of the native transform
    const size_t unit = UNIT / size_gcd(stride, UNIT) * stride;
    size_t count = ceil_div(least, unit);
    while (without_small_factors(count) > 1) count++;
    return unit * count;
}

bool channelizer_options_check(struct partita_channelizer_options *options)
{
    const struct partita_log *log = &options->log;
    if (!options->signal) options->signal = PARTITA_F32;
    if (!options->stride) options->stride = 1;
    if (options->sample_rate == 0) options->sample_rate = 1;
    if (!options->threads) options->threads = 1;
    if (!is_f32_or_f64(options->signal))
        return log_line(log, "signal = %d: f32, f64, cf32 or cf64", (int)options->signal);
    if (!channelizer_size_check(log, "channels", options->channels, 1, (size_t)1 << 20) ||
        !channelizer_size_check(log, "n_taps", options->n_taps, 1, MAX_SIZE / 4) ||
        !channelizer_size_check(log, "stride", options->stride, 1, MAX_SIZE / 4) ||
        !channelizer_size_check(log, "block", options->block, 0, MAX_SIZE / 4))
        return false;
    if (options->block % options->stride)
        return log_line(log, "block = %zu: a multiple of stride = %zu, such as %zu", options->block,
                        options->stride, size_round_up(options->block, options->stride));
    if (!(options->sample_rate > 0) || options->sample_rate > 1e15)
        return log_line(log, "sample_rate = %g: samples a second, at most 1e15, or 0",
                        options->sample_rate);
    if (options->threads < 0)
        return log_line(log, "threads = %d: must not be negative", options->threads);
    if (!options->allocator.allocate != !options->allocator.release)
        return log_line(log, "allocator: set both functions or none");
    options->threads = thread_bound(options->threads);
    return true;
}

bool channel_check(const struct partita_channelizer *owner, struct partita_channel *channel)
{
    const struct partita_log *log = &owner->options.log;
    if (!channel->taps_type) channel->taps_type = owner->f64 ? PARTITA_F64 : PARTITA_F32;
    if (!channel->up) channel->up = 1;
    if (!channel->stride) channel->stride = 1;
    if (!is_f32_or_f64(channel->taps_type))
        return log_line(log, "channel.taps_type = %d: f32, f64, cf32 or cf64",
                        (int)channel->taps_type);
    if (!channel->taps) return log_line(log, "channel.taps is NULL");
    if ((uintptr_t)channel->taps % type_alignment(channel->taps_type))
        return log_line(log, "channel.taps: must be aligned to its type");
    const size_t capacity = size_mul(owner->overlap, channel->up);
    if (!channelizer_size_check(log, "channel.up", channel->up, 1, 1 << 16) ||
        !channelizer_size_check(log, "channel.stride", channel->stride, 1, MAX_SIZE) ||
        !channelizer_size_check(log, "channel.n_taps", channel->n_taps, 1, MAX_SIZE))
        return false;
    if (channel->n_taps - 1 > capacity)
        return log_line(log,
                        "channel.n_taps = %zu: at most %zu with options.n_taps = %zu, which must "
                        "be at least %zu",
                        channel->n_taps, capacity + 1, owner->options.n_taps,
                        ceil_div(channel->n_taps - 1, channel->up) + 1);
    if (owner->options.stride * channel->up % channel->stride)
        return log_line(log,
                        "channel.stride = %zu: must divide up * options.stride = %zu * %zu; make "
                        "options.stride a multiple of %zu",
                        channel->stride, channel->up, owner->options.stride,
                        channel->stride / size_gcd(channel->stride, channel->up));
    const double widest = owner->options.sample_rate * (double)channel->up;
    if (!(channel->bandwidth >= 0) || channel->bandwidth > widest)
        return log_line(log, "channel.bandwidth = %g: from 0 to up * sample_rate = %g",
                        channel->bandwidth, widest);
    return true;
}
