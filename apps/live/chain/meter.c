// SPDX-License-Identifier: MIT
#include "meter.h"

#include <float.h>
#include <math.h>

static const double HOLD_SECONDS = 1.5;

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

void meter_update(struct meter *meter, double now)
{
    const float peak = atomic_exchange_explicit(&meter->peak, 0, memory_order_relaxed),
                rms = sqrtf(atomic_load_explicit(&meter->square, memory_order_relaxed));
    if (peak >= meter->held || now > meter->held_until) {
        meter->held = peak;
        meter->held_until = now + HOLD_SECONDS;
    }
    meter->level = (struct level){fmaxf(meter->held, rms), rms};
}
