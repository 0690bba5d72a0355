// SPDX-License-Identifier: MIT
// One channel: its tables, and the outputs of a block.
#include <math.h>
#include <string.h>

#include "base/scalar.h"
#include "base/sizes.h"
#include "channelizer.h"

enum { MANTISSA = 53, MIN_EXPONENT = -40 };

// Steps after which a rotation is computed anew: in f64 the error of one is visible.
enum { RENEWED_F32 = 16, RENEWED_F64 = 1 };

// value * times / (unit * divided) modulo 1, for |value| <= unit / 2, rounded down to 2^-128. The
// numbers are exact but for a value below 2^-40 units, of which 2^-93 units may be lost.
static revolutions revolutions_of(double value, double unit, size_t times, size_t divided)
{
    int exponent[2];
    revolutions rest = (revolutions)ldexp(frexp(fabs(value), &exponent[0]), MANTISSA) * times,
                ret = 0;
    revolutions whole = (revolutions)ldexp(frexp(unit, &exponent[1]), MANTISSA) * divided;
    int shift = exponent[0] - exponent[1];
    if (value == 0) return 0;
    for (; shift < MIN_EXPONENT; shift++) rest >>= 1;
    if (shift < 0) whole <<= -shift;
    else rest <<= shift;
    rest %= whole;
    for (int bit = 0; bit < 128; bit++) {
        rest *= 2;
        ret *= 2;
        if (rest < whole) continue;
        rest -= whole;
        ret++;
    }
    return value < 0 ? -ret : ret;
}

// The band of a channel: bins first .. first+count-1. Their frequencies relative to the centre are
// the integers from `from` on plus `shift`.
struct band {
    ptrdiff_t first, from;
    size_t count;
    double shift;
};

static struct band band_of(const struct partita_channel_filter *filter, revolutions centre,
                           bool negative)
{
    const struct partita_channelizer *owner = filter->owner;
    const size_t n = owner->n, all = n * filter->up;
    const uint64_t high = (uint64_t)(centre >> 64), low = (uint64_t)centre;
    const revolutions bins = (revolutions)high * n + (((revolutions)low * n) >> 64); // times 2^64
    ptrdiff_t nearest = (ptrdiff_t)(bins >> 64) - (negative ? (ptrdiff_t)n : 0);
    double shift = (owner->bins.half ? 0.5 : 0) - ldexp((double)(uint64_t)bins, -64);
    if (shift < -0.5) {
        shift += 1;
        nearest++;
    }
    const ptrdiff_t from = (ptrdiff_t)ceil(-filter->half_band - shift);
    const ptrdiff_t end = (ptrdiff_t)floor(filter->half_band - shift) + 1;
    const size_t count = size_min((size_t)(end - from), all);
    return (struct band){from + nearest, from, count, shift};
}

// Bin j of the band goes to the bin of the inverse transform whose frequency is j modulo its
// length.
static void fill_indices(const struct partita_channelizer *owner, struct channel *channel,
                         const struct band *band, double (*values)[2])
{
    const struct fft *inverse = channel->inverse->fft;
    const size_t lanes = bins_lanes(owner->f64), n = owner->n;
    const double scale = (double)inverse->n / inverse->gain / (double)(n * channel->up);
    for (size_t i = 0; i < band->count; i++) {
        const ptrdiff_t bin = band->first + (ptrdiff_t)i;
        const size_t from = (size_t)(bin - floor_div(bin, n) * (ptrdiff_t)n);
        const size_t to = (size_t)(bin - floor_div(bin, inverse->n) * (ptrdiff_t)inverse->n);
        const size_t layer = i / inverse->n, real = channel->inverse->bins.index[to];
        const size_t index = real / (2 * lanes) * lanes + real % lanes;
        const size_t at = layer * channel->lines * 2 * lanes + real;
        channel->indices[layer * channel->lines * lanes + index] = owner->bins.index[from];
        scalar_put(owner->f64, channel->response, at, values[i][0] * scale);
        scalar_put(owner->f64, channel->response, at + lanes, values[i][1] * scale);
    }
}

static void fill_rotations(bool f64, struct channel *channel)
{
    double root[2];
    for (size_t i = 0; i < SELECT_FINE; i++) {
        revolution_root(channel->advance * i, root);
        scalar_put(f64, channel->fine, i, root[0]);
        scalar_put(f64, channel->fine, SELECT_FINE + i, root[1]);
    }
    revolution_root(channel->advance * SELECT_FINE, channel->step);
}

