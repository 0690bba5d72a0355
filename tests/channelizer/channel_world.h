// SPDX-License-Identifier: MIT
// A channelizer with random rates, taps and signal, and its outputs as direct sums in long double.
#ifndef PARTITA_CHANNEL_WORLD_H
#define PARTITA_CHANNEL_WORLD_H

#include "support/test.h"

#include <math.h>
#include <stdio.h>

enum { MAX_INPUTS = 20000 };

// A channelizer with one channel, and the whole input.
struct world {
    struct partita_channelizer_options options;
    struct partita_channel channel;
    double centre;
    void *x, *taps;
    size_t n; // inputs, whole blocks
    struct partita_channelizer *channelizer;
    struct partita_channel_filter *filter;
    size_t slot;
    struct log_lines lines;
};

static inline void open_world(struct world *w)
{
    w->options.log = log_into(&w->lines);
    if (partita_channelizer_create(&w->options, &w->channelizer) ||
        partita_channel_filter_create(w->channelizer, &w->channel, &w->filter) ||
        partita_channelizer_open(w->channelizer, w->filter, w->centre, &w->slot))
        fail_msg("%s", w->lines.text);
}

static inline void close_world(struct world *w)
{
    partita_channel_filter_destroy(w->filter);
    partita_channelizer_destroy(w->channelizer);
}

// Strides, rates of upsampling, and their common multiple. Only FFTW transforms multiples of 7.
static const struct {
    size_t stride, up, all;
} rates[] = {
    {12, 1, 12}, {8, 1, 8}, {1, 1, 1}, {5, 1, 45}, {9, 4, 18}, {3, 5, 3},
#ifdef HAVE_FFTW
    {7, 1, 7},
#endif
};

static inline struct world random_world(struct random *random, enum partita_type signal)
{
    const size_t rate = random_below(random, sizeof rates / sizeof *rates);
    struct world w = {
        .options = {.signal = signal,
                    .channels = 40,
                    .n_taps = 1 + random_below(random, 60),
                    .stride = rates[rate].all,
                    .sample_rate = random_below(random, 2) ? 2.4e6 : 0,
                    .threads = 1 + (int)random_below(random, 3)},
        .channel = {.up = rates[rate].up, .stride = rates[rate].stride},
    };
    if (random_below(random, 3))
        w.options.block = rates[rate].all * (1 + random_below(random, 200 / rates[rate].all + 1));
    const double unit = w.options.sample_rate > 0 ? w.options.sample_rate : 1;
    w.centre = unit * ((double)random_below(random, 20001) / 20000 - 0.5);
    if (random_below(random, 5) == 0) w.centre = 0;
    w.channel.n_taps = 1 + random_below(random, (w.options.n_taps - 1) * w.channel.up + 1);
    w.channel.taps_type = (enum partita_type)(PARTITA_F32 + random_below(random, 4));
    w.taps = malloc(w.channel.n_taps * partita_type_size(w.channel.taps_type));
    random_samples(random, w.channel.taps_type, w.taps, w.channel.n_taps);
    w.channel.taps = w.taps;
    w.x = malloc(MAX_INPUTS * partita_type_size(signal));
    random_samples(random, signal, w.x, MAX_INPUTS);
    return w;
}

static inline void drop_world(struct world *w)
{
    close_world(w);
    free(w->x);
    free(w->taps);
}

// e^(-2 pi i j centre / rate) with the fraction in long double; exact where both are integers.
static inline double complex mixer(const struct world *w, uint64_t j)
{
    const double rate = w->options.sample_rate > 0 ? w->options.sample_rate : 1;
    long double cycles;
    if (rate == floor(rate) && w->centre == floor(w->centre)) {
        const __int128 product = (__int128)(int64_t)w->centre * (__int128)j;
        cycles = (long double)(int64_t)(product % (int64_t)rate) / (long double)rate;
    } else {
        cycles =
            fmodl((long double)w->centre * (long double)j, (long double)rate) / (long double)rate;
    }
    const long double angle = -2 * 3.14159265358979323846264338L * cycles;
    return (double)cosl(angle) + I * (double)sinl(angle);
}

// Output m as a direct sum over the samples first .. end-1, of which x holds those from first on.
static inline double complex direct(const struct world *w, uint64_t m, uint64_t first, uint64_t end)
{
    const size_t up = or_one(w->channel.up), stride = or_one(w->channel.stride);
    long double complex sum = 0;
    for (uint64_t j = first; j < end; j++) {
        const __int128 tap = (__int128)m * stride - (__int128)j * up;
        if (tap < 0 || tap >= (__int128)w->channel.n_taps) continue;
        sum += (long double complex)reference_sample(w->channel.taps_type, w->taps, (size_t)tap) *
               reference_sample(w->options.signal, w->x, (size_t)(j - first)) * mixer(w, j);
    }
    return (double complex)sum;
}

static inline enum partita_type output_type(const struct world *w)
{
    return type_is_f64(w->options.signal) ? PARTITA_CF64 : PARTITA_CF32;
}

// Processes all inputs in calls of random lengths, 0 for whole blocks, and appends the outputs of
// one channel. Returns their number.
static inline size_t process(struct world *w, size_t slot, struct random *random, char *y, size_t n)
{
    const size_t bytes = partita_type_size(w->options.signal),
                 sample = partita_type_size(output_type(w));
    size_t outputs = 0;
    for (size_t at = 0, used; at < n; at += used) {
        size_t count, call = n - at;
        if (random && random_below(random, 2)) call = random_below(random, call) + 1;
        if (random && random_below(random, 2)) call = call < 7 ? call : 7;
        used = partita_channelizer_process(w->channelizer, (char *)w->x + at * bytes, call);
        assert_true(used > 0 && used <= call);
        const void *output = partita_channelizer_output(w->channelizer, slot, &count);
        if (output) memcpy(y + outputs * sample, output, count * sample);
        outputs += count;
    }
    return outputs;
}

#endif
