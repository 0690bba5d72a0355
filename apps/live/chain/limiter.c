// SPDX-License-Identifier: MIT
#include "limiter.h"

#include <math.h>

// A gain within 0.0001 dB of 1 is set to 1.
static const double RECOVERED = 1 - 1e-5;

void limiter_open(struct limiter *limiter, double rate, double release)
{
    *limiter = (struct limiter){.gain = 1, .release = -expm1(-1 / (rate * release))};
}

static float frame_peak(float *const *x, size_t channels, size_t frame)
{
    float peak = 0;
    for (size_t c = 0; c < channels; c++) peak = fmaxf(peak, fabsf(x[c][frame]));
    return peak;
}

size_t limiter_process(struct limiter *limiter, float *const *x, size_t channels, size_t n)
{
    double gain = limiter->gain;
    size_t limited = 0;
    for (size_t i = 0; i < n; i++) {
        double peak = (double)frame_peak(x, channels, i);
        gain += (1 - gain) * limiter->release;
        if (gain > RECOVERED) gain = 1;
        if (peak * gain > 1) gain = 1 / peak;
        if (gain == 1) continue;
        limited++;
        for (size_t c = 0; c < channels; c++) {
            float y = (float)((double)x[c][i] * gain);
            x[c][i] = fmaxf(-1, fminf(1, y)); // because 1 / peak is rounded
        }
    }
    limiter->gain = gain;
    return limited;
}
