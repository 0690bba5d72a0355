// SPDX-License-Identifier: MIT
// See meter.h.
#include "meter.h"

#include <math.h>

void meter_add(struct meter *meter, const float *x, size_t n, float decay)
{
    float peak = 0, sum = 0;
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) {
        peak = fmaxf(peak, fabsf(x[i]));
        sum += x[i] * x[i];
    }
    float before = atomic_load_explicit(&meter->peak, memory_order_relaxed);
    float square = atomic_load_explicit(&meter->square, memory_order_relaxed);
    if (peak > before) atomic_store_explicit(&meter->peak, peak, memory_order_relaxed);
    atomic_store_explicit(&meter->square, square + decay * (sum / (float)n - square), memory_order_relaxed);
}

struct level meter_take(struct meter *meter)
{
    return (struct level){
        .peak = atomic_exchange_explicit(&meter->peak, 0, memory_order_relaxed),
        .rms = sqrtf(atomic_load_explicit(&meter->square, memory_order_relaxed)),
    };
}