static struct channel *channel_layout(const struct partita_channelizer *owner,
                                      const struct channel *made, struct arena *arena)
{
    const size_t lanes = bins_lanes(owner->f64), real = owner->f64 ? 8 : 4;
    const size_t lines = size_mul(made->layers, made->lines);
    struct channel *channel = arena_take(arena, sizeof *channel);
    struct channel placed = *made;
    placed.indices = arena_take(arena, size_mul(lines, lanes * sizeof *placed.indices));
    placed.response = arena_take(arena, size_mul(lines, SPECTRUM_LINE_BYTES));
    placed.fine = arena_take(arena, 2 * SELECT_FINE * real);
    placed.output = arena_take(arena, size_mul(made->count, 2 * real));
    if (channel) *channel = placed;
    return channel;
}

struct channel *channel_create(const struct partita_channel_filter *filter, double centre,
                               size_t fade)
{
    const struct partita_channelizer *owner = filter->owner;
    const struct partita_allocator *allocator = &owner->options.allocator;
    const double rate = owner->options.sample_rate;
    const size_t length = filter->inverse->length;
    struct channel made = {.inverse = filter->inverse,
                           .up = filter->up,
                           .stride = filter->stride,
                           .fade = fade,
                           .count = owner->block * filter->up / filter->stride,
                           .centre = revolutions_of(centre, rate, 1, 1),
                           .lines = filter->inverse->fft->lines};
    made.first = length - made.count;
    made.advance = -revolutions_of(centre, rate, filter->stride, filter->up);
    if (owner->bins.half) made.advance += revolutions_of(0.5, 1, 1, length);
    const struct band band = band_of(filter, made.centre, centre < 0);
    made.layers = size_max(ceil_div(band.count, made.inverse->fft->n), 1);
    double(*values)[2] = mem_reserve(allocator, size_mul(band.count + 1, sizeof *values));
    struct arena arena = {0};
    channel_layout(owner, &made, &arena);
    struct channel *channel = NULL;
    if (values && arena_allocate(&arena, allocator)) {
        channel = channel_layout(owner, &made, &arena);
        response_read(filter, band.from, band.shift, band.count, values);
        fill_indices(owner, channel, &band, values);
        fill_rotations(owner->f64, channel);
    }
    mem_release(allocator, values);
    return channel;
}

// The phase of output n of a block is that of its time, start + n stride / up: the sum of `start`
// revolutions of the centre and n advances, modulo one revolution, exact.
static void rotate_outputs(const struct partita_channelizer *owner, struct channel *channel,
                           const char *samples, revolutions phase)
{
    const size_t bytes = 2 * (owner->f64 ? 8 : 4),
                 part = (owner->f64 ? RENEWED_F64 : RENEWED_F32) * (size_t)SELECT_FINE;
    for (size_t at = 0; at < channel->count; at += part) {
        struct rotation rotation = {.step = {channel->step[0], channel->step[1]}};
        revolution_root(phase + channel->advance * at, rotation.start);
        owner->kernels->rotate((char *)channel->output + at * bytes, samples + at * bytes,
                               channel->fine, &rotation, size_min(channel->count - at, part));
    }
}

// Moves the samples that are taken to the start.
static void take_steps(const struct channel *channel, char *samples, size_t bytes)
{
    const size_t step = channel->inverse->step;
    for (size_t i = 0; i < channel->count; i++)
        memmove(samples + i * bytes, samples + (channel->first + i) * step * bytes, bytes);
}

void channel_run(const struct partita_channelizer *owner, struct channel *channel, uint64_t start,
                 int worker)
{
    const struct inverse *inverse = channel->inverse;
    const size_t bytes = 2 * (owner->f64 ? 8 : 4);
    char *spectrum = inverse->scratch + (size_t)worker * inverse->scratch_bytes;
    char *samples = spectrum + inverse->fft->spectrum_bytes;
    char *scratch = samples + mem_round(inverse->fft->n * bytes);
    owner->kernels->select(spectrum, owner->spectrum, channel->indices, channel->response,
                           channel->lines, channel->layers);
    fft_inverse(inverse->fft, samples, spectrum, scratch);
    if (inverse->step > 1) take_steps(channel, samples, bytes);
    else samples += channel->first * bytes;
    const revolutions begin = (revolutions)start - owner->overlap; // of the window
    rotate_outputs(owner, channel, samples,
                   channel->advance * channel->first - channel->centre * begin);
}

void channel_fade(const struct partita_channelizer *owner, const struct channel *before,
                  struct channel *now)
{
    for (size_t i = 0; i < 2 * now->fade; i++) {
        const double weight = (double)(i / 2 + 1) / (double)(now->fade + 1),
                     from = scalar_get(owner->f64, before->output, i),
                     to = scalar_get(owner->f64, now->output, i);
        scalar_put(owner->f64, now->output, i, from + (to - from) * weight);
    }
}
