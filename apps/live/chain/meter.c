// SPDX-License-Identifier: MIT
#include "meter.h"

#include <float.h>
#include <math.h>

static const double INTERVAL_SECONDS = 0.1;

void meter_add(struct meter *meter, const float *x, size_t n, float decay)
{
    float peak = 0;
    double sum = 0; // squares of large samples overflow a float
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) {
        peak = fmaxf(peak, fabsf(x[i]));
        sum += (double)x[i] * (double)x[i];
    }
    float mean = (float)fmin(sum / (double)n, (double)FLT_MAX);
    float before = atomic_load_explicit(&meter->peak, memory_order_relaxed);
    float square = atomic_load_explicit(&meter->square, memory_order_relaxed);
    if (peak > before) atomic_store_explicit(&meter->peak, peak, memory_order_relaxed);
    atomic_store_explicit(&meter->square, square + decay * (mean - square), memory_order_relaxed);
}

struct level meter_take(struct meter *meter)
{
    return (struct level){
        .peak = atomic_exchange_explicit(&meter->peak, 0, memory_order_relaxed),
        .rms = sqrtf(atomic_load_explicit(&meter->square, memory_order_relaxed)),
    };
}

float peak_hold_add(struct peak_hold *hold, float peak, double now)
{
    int64_t interval = (int64_t)floor(now / INTERVAL_SECONDS);
    int64_t first = interval - PEAK_HOLD_INTERVALS; // everything up to here is too old
    if (hold->interval > first) first = hold->interval;
    for (int64_t i = first + 1; i <= interval; i++) hold->peaks[i % PEAK_HOLD_INTERVALS] = 0;
    hold->interval = interval;
    float *present = &hold->peaks[interval % PEAK_HOLD_INTERVALS];
    *present = fmaxf(*present, peak);
    float held = 0;
    for (int i = 0; i < PEAK_HOLD_INTERVALS; i++) held = fmaxf(held, hold->peaks[i]);
    return held;
}
