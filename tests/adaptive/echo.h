// SPDX-License-Identifier: MIT
// Synthetic echoes: rooms, noise, signals like speech, and levels in dB.
#ifndef PARTITA_TEST_ECHO_H
#define PARTITA_TEST_ECHO_H

#include "support/test.h"

#include <math.h>

static inline double uniform(struct random *random)
{
    return (double)(random_bits(random) >> 11) / 0x1p53;
}

static inline double normal(struct random *random)
{
    const double radius = sqrt(-2 * log(1 - uniform(random)));
    return radius * cos(2 * acos(-1) * uniform(random));
}

static inline double power_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

static inline double in_db(double ratio)
{
    return 10 * log10(ratio);
}

static inline void scale_to(double *x, size_t n, double rms)
{
    const double power = power_of(x, n), factor = power > 0 ? rms * sqrt((double)n / power) : 0;
    for (size_t i = 0; i < n; i++) x[i] *= factor;
}

// Noise that decays by 60 dB in `decay` samples, of the given power gain.
static inline void make_room(struct random *random, double *h, size_t n, double decay, double gain)
{
    for (size_t i = 0; i < n; i++)
        h[i] = i < 8 ? 0 : normal(random) * pow(10, -3 * (double)i / decay);
    scale_to(h, n, sqrt(gain / (double)n));
}

static inline void make_noise(struct random *random, double *x, size_t n, double rms)
{
    for (size_t i = 0; i < n; i++) x[i] = normal(random);
    scale_to(x, n, rms);
}

// Syllables of pulses or noise through three resonances each, and pauses, at 16 kHz.
static inline void make_speech(struct random *random, double *x, size_t n, double rms)
{
    const double rate = 16000, turn = 2 * acos(-1);
    for (size_t at = 0; at < n;) {
        const size_t length = (size_t)(rate * (0.08 + 0.22 * uniform(random)));
        const double kind = uniform(random), pitch = 90 + 130 * uniform(random);
        const double level = kind < 0.2 ? 0 : 0.3 + 0.7 * uniform(random);
        double phase = 0, past[3][2] = {{0}}, angle[3], radius[3], energy = 1e-9;
        const size_t end = at + length < n ? at + length : n;
        for (int k = 0; k < 3; k++) {
            static const double low[] = {300, 900, 2300}, wide[] = {500, 1300, 1000};
            const double frequency = low[k] + wide[k] * uniform(random);
            angle[k] = turn * frequency / rate;
            radius[k] = frequency < 900 ? 0.97 : 0.95;
        }
        for (size_t i = at; i < end; i++) {
            phase += pitch / rate;
            double sample = kind < 0.75 ? 0.1 * normal(random) : normal(random);
            if (phase >= 1 && kind < 0.75) sample += 8;
            if (phase >= 1) phase -= 1;
            for (int k = 0; k < 3; k++) {
                sample = (1 - radius[k]) * sample + 2 * radius[k] * cos(angle[k]) * past[k][0] -
                         radius[k] * radius[k] * past[k][1];
                past[k][1] = past[k][0];
                past[k][0] = sample;
            }
            const double window = 0.5 - 0.5 * cos(turn * (double)(i - at) / (double)length);
            x[i] = sample * window;
            energy += sample * sample;
        }
        const double factor = level / sqrt(energy / (double)length);
        for (size_t i = at; i < end; i++) x[i] *= factor;
        at = end;
    }
    scale_to(x, n, rms);
}

// y[i] += sum over j of h[j] x[i - j], first <= i < end.
static inline void add_echo(double *y, const double *x, const double *h, size_t taps, size_t first,
                            size_t end)
{
    for (size_t i = first; i < end; i++)
        for (size_t j = 0; j < taps && j <= i; j++) y[i] += h[j] * x[i - j];
}

#endif
