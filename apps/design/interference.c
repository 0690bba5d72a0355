// SPDX-License-Identifier: MIT
// See interference.h.
#include "interference.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

static bool is_whole(double x)
{
    return fabs(x - round(x)) < 1e-9 * fmax(fabs(x), 1);
}

// pulse[2 n - 1], the convolution of symmetric taps with themselves; of a whole period only at its
// multiples from the middle, as the others are not needed.
static void convolve_pair(double *pulse, const double *taps, size_t n, double period)
{
    const size_t step = is_whole(period) ? (size_t)round(period) : 1;
    for (size_t lag = 0; lag < n; lag += step) {
        double sum = 0;
        for (size_t i = lag; i < n; i++) sum += taps[i] * taps[i - lag];
        pulse[n - 1 + lag] = pulse[n - 1 - lag] = sum;
    }
}

// The sum of pulse[i] sinc(x - i).
static double value_at(const double *pulse, size_t n, double x)
{
    if (is_whole(x)) return pulse[(size_t)round(x)];
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (i % 2 ? -1 : 1) * pulse[i] / (x - (double)i);
    return sum * sin(PI * x) / PI;
}

bool interference_measure(struct interference *ret, const double *taps, size_t n, double period,
                          bool pair)
{
    const size_t length = pair ? 2 * n - 1 : n;
    const double middle = (double)(length - 1) / 2;
    double *made = pair ? calloc(length, sizeof *made) : NULL;
    if (pair && !made) return false;
    if (pair) convolve_pair(made, taps, n, period);
    const double *pulse = pair ? made : taps;
    const double whole = fabs(value_at(pulse, length, middle));
    double power = 0, sum = 0;
    for (double t = period; t <= middle; t += period)
        for (int side = -1; side <= 1; side += 2) {
            const double share = value_at(pulse, length, middle + side * t) / whole;
            power += share * share;
            sum += fabs(share);
        }
    *ret = (struct interference){sqrt(power), sum};
    free(made);
    return true;
}
