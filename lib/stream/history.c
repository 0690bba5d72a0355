// SPDX-License-Identifier: MIT
#include "history.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

void history_layout(struct history *history, const struct shape *shape, struct arena *arena)
{
    assert(history->frames > 0);
    const size_t inputs = shape->in_channels,
                 channel = size_mul(2 * history->frames, shape->sample_bytes);
    history->nonzero_until = arena_pack(arena, inputs * sizeof *history->nonzero_until);
    history->nonfinite_until = arena_pack(arena, inputs * sizeof *history->nonfinite_until);
    history->affected_until = arena_pack(arena, inputs * sizeof *history->affected_until);
    history->nonfinite = arena_take(arena, size_mul(inputs, history->frames));
    history->samples = arena_take(arena, size_mul(inputs, channel));
}

char *history_at(const struct history *history, const struct shape *shape, size_t channel,
                 size_t index)
{
    assert(channel < shape->in_channels && index < 2 * history->frames);
    return history->samples + (channel * 2 * history->frames + index) * shape->sample_bytes;
}

static bool is_finite(const char *x, bool f64)
{
    return isfinite(f64 ? *(const double *)(const void *)x
                        : (double)*(const float *)(const void *)x);
}

static void replace_nonfinite(struct history *history, const struct shape *shape, uint64_t now,
                              size_t channel, size_t n)
{
    const size_t at = now % history->frames;
    for (size_t i = 0; i < n; i++) {
        char *sample = history_at(history, shape, channel, at + i);
        if (is_finite(sample, shape->f64) &&
            (!shape->complex_signal || is_finite(sample + shape->scalar_bytes, shape->f64)))
            continue;
        memset(sample, 0, shape->sample_bytes);
        history->nonfinite[channel * history->frames + at + i] = 1;
        history->nonfinite_until[channel] = now + i + 1;
    }
}

void history_take(struct history *history, const struct partita_plan *plan, uint64_t now,
                  const struct frames *frames, size_t n)
{
    const struct shape *shape = &plan->shape;
    const size_t at = now % history->frames, bytes = shape->sample_bytes;
    const size_t reals = n * (shape->complex_signal ? 2 : 1);
    assert(at + n <= history->frames);
    const uint64_t infinity = shape_infinity_bits(shape);
    for (size_t c = 0; c < shape->in_channels; c++) {
        char *x = history_at(history, shape, c, at), *again = x + history->frames * bytes;
        if (frames->x)
            samples_copy(x, 1, frames_x(frames, c, 0, bytes), frames->x_stride, n, bytes);
        else memset(x, 0, n * bytes);
        const uint64_t peak = plan->kernels->peak(x, reals);
        if (history->nonfinite_until[c])
            memset(history->nonfinite + c * history->frames + at, 0, n);
        if (peak >= infinity) replace_nonfinite(history, shape, now, c, n);
        if (peak) history->nonzero_until[c] = now + n;
        memcpy(again, x, n * bytes);
    }
}

void history_filter(const struct history *history, const struct partita_plan *plan, uint64_t now,
                    const struct history_taps *taps, char *y, size_t n)
{
    const struct shape *shape = &plan->shape;
    const size_t frames = history->frames, delay = history->delay;
    const size_t at = (now + frames - (delay < frames ? delay : delay % frames)) % frames;
    // Of the two copies the one with the taps' history before it.
    const size_t index = at + 1 < taps->n ? at + frames : at;
    assert(index + 1 >= taps->n && index + n <= 2 * frames);
    const char *x = history_at(history, shape, taps->channel, index);
    plan->kernels->fir(y, x, taps->taps, n, taps->n, shape_fir_type(shape));
}

bool history_nonfinite(const struct history *history, uint64_t now, size_t channel)
{
    return now < history->affected_until[channel] ||
           (history->nonfinite_until[channel] &&
            now < history->nonfinite_until[channel] + history->delay);
}

bool history_any_nonfinite(const struct history *history, const struct shape *shape, uint64_t now)
{
    for (size_t c = 0; c < shape->in_channels; c++)
        if (history_nonfinite(history, now, c)) return true;
    return false;
}

// The first of the output frames from .. end-1 whose input is not finite; `end` if none is.
static uint64_t next_nonfinite(const struct history *history, size_t channel, uint64_t from,
                               uint64_t end)
{
    const unsigned char *flags = history->nonfinite + channel * history->frames;
    const uint64_t last = history->nonfinite_until[channel] + history->delay;
    if (from < history->delay) from = history->delay;
    for (size_t n; from < end && from < last; from += n) {
        const size_t at = (size_t)((from - history->delay) % history->frames);
        n = size_min((size_t)((end < last ? end : last) - from), history->frames - at);
        const unsigned char *found = memchr(flags + at, 1, n);
        if (found) return from + (size_t)(found - (flags + at));
    }
    return end;
}

// Calls for many outputs and inputs should not take much longer: whole ranges are searched and set.
void history_mark_nonfinite(const struct history *history, const struct shape *shape, uint64_t now,
                            size_t channel, char *y, size_t n)
{
    const size_t bytes = shape->sample_bytes;
    const uint64_t end = now + n;
    uint64_t until = history->affected_until[channel], marked = now, from = now;
    assert(channel < shape->in_channels);
    for (;;) {
        const uint64_t stop = until < end ? until : end;
        if (marked < stop) { // NaN
            memset(y + (marked - now) * bytes, 0xff, (size_t)(stop - marked) * bytes);
            marked = stop;
        }
        if (marked == end) return;
        from = next_nonfinite(history, channel, from, end);
        if (from == end) return;
        if (marked < from) marked = from;
        until = from++ + shape->axis[0].span;
    }
}

void history_advance(const struct history *history, const struct shape *shape, uint64_t now,
                     size_t n)
{
    for (size_t c = 0; c < shape->in_channels; c++) {
        if (!history_nonfinite(history, now, c)) continue;
        uint64_t from = now + n;
        while (from > now && next_nonfinite(history, c, from - 1, from) == from) from--;
        if (from > now) history->affected_until[c] = from - 1 + shape->axis[0].span;
    }
}
