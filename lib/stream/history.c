// SPDX-License-Identifier: MIT
#include "history.h"

#include <math.h>
#include <string.h>

#include "geometry/samples.h"
#include "kernels/kernels.h"

void history_layout(struct history *history, const struct shape *shape, struct arena *arena)
{
    history->loud = arena_take(arena, shape->in_channels * sizeof *history->loud);
    history->bad = arena_take(arena, shape->in_channels * sizeof *history->bad);
    history->marks = arena_take(arena, size_mul(shape->in_channels, history->frames));
    history->poisoned = arena_take(arena, shape->in_channels * sizeof *history->poisoned);
    history->samples = arena_take(
        arena, size_mul(shape->in_channels, size_mul(2 * history->frames, shape->sample_bytes)));
}

char *history_at(const struct history *history, const struct shape *shape, size_t channel,
                 size_t index)
{
    return history->samples + (channel * 2 * history->frames + index) * shape->sample_bytes;
}

static bool finite_real(const char *x, bool f64)
{
    return isfinite(f64 ? *(const double *)(const void *)x
                        : (double)*(const float *)(const void *)x);
}

static void clean(struct history *history, const struct shape *shape, uint64_t now, size_t channel,
                  size_t n)
{
    const size_t at = now % history->frames;
    for (size_t i = 0; i < n; i++) {
        char *sample = history_at(history, shape, channel, at + i);
        if (finite_real(sample, shape->f64) &&
            (!shape->complex_signal || finite_real(sample + shape->scalar_bytes, shape->f64)))
            continue;
        memset(sample, 0, shape->sample_bytes);
        history->marks[channel * history->frames + at + i] = 1;
        history->bad[channel] = now + i + 1;
    }
}

void history_take(struct history *history, const struct partita_plan *plan, uint64_t now,
                  const struct frames *frames, size_t n)
{
    const struct shape *shape = &plan->shape;
    const size_t at = now % history->frames, bytes = shape->sample_bytes;
    const uint64_t infinity = shape->f64 ? (uint64_t)0x7ff << 52 : (uint64_t)0xff << 23;
    for (size_t c = 0; c < shape->in_channels; c++) {
        char *x = history_at(history, shape, c, at);
        if (frames->x)
            samples_copy(x, 1, frames_x(frames, c, 0, bytes), frames->x_stride, n, bytes);
        else memset(x, 0, n * bytes);
        const uint64_t peak = plan->kernels->peak(x, n * (shape->complex_signal ? 2 : 1));
        if (history->bad[c]) memset(history->marks + c * history->frames + at, 0, n);
        if (peak >= infinity) clean(history, shape, now, c, n);
        if (peak) history->loud[c] = now + n;
        memcpy(history_at(history, shape, c, at + history->frames), x, n * bytes);
    }
}

void history_filter(const struct history *history, const struct partita_plan *plan, uint64_t now,
                    size_t channel, const char *taps, size_t n_taps, char *y, size_t n)
{
    const struct shape *shape = &plan->shape;
    const size_t frames = history->frames, at = (now + frames - history->late % frames) % frames;
    // Of the two copies the one with the taps' history before it.
    const char *x = history_at(history, shape, channel, at + 1 < n_taps ? at + frames : at);
    if (shape->complex_taps) plan->kernels->fir_complex(y, x, taps, n, n_taps);
    else if (shape->complex_signal) plan->kernels->fir(y, x, taps, 2 * n, n_taps, 2);
    else plan->kernels->fir(y, x, taps, n, n_taps, 1);
}

bool history_nonfinite(const struct history *history, uint64_t now, size_t channel)
{
    return now < history->poisoned[channel] ||
           (history->bad[channel] && now < history->bad[channel] + history->late);
}

bool history_any_nonfinite(const struct history *history, const struct shape *shape, uint64_t now)
{
    for (size_t c = 0; c < shape->in_channels; c++)
        if (history_nonfinite(history, now, c)) return true;
    return false;
}

// Up to which output frame an input's taps reach what was no number, seen from output frame
// `frame`.
static uint64_t poison_from(const struct history *history, const struct shape *shape,
                            size_t channel, uint64_t frame, uint64_t until)
{
    if (frame < history->late) return until;
    const uint64_t heard = frame - history->late;
    if (heard >= history->bad[channel] ||
        !history->marks[channel * history->frames + heard % history->frames])
        return until;
    return frame + shape->axis[0].span;
}

void history_mark_nonfinite(const struct history *history, const struct shape *shape, uint64_t now,
                            size_t channel, char *y, size_t n)
{
    uint64_t until = history->poisoned[channel];
    for (size_t i = 0; i < n; i++) {
        until = poison_from(history, shape, channel, now + i, until);
        if (now + i < until) memset(y + i * shape->sample_bytes, 0xff, shape->sample_bytes); // NaN
    }
}

void history_advance(struct history *history, const struct shape *shape, uint64_t now, size_t n)
{
    for (size_t c = 0; c < shape->in_channels; c++) {
        if (!history_nonfinite(history, now, c)) continue;
        for (size_t i = 0; i < n; i++)
            history->poisoned[c] = poison_from(history, shape, c, now + i, history->poisoned[c]);
    }
}
